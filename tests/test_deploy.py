"""The files in deploy/: each is sound for the tools that read it, and they agree with each other.

No container is built here: that needs an engine.
"""

import itertools
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from needed import program

DEPLOY = Path(__file__).parents[1] / "deploy"
ROOT = DEPLOY.parent
UNIT = DEPLOY / "dpbandits.service"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICE: dict[str, Any] = COMPOSE["services"]["service"]
OURS = ("service", "standby")


def _instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, in order: (RUN, what it runs)."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def _last(instruction: str) -> str:
    return [text for name, text in _instructions() if name == instruction][-1]


def _image_command() -> list[str]:
    return [*json.loads(_last("ENTRYPOINT")), *json.loads(_last("CMD"))]


def _compose_command() -> list[str]:
    """What the shell runs, after the password."""
    words = shlex.split(SERVICE["command"][0].replace("$$", "$"))
    return words[words.index("dpbandits") :]


def _unit() -> dict[str, list[str]]:
    """The settings of the unit, each with all its values."""
    found: dict[str, list[str]] = {}
    text = UNIT.read_text().replace("\\\n", " ")
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value.strip())
    return found


def _unit_command() -> list[str]:
    """As it is unless the environment file names another database."""
    settings = dict(word.split("=", 1) for word in _unit()["Environment"][0].split())
    return shlex.split(_unit()["ExecStart"][0].replace("${DPBANDITS_DB}", settings["DPBANDITS_DB"]))


COMMANDS = {"image": _image_command(), "compose": _compose_command(), "unit": _unit_command()}
PAGE = (ROOT / "docs" / "service.md").read_text()
SHOWN = {
    command: shlex.split(command)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in re.findall(r"^dpbandits [^<\n]*", block, re.MULTILINE)
}
INSIDE = shlex.split(re.findall(r"docker compose exec (service .*\n.*)", PAGE)[0].replace("\\\n", " "))
KEY_INSIDE = shlex.split(INSIDE[-1].split("exec ")[1])
TEMPLATE = re.findall(r"^sed '(.*)' deploy/dpbandits.service > (\S+)$", PAGE, re.MULTILINE)[0]


def _option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def _checked(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [*COMMANDS.values(), *SHOWN.values(), KEY_INSIDE],
    ids=[*COMMANDS, *SHOWN, "keys in a container"],
)
def test_commands_and_their_options_exist(command: list[str]) -> None:
    import typer

    from dpbandits.cli.main import app

    assert Path(command[0]).name == "dpbandits"
    found: Any = typer.main.get_command(app)
    words = iter(command[1:])
    while hasattr(found, "commands"):
        found = found.commands[next(words)]
    known = set(itertools.chain.from_iterable(option.opts for option in found.params))
    assert {word for word in words if word.startswith("--")} <= known


def test_the_page_has_every_term_of_an_experiment() -> None:
    from dpbandits.service import terms

    table = PAGE[PAGE.index("## Experiments") : PAGE.index("## HTTP")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(terms.FIELDS)


def test_the_page_has_the_files_and_the_port() -> None:
    for path in DEPLOY.iterdir():
        if path.name not in ("Dockerfile", "Dockerfile.dockerignore", "haproxy.cfg"):
            assert f"deploy/{path.name}" in PAGE, path.name
    assert set(re.findall(r"127\.0\.0\.1:(\d+)", PAGE)) == {_last("EXPOSE")}
    assert str(Path(_unit_command()[0]).parents[1]) in PAGE


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_keyring_is_not_beside_the_database(command: list[str]) -> None:
    database, keyring = _option(command, "--db"), Path(_option(command, "--keyring"))
    assert database.startswith("postgresql://") or Path(database).parent != keyring.parent
    assert keyring.parent not in Path(database).parents


def test_volumes_hold_what_must_stay() -> None:
    volumes = {Path(path) for path in json.loads(_last("VOLUME"))}
    image = COMMANDS["image"]
    assert {Path(_option(image, name)).parent for name in ("--db", "--keyring")} == volumes
    keyring = str(Path(_option(COMMANDS["compose"], "--keyring")).parent)
    for name in OURS:
        assert f"keyring:{keyring}" in COMPOSE["services"][name]["volumes"]
    assert COMPOSE["services"]["database"]["volumes"] == ["database:/var/lib/postgresql/data"]
    assert set(COMPOSE["volumes"]) == {"database", "keyring"}
    folders = {f"%S/{name}" for name in _unit()["StateDirectory"][0].split()}
    unit = COMMANDS["unit"]
    assert {str(Path(_option(unit, name)).parent) for name in ("--db", "--keyring")} == folders


def test_ports_agree() -> None:
    port = _last("EXPOSE")
    assert {_option(command, "--port") for command in COMMANDS.values()} == {port}
    assert f"127.0.0.1:{port}/health" in _last("HEALTHCHECK")
    proxy = (DEPLOY / "haproxy.cfg").read_text()
    servers = dict(re.findall(r"^ +server (\w+) (\S+)$", proxy, re.MULTILINE))
    assert servers == {name: f"{name}:{port}" for name in OURS}
    bound = re.findall(r"^ +bind :(\d+)", proxy, re.MULTILINE)
    (published,) = COMPOSE["services"]["entrance"]["ports"]
    assert published.split(":") == ["127.0.0.1", port, *bound]


def test_the_image_holds_what_its_file_copies() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    copied = [text.split() for name, text in _instructions() if name == "COPY" and "--from" not in text]
    sources = set(itertools.chain.from_iterable(words[:-1] for words in copied))
    assert sources == allowed
    assert all((ROOT / source).exists() for source in sources)


def test_the_image_finds_what_it_compiled() -> None:
    runs = [text for name, text in _instructions() if name == "RUN"]
    assert any(text.endswith("dpbandits warm") for text in runs)
    built, run = (
        dict(re.findall(r"(\w+)=(\S+)", text)) for name, text in _instructions() if name == "ENV"
    )
    for setting in ("NUMBA_CPU_NAME", "XDG_CACHE_HOME"):
        assert built[setting] == run[setting]
    copies = [text for name, text in _instructions() if name == "COPY"]
    cache = built["XDG_CACHE_HOME"]
    assert f"--from=build --chown=dpbandits:dpbandits {cache} {cache}" in copies


def test_nobody_runs_as_root() -> None:
    user = _last("USER").split(":")[0]
    assert int(user) > 0 and f"--uid {user}" in " ".join(text for _, text in _instructions())
    assert _unit()["User"] == ["dpbandits"]
    assert re.search(r"^u dpbandits ", (DEPLOY / "dpbandits.sysusers").read_text(), re.MULTILINE)
    for name in OURS:
        service = COMPOSE["services"][name]
        assert service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"]
        assert "user" not in service and "privileged" not in service


def test_no_password_is_written_down() -> None:
    for path in DEPLOY.iterdir():
        assert not re.search(r"postgres\w*://\w+:", path.read_text()), path.name
    secrets = COMPOSE["secrets"]
    assert list(secrets) == ["database-password"]
    folder = Path(secrets["database-password"]["file"]).parent
    assert f"deploy/{folder}/" in (ROOT / ".gitignore").read_text().splitlines()
    for name in (*OURS, "database"):
        assert COMPOSE["services"][name]["secrets"] == list(secrets)
    assert "/run/secrets/database-password" in SERVICE["command"][0]


def test_a_key_is_made_with_the_password_and_the_database_of_the_service() -> None:
    assert INSIDE[:3] == ["service", "sh", "-c"]
    with_password = SERVICE["command"][0].replace("$$", "$").split(" exec ")[0]
    assert INSIDE[3].startswith(with_password)
    assert _option(KEY_INSIDE, "--db") == _option(COMMANDS["compose"], "--db")


def test_raw_data_leaves_memory_neither_by_swap_nor_by_a_dump() -> None:
    unit = _unit()
    assert unit["MemorySwapMax"] == ["0"] and unit["LimitCORE"] == ["0"]
    for name in OURS:
        service = COMPOSE["services"][name]
        assert service["memswap_limit"] == service["mem_limit"] and service["ulimits"]["core"] == 0


def test_the_standby_is_the_service_again() -> None:
    standby = COMPOSE["services"]["standby"]
    apart = {"build", "depends_on"}
    assert {k: v for k, v in SERVICE.items() if k not in apart} == {
        k: v for k, v in standby.items() if k not in apart
    }


def test_the_example_is_an_experiments_file() -> None:
    found = tomllib.loads((DEPLOY / "experiments.toml").read_text())
    assert [one["name"] for one in found["experiment"]] == ["headline", "teaser"]
    from dpbandits.service import terms

    for one in found["experiment"]:
        assert terms.Terms.read(one).name == one["name"]


def test_the_drop_in_is_the_units_command_and_an_option_more() -> None:
    block = re.findall(r"```ini\n\[Service\]\nExecStart=\nExecStart=(.*?)```", PAGE, re.DOTALL)[0]
    shown, unit = (shlex.split(text.replace("\\\n", " ")) for text in (block, _unit()["ExecStart"][0]))
    assert shown == [*unit, "--operator-metrics"]


@pytest.mark.parametrize("template", [False, True], ids=["unit", "template"])
def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path: Path, template: bool) -> None:
    text = UNIT.read_text().replace(_unit_command()[0], "/bin/true")
    copy = tmp_path / (Path(TEMPLATE[1]).name if template else UNIT.name)
    if template:  # as the page has it made, for standbys
        _, old, new, _ = TEMPLATE[0].split("/")
        assert text.count(old) == 1
        text = text.replace(old, new)
    copy.write_text(text)
    analyze = program("systemd-analyze")
    assert _checked(analyze, "verify", copy) == ""
    _checked(analyze, "security", "--offline=true", "--threshold=20", copy)  # tenths; 100 is wide open


def test_haproxy_takes_its_file() -> None:
    _checked(program("haproxy"), "-c", "-f", "haproxy.cfg")


def test_haproxy_takes_its_file_with_tls(tmp_path: Path) -> None:
    """As the page says: the mark is taken away, and the certificate lies where compose puts it."""
    (old, new) = re.findall(r"sed --in-place 's/(.*)/(.*)/' haproxy.cfg", PAGE)[0]
    text = (DEPLOY / "haproxy.cfg").read_text()
    assert text.count(old) == 1
    inside = re.findall(r"site\.pem:(\S+):ro", PAGE)[0]
    key, certificate = tmp_path / "key.pem", tmp_path / "site.pem"
    asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    _checked(program("openssl"), *asked.split(), "-keyout", key, "-out", certificate)
    certificate.write_text(certificate.read_text() + key.read_text())
    copy = tmp_path / "haproxy.cfg"
    assert f"ssl crt {inside} " in text
    copy.write_text(text.replace(old, new).replace(inside, str(certificate)))
    _checked(program("haproxy"), "-c", "-f", copy)
    assert re.findall(r"bind :(\d+) ssl", copy.read_text()) == re.findall(r'"443:(\d+)"', PAGE)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    assert _checked(program("hadolint"), "Dockerfile") == ""


def test_the_compose_file_fits_its_schema() -> None:
    _checked(program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "compose.yaml")
