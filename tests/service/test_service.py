"""The life of experiments over HTTP, with the package's own client and the real `dpbandits serve`."""

import asyncio
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from live_service import LiveService, free_port, live_service, toml_file

import dpbandits as dpb
from dpbandits.cli.main import main
from dpbandits.client import Client, ServiceError
from dpbandits.service.ledger import verify
from dpbandits.service.run import open_store
from dpbandits.service.sealing import Keyring

if TYPE_CHECKING:
    from postgres import Postgres

HEADLINE: dict[str, Any] = {"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud"]}
LOCAL_PROBLEM = dpb.Arms(2)
EXPERIMENTS: list[dict[str, Any]] = [
    HEADLINE,
    {
        "name": "capped",
        "privacy": "eps=1",
        "actions": ["a", "b"],
        "rounds_per_person": 2,
        "population": "readers",
    },
    {"name": "brief", "privacy": "eps=1", "actions": ["a", "b"], "patience": 1},
    {
        "name": "finite",
        "privacy": "eps=1",
        "policy": "gaussian-thompson",
        "actions": ["a", "b"],
        "horizon": 5,
    },
    {
        "name": "sets",
        "privacy": "eps=1",
        "actions": ["tea", "milk", "rye", "jam"],
        "problem": {
            "kind": "MatroidBases",
            "matroid": {"kind": "UniformMatroid", "items": 4, "most": 2},
        },
    },
    {"name": "local", "privacy": "eps=1", "actions": ["a", "b"], "trust": "local"},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with live_service(tmp_path_factory.mktemp("service"), EXPERIMENTS) as running:
        yield running


def test_it_says_where_it_is_and_what_it_promises(service: LiveService) -> None:
    assert f"http://localhost:{service.port}" in service.said
    assert service.admin.startswith("dpb_")
    wait_until(lambda: all(f"\n{one['name']}: " in service.said for one in EXPERIMENTS))
    assert "1-DP" in service.said


def test_decide_and_reward(service: LiveService) -> None:
    with service.client() as client:
        first = client.decide("headline", request="order 1")
        assert first.action in ("calm", "loud")
        assert first.counted and not first.repeated
        assert first.expires is not None and 590 < first.expires.timestamp() - time.time() <= 601
        again = client.decide("headline", request="order 1")
        assert again.repeated and (again.ticket, again.action) == (first.ticket, first.action)
        assert client.reward(first, 1.0)
        assert client.reward(first.ticket, 1.0)
        with pytest.raises(ServiceError) as refused:
            client.reward(first, 0.5)
        assert (refused.value.status, refused.value.code) == (409, "rewarded-differently")
        assert client.skip(client.decide("headline"))


def test_decide_and_reward_async(service: LiveService) -> None:
    async def use() -> set[str]:
        async with service.async_client() as client:
            made = await asyncio.gather(*(client.decide("headline") for _ in range(20)))
            assert all(await asyncio.gather(*(client.reward(one, 0.5) for one in made)))
            assert (await client.experiment("headline"))["name"] == "headline"
            return {one.ticket for one in made}

    assert len(asyncio.run(use())) == 20


def test_a_round_that_time_has_closed(service: LiveService) -> None:
    with service.client() as client:
        late = client.decide("brief")
        time.sleep(1.1)
        client.decide("brief")  # rounds close before a decision
        assert not client.reward(late, 1.0)
        with pytest.raises(ServiceError) as refused:
            client.decide("brief", request=late.request)
        assert refused.value.code == "closed"


def test_a_horizon(service: LiveService) -> None:
    with service.client() as client:
        made = [client.decide("finite") for _ in range(5)]
        with pytest.raises(ServiceError) as refused:
            client.decide("finite")
        assert (refused.value.status, refused.value.code) == (409, "horizon-reached")
        assert all(client.reward(one, 1.0) for one in made)
    assert 'dpbandits_rounds_left{experiment="finite"} 0.0' in service.http.get("/metrics").text


def test_sets(service: LiveService) -> None:
    with service.client() as client:
        for _ in range(3):
            chosen = client.decide("sets")
            assert set(chosen.action) <= {"tea", "milk", "rye", "jam"}
            assert client.reward(chosen, [1.0] * len(chosen.action))
            assert client.reward(chosen, np.ones(len(chosen.action)))


def test_people_are_capped(service: LiveService) -> None:
    with service.client() as client:
        made = []
        for _ in range(2):
            made.append(client.decide("capped", person="anna@example.org"))
            assert client.reward(made[-1], 1.0)
        assert all(one.counted for one in made)
        assert client.decide("capped", person="berta").counted
        with pytest.raises(ServiceError) as refused:
            client.decide("capped")
        assert refused.value.code == "no-person"


def test_the_local_model(service: LiveService) -> None:
    """People decide by a broadcast on their own, and send a message that noise is in already."""
    with service.client() as client:
        recipe = client.experiment("local")["policy"]
        policy = dpb.Policy.from_dict(recipe)
        assert isinstance(policy, dpb.local.LocalPolicy)
        for place in range(20):
            person = policy.person(LOCAL_PROBLEM, client.broadcast("local"))
            action = person.select()
            message = person.report(float(action))
            assert client.send("local", message)
            if place == 0:
                assert not client.send("local", message)  # it counts once
        time.sleep(2.1)  # what everybody may read is kept for two seconds
        assert client.experiment("local")["decided"] == 20


def test_what_is_public(service: LiveService) -> None:
    with service.client() as client:
        listed = {one["name"]: one for one in client.experiments()}
        assert set(listed) >= {one["name"] for one in EXPERIMENTS}
        assert listed["capped"]["population"] == "readers"
        verdict = verify(client.ledger("headline"), head=client.experiment("headline")["ledger_head"])
        assert verdict.experiment == "headline"
        assert client.ledger("headline", after=1) == client.ledger("headline")[1:]
        with pytest.raises(ServiceError) as refused:
            client.experiment("nothing")
        assert refused.value.code == "no-such-experiment"


def test_health_metrics_and_openapi(service: LiveService) -> None:
    http = service.http
    assert http.get("/health").json() == {"healthy": True}
    assert http.get("/ready").json() == {"ready": True}
    told = http.get("/metrics").text
    assert "dpbandits_ready 1.0" in told
    assert 'dpbandits_decisions{experiment="headline"}' in told
    assert "dpbandits_requests" not in told  # the operator did not ask for it
    paths = http.get("/openapi.json").json()["paths"]
    assert {"/v1/reward", "/v1/experiments/{name}/decide", "/v1/keys/{name}"} <= set(paths)


def test_keys(service: LiveService) -> None:
    key = service.new_key("website", "decide", experiments=["headline"])
    with service.client(key) as client:
        made = client.decide("headline")
        with pytest.raises(ServiceError) as refused:
            client.reward(made, 1.0)
        assert refused.value.code == "out-of-scope"
        assert service.http.delete("/v1/keys/website").json() == {"revoked": True}
        with pytest.raises(ServiceError) as refused:
            client.decide("headline")
        assert refused.value.code == "unknown-key"


def test_arms_come_and_go(service: LiveService) -> None:
    service.begin(
        name="shelf",
        privacy="eps=1",
        actions=["a", "b"],
        problem={"kind": "Arms", "arms": 2, "capacity": 3},
    )
    http, acts = service.http, "/v1/experiments/shelf/actions"
    assert http.post(acts, json={"label": "c"}).json() == {"added": "c"}
    assert http.post(acts, json={"label": "d"}).status_code == 409  # no room was declared for it
    for label in ("a", "b"):
        assert http.post(f"{acts}/{label}/retire").json() == {"changed": label}
    assert http.post(f"{acts}/c/retire").status_code == 409  # the last one
    with service.client() as client:
        assert {client.decide("shelf").action for _ in range(5)} == {"c"}
        assert http.post(f"{acts}/b/revive").json() == {"changed": "b"}
        assert {client.decide("shelf").action for _ in range(30)} == {"b", "c"}
        kinds = [entry["kind"] for entry in client.ledger("shelf")]
        assert kinds.count("changed") == 4
        verify(client.ledger("shelf"))


def test_stop_and_successor(service: LiveService) -> None:
    service.begin(**HEADLINE | {"name": "old"})
    with service.client() as client:
        open_round = client.decide("old")
        answer = service.http.post("/v1/experiments/old/successor", json={"name": "new"})
        assert answer.status_code == 201 and answer.json() == {"name": "new"}
        with pytest.raises(ServiceError) as refused:
            client.decide("old")
        assert refused.value.code == "stopped"
        assert not client.reward(open_round, 1.0)
        assert client.decide("new").action in ("calm", "loud")
        assert client.ledger("old")[-1]["kind"] == "stopped"
        opened = client.ledger("new")[0]["body"]
        assert opened["follows"] == "old" and opened["population"]["experiments"] == ["old", "new"]
        verify(client.ledger("old"))
        verify(client.ledger("new"))
    assert service.http.post("/v1/experiments/new/stop").json() == {"stopped": "new"}
    assert service.http.post("/v1/experiments/new/stop").status_code == 409


def test_a_successor_that_is_refused_leaves_its_predecessor(service: LiveService) -> None:
    service.begin(**HEADLINE | {"name": "stays"})
    for terms, status in (({"name": "headline"}, 409), ({"name": "x", "privacy": "eps=0"}, 422)):
        answer = service.http.post("/v1/experiments/stays/successor", json=terms)
        assert answer.status_code == status
    with service.client() as client:
        client.decide("stays")


def life(service: LiveService) -> None:
    """Begin, decide, stop in every way, go on: what was open stays open, and is answered alike."""
    service.begin(**HEADLINE | {"name": "long"})
    with service.client() as client:
        made = [client.decide("long", request=str(place)) for place in range(30)]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            for one in made[:5]:
                assert client.reward(one, 1.0)
            if number is signal.SIGKILL:
                service.restart(number)
            else:
                assert service.end(number) == 0
                assert "Traceback" not in service.said
                service.start()
            for one in made:
                again = client.decide("long", request=one.request)
                assert again.repeated and (again.ticket, again.action) == (one.ticket, one.action)
        entries = client.ledger("long")
        verify(entries)
        kinds = [entry["kind"] for entry in entries]
        assert kinds[0] == "opened" and kinds.count("resumed") == 3
        assert "page" in kinds  # the fold of a clean end
        for one in made:
            assert client.reward(one, 1.0)


@pytest.mark.slow
def test_restarts(tmp_path: Path) -> None:
    with live_service(tmp_path) as service:
        life(service)


@pytest.mark.slow
def test_restarts_on_postgres(tmp_path: Path, postgres: "Postgres") -> None:
    with live_service(tmp_path, database=postgres.new_database()) as service:
        life(service)
        assert service.http.delete("/v1/keys/%00").status_code == 404


@pytest.mark.slow
def test_features(tmp_path: Path) -> None:
    """Contexts as lists and arrays; features that are missing; also after a kill."""
    terms = {"name": "features", "problem": {"kind": "LinearContexts", "dim": 3}}
    with live_service(tmp_path, [terms]) as service, service.client() as client:
        rows = np.eye(3)[:2]
        made = [client.decide("features", context=rows) for _ in range(5)]
        made += [client.decide("features", context=[[0.1, 0.2, 0.3]]) for _ in range(5)]
        for odd in (None, 10**30, 10**400):  # no feature decides whether a round takes place
            made.append(client.decide("features", context=[[0.1, odd, 0.3]]))
        assert {one.action for one in made} <= {0, 1}
        for context in ([0.1], [[0.1, 0.2]], "text", [["a", "b", "c"]], [], None):
            with pytest.raises(ServiceError) as refused:
                client.decide("features", context=context)
            assert refused.value.code == "invalid-context", context
        assert all(client.reward(one, 0.5) for one in made)
        service.restart(signal.SIGKILL)
        assert client.decide("features", context=rows, request=made[0].request).repeated
        assert client.experiment("features")["decided"] == 13


# The command line


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`dpbandits …` here, which is quicker than a process: its exit status, and all that it said."""
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["dpbandits", *(str(one) for one in arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return run


def refusal(command: Command, *arguments: object) -> str:
    """The one sentence by which a command refuses."""
    status, said = command(*arguments)
    assert status == 2, said
    assert "Traceback" not in said
    sentence = said.strip().splitlines()[-1].removeprefix("error: ")
    assert said.count("error: ") == said.count(sentence) == 1, said
    return sentence


@pytest.mark.slow
def test_keys_on_the_command_line(tmp_path: Path, command: Command) -> None:
    database = ("--db", tmp_path / "x.db")
    assert "there is no database" in refusal(command, "keys", "list", *database)
    open_store(str(tmp_path / "x.db")).close()
    status, key = command("keys", "new", "site", "--scope", "decide", "--scope", "reward", *database)
    assert status == 0 and key.startswith("dpb_")
    status, listed = command("keys", "list", "--json", *database)
    assert status == 0
    (row,) = json.loads(listed)
    assert (row["name"], row["scopes"]) == ("site", "decide, reward")
    assert key.strip() not in listed

    def new(name: str, *options: str) -> str:
        return refusal(command, "keys", "new", name, *options, *database)

    assert "there is a key called 'site'" in new("site", "--scope", "decide")
    assert "scope" in new("other", "--scope", "rule")
    assert "rate" in new("other", "--scope", "decide", "--rate", "-1")
    assert "no key is called 'other'" in refusal(command, "keys", "revoke", "other", *database)
    assert command("keys", "revoke", "site", *database) == (0, "revoked site\n")


@pytest.mark.slow
def test_keys_of_a_service_that_runs(tmp_path: Path, command: Command) -> None:
    with live_service(tmp_path, [HEADLINE]) as service:
        _, key = command("keys", "new", "site", "--scope", "decide", "--db", service.database)
        with service.client(key) as client:
            wait_until(lambda: answers(client))
            command("keys", "revoke", "site", "--db", service.database)
            wait_until(lambda: not answers(client))


def answers(client: Client) -> bool:
    try:
        client.decide("headline")
    except ServiceError as error:
        return error.code != "unknown-key"
    return True


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def serve(tmp_path: Path, *arguments: object) -> Sequence[object]:
    return ("serve", *arguments, "--db", tmp_path / "x.db", "--port", free_port())


@pytest.mark.slow
def test_a_port_in_use(tmp_path: Path, command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refusal(command, "serve", "--db", tmp_path / "x.db", "--port", port)
    assert "cannot listen" in sentence and str(port) in sentence
    assert list(tmp_path.iterdir()) == []  # nothing was made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[experiment]\n", "is not TOML"),
        ("\xff", "is not TOML"),
        ("x = 1\n", "[[experiment]]"),
        ("[[experiment]]\nname = 'a'\ncolour = 'red'\n", "colour"),
        ("[[experiment]]\nname = 'A b'\nactions = ['x', 'y']\n", "name"),
        ("[[experiment]]\nname = 'a'\n", "actions"),
        ("[[experiment]]\nname = 'a'\nactions = ['x', 'y']\nprivacy = 'eps=0'\n", "privacy"),
        (2 * "[[experiment]]\nname = 'a'\nactions = ['x', 'y']\n", "same name"),
    ],
    ids=["syntax", "bytes", "table", "term", "name", "actions", "budget", "twice"],
)
def test_files_that_cannot_be_used(tmp_path: Path, command: Command, text: str, said: str) -> None:
    file = tmp_path / "experiments.toml"
    file.write_bytes(text.encode("latin-1"))
    assert said in refusal(command, *serve(tmp_path, file))


@pytest.mark.slow
def test_databases_that_cannot_be_used(tmp_path: Path, command: Command) -> None:
    def use(database: object) -> str:
        return refusal(command, "serve", "--db", database, "--port", free_port())

    assert "cannot be read" in refusal(command, *serve(tmp_path, tmp_path / "none.toml"))
    assert "no option is called --prot" in refusal(command, "serve", "--prot", "1")
    nowhere = tmp_path / "no" / "folder" / "x.db"
    assert str(nowhere) in use(nowhere)
    letter = tmp_path / "letter.db"
    letter.write_text("a letter, not a database\n" * 100)
    assert use(letter) == f"cannot use {letter}: file is not a database"
    sentence = use(f"postgresql://somebody:secret@127.0.0.1:{free_port()}/x")
    assert "cannot use that database" in sentence and "secret" not in sentence


@pytest.mark.slow
def test_what_cannot_be_served(tmp_path: Path, command: Command) -> None:
    """A database in use, other terms, the keyring of another database, a state of gigabytes."""
    with live_service(tmp_path, [HEADLINE]) as service:
        database = ("serve", "--db", service.database)
        mine = (*database, "--keyring", service.keyring)
        with service.client() as client:
            client.decide("headline")
            second = refusal(command, *mine, "--port", free_port())
            assert second.startswith(f"{service.database} is in use by another process")
            client.decide("headline")  # the first is as it was
        service.end()

        other = toml_file(tmp_path, [HEADLINE | {"privacy": "eps=2"}])
        sentence = refusal(command, *mine, other, "--port", free_port())
        assert sentence.startswith("headline was begun with other terms")
        crowd = {"rounds_per_person": 255, "expected_people": 10**9}
        large = toml_file(tmp_path, [HEADLINE | crowd | {"name": "large"}])
        sentence = refusal(command, *mine, large, "--port", free_port())
        assert sentence.startswith("large cannot begin: its state would take 9,631 MiB")
        Keyring(tmp_path / "foreign", create=True)
        foreign = (*database, "--keyring", tmp_path / "foreign", "--port", free_port())
        assert "belongs to another database" in refusal(command, *foreign)
        missing = (*database, "--keyring", tmp_path / "none", "--port", free_port())
        assert "there is no keyring" in refusal(command, *missing)

        service.start()
        with service.client() as client:
            client.decide("headline")
