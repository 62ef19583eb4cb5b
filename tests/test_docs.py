"""Documents that cannot lie: what they show is run, what is generated is up to date."""

import contextlib
import inspect
import re
import runpy
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
from dpbandits.experiments import FIGURES, figure_named, tails
from dpbandits.experiments.documentation import sections, would_lower, write_reproduction
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.reproduce import reproduce
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
        [sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _rows(text: str) -> list[list[str]]:
    """The table rows of a page without what was measured: claim, verdict, scale."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[row[0], row[2], row[3]] for row in cells if len(row) == 4]


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
