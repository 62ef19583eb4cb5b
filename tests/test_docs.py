"""Documents that cannot lie: what they show is run, what is generated is up to date."""

import ast
import contextlib
import inspect
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpbandits as dpb
from dpbandits import errors
from dpbandits.audit.broken import BROKEN
from dpbandits.cli.main import app
from dpbandits.engine.verbs import _SIGNATURES
from dpbandits.experiments import FIGURES, documentation, figure_named, tails
from dpbandits.experiments.documentation import (
    ages,
    marked,
    sections,
    would_lower,
    write_reproduction,
)
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.reproduce import reproduce
from dpbandits.experiments.stamps import code_stamp, meaning, modules_of
from dpbandits.policies import policy_kinds
from dpbandits.recipes import _KINDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_readmes_example_runs_and_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    shown = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert len(code) == len(shown) == 1
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in code:
        exec(block, names)
    printed = capsys.readouterr().out
    assert shown[0] in printed
    assert (tmp_path / "regret.svg").read_text().count("<path") > 20
    lines = [line for line in code[0].splitlines() if line.strip()]
    assert len(lines) <= 15


def test_the_page_of_adapters_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adapters.md").read_text(), re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        exec(block, {})


def test_the_page_about_logs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/offline.md").read_text(), re.DOTALL)
    for block in blocks:
        loose = "private_norm" in block
        with pytest.warns(errors.LooseBound) if loose else contextlib.nullcontext():
            exec(block, names)
    printed = capsys.readouterr().out
    assert "max_norm 0.3" in printed and "1.008-GDP" in printed
    assert 1.5 * names["fitting"] < names["loose"]
    assert "NoiseAwareIMED: 0." in printed and "SNIPS 0.1" in printed


def test_the_page_about_the_best_arm_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    page = (ROOT / "docs/identification.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "recommended: " in printed and "best-arm-race  1-DP" in printed
    assert 1.0 < names["found"].samples.mean() / names["found"].least_samples < 20.0


def test_the_example_on_own_data_runs_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/own-data.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert (tmp_path / "kept.png").stat().st_size > 10_000


def test_the_readme_names_exactly_the_two_commands() -> None:
    commands = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test", "bench", "docs", "figures"} <= set(targets)


def test_links_lead_somewhere() -> None:
    """Where a page is read in the repository. Pages that are made for the site are checked there."""
    made = ("reference/policies/", "reference/api/", "gallery.md")
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "build" not in path.parts]
    for page in [*ROOT.glob("*.md"), *pages]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            target = (page.parent / link).resolve()
            found = target.is_relative_to(ROOT / "docs") and str(target.relative_to(ROOT / "docs"))
            drawn = (
                target.suffix == ".svg" and page.parent == target.parent
            )  # by the page's own examples
            drawn = drawn or target.name == "replay.svg"
            assert target.exists() or drawn or (found or "").startswith(made), (
                f"{page.name} links to {link}"
            )


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/make.py", "check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    listed = ages((ROOT / "docs/reproduction.md").read_text())
    assert all(name in done.stdout for name in (*listed.older, *listed.unknown))


def test_a_wrong_word_to_make_is_refused_and_a_stale_page_is_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path)
    page = tmp_path / "docs/cli.md"
    page.write_text(page.read_text().replace("dpbandits", "something", 1))
    for word, said in (
        ("check", "out of date, run `docs/make.py pages`: cli.md"),
        ("all", "invalid choice"),
    ):
        done = subprocess.run(
            [sys.executable, "docs/make.py", word], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode != 0 and said in done.stderr


def _rows(text: str) -> list[list[str]]:
    """The rows of a section's claims without what was measured: claim, criterion, verdict, scale."""
    tables = re.findall(r"(?m)^\| (?:the paper says|our goal) \|.*\n(?:\|.*\n)+", text)
    cells = [line.strip("| ").split(" | ") for table in tables for line in table.splitlines()]
    return [[*row[:-3], *row[-2:]] for row in cells]


def test_reproduction_is_what_a_new_run_at_paper_scale_finds(tmp_path: Path) -> None:
    results = {
        name: (figure, reproduce(figure, Scale.paper, tmp_path / name, progress=False), Scale.paper)
        for name, figure in FIGURES.items()
        if not figure.minutes and figure.missing() is None
    }
    fresh = sections(write_reproduction(tmp_path, results).read_text())
    kept = sections((ROOT / "docs/reproduction.md").read_text())
    # Figures that take minutes are made by `make figures` only.
    assert set(kept) == {*FIGURES, *(one.name for one in tails.ALL)} and set(fresh) == set(results)
    for name, text in fresh.items():
        # Last digits may differ between processors; claims, verdicts and scales may not.
        assert _rows(text) == _rows(kept[name])
    assert sum(len(_rows(text)) for text in fresh.values()) > 15


def test_a_section_at_paper_scale_is_never_lowered(tmp_path: Path) -> None:
    figure = figure_named("ou-fig1")
    result = reproduce(figure, Scale.paper, tmp_path / "x", progress=False)
    page = tmp_path / "reproduction.md"
    for scale, shown in ((Scale.quick, "quick"), (Scale.paper, "paper"), (Scale.quick, "paper")):
        write_reproduction(tmp_path, {figure.name: (figure, result, scale)})
        assert f"--scale {shown}`" in page.read_text()
    assert would_lower(ROOT / "docs", "shariff-fig2", Scale.quick)


def test_sections_say_when_they_are_older_than_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, other = figure_named("ou-fig1"), figure_named("shariff-fig1")
    result = reproduce(figure, Scale.paper, tmp_path / "x", progress=False)
    kept = re.sub(
        r"<!-- code: .*\n", "", sections((ROOT / "docs/reproduction.md").read_text())[other.name]
    )
    stamped = kept.replace("\n![", "<!-- code: 0123456789ab -->\n\n![", 1)
    page = tmp_path / "reproduction.md"
    page.write_text("# Head\n" + stamped)
    write_reproduction(tmp_path, {figure.name: (figure, result, Scale.paper)})
    text = page.read_text()
    assert f"<!-- code: {code_stamp(figure)} -->" in text and "code: 0123456789ab" in text
    assert ages(text) == ([other.name], [])
    assert marked(text).count(" · older than its code\n") == 1
    assert marked(marked(text)) == marked(text)
    assert sections(marked(text))[figure.name] == sections(text)[figure.name]
    # Its code is changed, and changed back.
    monkeypatch.setattr(documentation, "code_stamp", lambda one: "0123456789ab")
    aged = marked(text)
    assert ages(text).older == [figure.name] and "ou-fig1 --scale paper` · older than its code" in aged
    monkeypatch.setattr(documentation, "code_stamp", code_stamp)
    assert sections(marked(aged))[figure.name] == sections(text)[figure.name]
    without = re.sub(r"<!-- code: .*\n", "", text)
    assert set(ages(without).unknown) == {figure.name, other.name}


def test_stamps_follow_the_code_that_determines_numbers_and_no_other() -> None:
    modules = modules_of(figure_named("mishra-ucb"))
    ours = {name.removeprefix("dpbandits.") for name in modules}
    assert {"experiments.mishra_2015.ucb", "policies.arms.tree_ucb", "worlds.arms"} <= ours
    assert "sums.binary_tree" in ours and "privacy.budgets" in ours  # imported by its policies
    assert not {"policies.linear.lin_ucb", "worlds.movielens"} & ours
    assert not any(name.startswith(("engine", "simulation", "reports")) for name in ours)
    assert "experiments.ou_2024.setting" in {
        name.removeprefix("dpbandits.") for name in modules_of(figure_named("ou-fig2"))
    }
    program = 'def f(x):\n    """Say."""\n    return x + 1  # why\n'
    same, other = "def f(x): return (x+1)", "def f(x): return x + 2"
    assert meaning(ast.parse(program)) == meaning(ast.parse(same)) != meaning(ast.parse(other))


def test_every_command_and_verb_is_documented() -> None:
    pages = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
    for command in app.registered_commands:
        assert f"## dpbandits {command.name}" in pages["cli.md"]
        assert f"dpbandits {command.name}" in pages["start.md"]
    for name, signature in _SIGNATURES.items():
        assert f"`{name}({', '.join(signature)})`" in pages["architecture.md"]
    for kind in BROKEN:
        assert kind.__doc__


def test_the_error_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^([│├└─ ]*)(\w+)", errors.__doc__.split("```")[1], re.MULTILINE)
    found = {name: len(indent) // 4 for indent, name in drawn}
    real = {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.DPBanditsError)
    }
    assert set(found) == set(real)
    for name, kind in real.items():
        depth = len([k for k in kind.__mro__ if k in real.values()]) - 1
        assert found[name] == depth, name


def test_public_names_are_listed_for_type_checkers_and_real() -> None:
    families = (dpb.arms, dpb.linear, dpb.matroids, dpb.kernels)
    for module in (
        dpb,
        *families,
        dpb.local,
        dpb.worlds,
        dpb.privacy,
        dpb.audit,
        dpb.testing,
        dpb.adapters,
    ):
        assert len(module.__all__) == len(set(module.__all__)), module.__name__
        source = Path(str(module.__file__)).read_text()
        # Type checkers read the list: written out, and what is added is a module's own list.
        assert re.search(r"^__all__ = \[[\s\w\",]+\]$", source, re.MULTILINE), module.__name__
        assert re.findall(r"__all__ \+= (\S+)", source) in ([], ["_policies.__all__"])
        for name in module.__all__:
            assert getattr(module, name) is not None
    for kind in policy_kinds().values():
        assert [kind.__name__ in family.__all__ for family in families].count(True) == 1
        assert issubclass(kind, dpb.local.LocalPolicy) == (kind.__name__ in dpb.local.__all__)
    for problem in (dpb.Arms, dpb.LinearContexts, dpb.MatroidBases, dpb.KernelContexts):
        for budget in (dpb.GaussianDP(1.0), dpb.NonPrivate()):
            found = dpb.recommend(problem.testing.example(100), budget).policy
            assert type(found).__name__ in dpb.__all__


def test_every_option_of_every_recipe_has_a_sentence() -> None:
    kinds = [kind for named in _KINDS.values() for kind in named.values()]
    ours = [kind for kind in kinds if kind.__module__.startswith("dpbandits.")]
    assert len(ours) > 70
    for kind in ours:
        for option in kind.options():
            assert re.fullmatch(r"\S.*\.", option.about), f"{kind.__name__}.{option.name}"


def test_running_the_package_is_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dpbandits", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("dpbandits", run_name="__main__")
    assert stop.value.code == 0


def test_nothing_points_to_a_registry_or_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.split():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".cfg"} and path != Path(__file__):
            text = path.read_text()
            for word in ("pypi.org", "files.pythonhosted", "/root/", "/home/", "index-url"):
                assert word not in text, f"{name} mentions {word}"
