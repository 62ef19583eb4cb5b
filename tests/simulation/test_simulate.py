"""Simulation: one answer whatever the threads, and nothing lost when it is interrupted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpbandits as dpb
from dpbandits.engine.streams import run_seed
from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.policies.testing import rehearse
from dpbandits.simulation import replicate
from dpbandits.simulation import run as run_module
from dpbandits.simulation.replicate import thin_grid
from dpbandits.simulation.timing import Schedule
from dpbandits.testing import example_environment
from dpbandits.testing.driving import drive

WORLD = dpb.worlds.BernoulliArms((0.8, 0.5, 0.2))
POLICIES: dict[str, dpb.Policy] = {
    "private": dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)),
    "not private": dpb.arms.GaussianThompson(),
}


def simulate(policies: Any = None, **options: Any) -> dpb.Trace:
    settings: dict[str, Any] = {"rounds": 2000, "runs": 4, "seed": 3, "progress": False}
    return dpb.simulate(policies or POLICIES, WORLD, **(settings | options))


def same(one: dpb.Trace, other: dpb.Trace) -> bool:
    return one.header == other.header and all(
        np.array_equal(one.curves[label], other.curves[label]) for label in one.policies
    )


@pytest.fixture(scope="module")
def trace() -> dpb.Trace:
    return simulate()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_nothing(trace: dpb.Trace, threads: int) -> None:
    assert same(simulate(threads=threads), trace)


def test_a_policys_curves_do_not_depend_on_its_company_or_label(trace: dpb.Trace) -> None:
    alone = simulate({"x": POLICIES["private"]})
    np.testing.assert_array_equal(alone.regret("x"), trace.regret("private"))


def test_runs_differ_and_the_first_ones_stay_the_same(trace: dpb.Trace) -> None:
    more = simulate(runs=6)
    np.testing.assert_array_equal(more.regret("private")[:4], trace.regret("private"))
    assert len({tuple(run) for run in more.reward("private")}) == 6
    assert not np.array_equal(simulate(seed=4).regret("private"), trace.regret("private"))


def test_common_random_numbers_reduce_the_variance_of_a_difference() -> None:
    """Two nearly equal policies: paired runs differ less than runs paired at random."""
    pair = {
        f"{b}": dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=b) for b in (200, 201)
    }
    found = simulate(pair, runs=40)
    one, other = (found.reward(label)[:, -1] for label in pair)
    assert (one - other).var() < 0.5 * (one - np.roll(other, 1)).var()


def test_the_curves_are_those_of_a_driven_learner(trace: dpb.Trace) -> None:
    seed = run_seed(3, 2)
    learner = rehearse(POLICIES["private"], WORLD.problem(2000), seed=seed)
    totals = drive(learner, WORLD, seed, 2000).totals
    np.testing.assert_array_equal(trace.curves["private"][2, -1], totals)


def test_the_grid_ends_at_the_last_round_and_is_thin() -> None:
    for rounds in (1, 2, 10, 999, 10**5, 5 * 10**7):
        grid = thin_grid(rounds)
        assert grid[0] >= 1 and grid[-1] == rounds and grid.size <= 150
        assert (np.diff(grid) > 0).all()


def test_without_a_seed_a_fresh_one_is_kept(trace: dpb.Trace) -> None:
    first, second = simulate(seed=None), simulate(seed=None)
    assert first.header["seed"] != second.header["seed"]
    assert same(simulate(seed=first.header["seed"]), first)


def test_summary_and_table(trace: dpb.Trace) -> None:
    table, summary = trace.table(), trace.summary()
    last = table.filter((pl.col("policy") == "private") & (pl.col("round") == 2000))["regret"]
    row = next(row for row in summary if row["policy"] == "private")
    assert summary.frame().to_dicts() == list(summary)
    assert str(summary).splitlines()[0].split()[:3] == ["policy", "guarantee", "mean"]
    assert len(str(summary).splitlines()) == 1 + len(POLICIES)
    assert last.len() == 4
    assert row["mean_regret"] == pytest.approx(float(last.mean()))  # type: ignore[arg-type]
    assert row["standard_error"] == pytest.approx(float(last.std()) / 2)  # type: ignore[arg-type]
    assert row["worst_run"] == last.max() and row["guarantee"] == "1-GDP"
    assert row["ns_per_round"] > 0
    empirical = trace.empirical_regret("private")[:, -1]
    np.testing.assert_allclose(empirical, 0.8 * 2000 - trace.reward("private")[:, -1])


def test_parquet_gives_the_trace_back_with_all_that_made_it(trace: dpb.Trace, tmp_path: Path) -> None:
    found = dpb.Trace.load(trace.save(tmp_path / "t.parquet"))
    assert same(found, trace) and found.seconds == trace.seconds
    assert dpb.Policy.from_dict(found.header["policies"]["private"]) == POLICIES["private"]
    assert found.guarantee("private") == POLICIES["private"].guarantee(WORLD.problem(2000))
    for key in ("seed", "version", "numpy", "numba", "environment"):
        assert found.header[key] is not None


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a trace at all"])
def test_a_damaged_trace_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(SaveFileError, match="not a trace"):
        dpb.Trace.load(tmp_path / "t.parquet")
    with pytest.raises(SaveFileError, match="there is no trace"):
        dpb.Trace.load(tmp_path / "none.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(SaveFileError, match="not a trace"):
        dpb.Trace.load(tmp_path / "t.parquet")


def watched(look: Callable[[list[int], list[Any]], None]) -> Any:
    """As `begin`, with a look at the runs that were asked for, and at those that are finished."""

    def begin(*given: Any, **options: Any) -> Any:
        play_runs = run_module.begin(*given, **options)

        def play(runs: list[int]) -> Iterator[Any]:
            look(runs, [])
            for some in play_runs(runs):
                yield some
                look([], some)

        return play

    return begin


def test_interrupted_and_resumed_equals_uninterrupted(
    trace: dpb.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, finished, asked = tmp_path / "kept.npz", [], []

    def interrupt(_: list[int], some: list[Any]) -> None:
        finished.extend(some)
        if len(finished) >= 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(replicate, "begin", watched(interrupt))
    with pytest.raises(KeyboardInterrupt):
        simulate(checkpoint=path, threads=1)
    assert path.exists() and 3 <= len(finished) < 8
    monkeypatch.setattr(replicate, "begin", watched(lambda runs, _: asked.extend(runs)))
    assert same(simulate(checkpoint=path), trace)
    assert len(asked) == 8 - len(finished)  # what was finished was not played again
    assert not path.exists()


def test_a_checkpoint_of_another_simulation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    path.write_bytes(b"junk")
    with pytest.raises(SaveFileError, match="not a checkpoint"):
        simulate(checkpoint=path)
    from dpbandits.simulation.checkpoint import Checkpoint
    from dpbandits.simulation.run import Played

    Checkpoint(path, {"other": 1}).write({("x", 0): Played(np.zeros((3, 3)), 0.1)})
    with pytest.raises(SaveFileError, match="another simulation"):
        simulate(checkpoint=path)


def test_an_error_in_one_run_stops_the_others_and_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(replicate, "begin", fail)
    with pytest.raises(ZeroDivisionError, match="boom"):
        simulate()


@pytest.mark.parametrize(
    ("policies", "options", "says"),
    [
        ({}, {}, "at least one policy"),
        ([dpb.arms.GaussianThompson()] * 2, {}, "same name"),
        ({"x": 1}, {}, "expected a policy for 'x'"),
        (None, {"rounds": 0}, "rounds"),
        (None, {"rounds": 1e5}, "rounds"),
        (None, {"runs": 0}, "runs"),
        (None, {"runs": range(3, 3)}, "expected runs as a number or as range"),
        (None, {"runs": range(0, 6, 2)}, "expected runs as a number or as range"),
        (None, {"seed": -1}, "seed"),
        (None, {"threads": -1}, "threads"),
    ],
)
def test_bad_arguments_are_named(policies: Any, options: dict[str, Any], says: str) -> None:
    settings: dict[str, Any] = {"rounds": 10, "runs": 1, "seed": 0, "progress": False} | options
    with pytest.raises(InvalidInput, match=says):
        dpb.simulate(POLICIES if policies is None else policies, WORLD, **settings)


def test_an_unknown_label_suggests_the_nearest(trace: dpb.Trace) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'private'"):
        trace.regret("privat")


def test_the_plot_has_each_limit_once_and_its_legend_hides_no_curve(tmp_path: Path) -> None:
    world = dpb.worlds.BernoulliArms((0.9, 0.1))
    budgets = (dpb.PureDP(0.1), dpb.PureDP(1.0), dpb.GaussianDP(1.0))
    policies = {str(held): dpb.arms.LazyUCB(privacy=held) for held in budgets} | {
        "twin": dpb.arms.LazyUCB(privacy=dpb.NonPrivate())
    }
    figure = dpb.simulate(policies, world, 100, 2, seed=1, progress=False).plot()
    (axes,) = figure.axes
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    drawn = [label for label in lines if label.startswith("limit")]
    assert drawn == [f"limit for large t, {name}" for name in ("0.1-DP", "1-DP", "without privacy")]
    last = float(np.asarray(lines[drawn[0]].get_ydata())[-1])
    assert last == pytest.approx(dpb.limits.lai_robbins((0.9, 0.1), 0.1) * np.log(100))
    assert axes.get_legend() is None and len(figure.legends[0].get_texts()) == 7
    # Where nothing is known there is no such line.
    open_world = dpb.simulate(dpb.LinUCB(), dpb.worlds.SphereContexts(), 20, 2, seed=1, progress=False)
    assert open_world.limits == {} and len(open_world.plot().axes[0].get_lines()) == 1


def test_the_plot_is_the_same_file_every_time(trace: dpb.Trace, tmp_path: Path) -> None:
    trace.plot(tmp_path / "a.svg")
    trace.plot(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_rounds_in_flight_go_on_for_as_many_blocks_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_block = simulate(in_flight=3, runs=1)
    monkeypatch.setattr(Schedule, "size", 5)
    assert same(simulate(in_flight=3, runs=1), in_one_block)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "tpu"}, "expected device to be one of 'cpu', 'cuda', got 'tpu'"),
        ({"device": "cuda", "in_flight": 3}, 'device="cuda" plays rounds one at a time'),
        ({"device": "cuda", "runs": 10**8}, "expected runs"),
    ],
)
def test_what_a_gpu_cannot_play_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        simulate(**options)


def test_policies_that_pause_are_refused_on_a_gpu() -> None:
    policy = dpb.kernels.Capri(privacy=dpb.GaussianDP(1.0))
    world = example_environment(policy.problem_kind)
    with pytest.raises(InvalidInput, match="capri pauses between rounds for plain Python"):
        dpb.simulate(policy, world, 100, 2, device="cuda")


def test_a_trace_says_what_made_it(trace: dpb.Trace) -> None:
    assert (trace.device, trace.generator) == ("cpu", "PCG64")
