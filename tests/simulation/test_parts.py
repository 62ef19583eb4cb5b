"""Parts of a simulation: some of its runs, some of its policies, and the whole made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput

WORLD = dpb.worlds.BernoulliArms((0.8, 0.5, 0.2))
POLICIES: dict[str, dpb.Policy] = {
    "private": dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)),
    "not private": dpb.arms.UCB1(),
}


def simulate(policies: Any = POLICIES, **options: Any) -> dpb.Trace:
    settings: dict[str, Any] = {"rounds": 500, "runs": 6, "seed": 3, "progress": False}
    return dpb.simulate(policies, WORLD, **(settings | options))


def same(one: dpb.Trace, other: dpb.Trace) -> bool:
    return one.header == other.header and all(
        np.array_equal(one.curves[label], other.curves[label]) for label in one.policies
    )


@pytest.fixture(scope="module")
def whole() -> dpb.Trace:
    return simulate()


def test_some_runs_are_those_of_the_whole(whole: dpb.Trace) -> None:
    part = simulate(runs=range(2, 5))
    assert same(part, whole[2:5]) and same(part, whole[-4:-1]) and same(whole[:], whole)
    assert part.table()["run"].unique().to_list() == [2, 3, 4]
    assert same(part[1:], whole[3:5])


def test_parts_by_runs_and_by_policy_make_the_whole(whole: dpb.Trace, tmp_path: Path) -> None:
    parts = [
        dpb.Trace.load(
            simulate({label: policy}, runs=runs).save(tmp_path / f"{label}-{runs.start}.parquet")
        )
        for label, policy in POLICIES.items()
        for runs in (range(4, 6), range(4))
    ]
    merged = dpb.Trace.merged(parts)
    assert same(merged, whole)
    assert merged.table().equals(whole.table())
    assert merged.seconds == pytest.approx(
        {x: sum(p.seconds.get(x, 0) for p in parts) for x in POLICIES}
    )


def test_what_is_no_whole_is_refused(whole: dpb.Trace) -> None:
    other = simulate(seed=4)
    for parts, said in (
        ([], "at least one trace"),
        ([whole[:3], other[3:]], "seed differs"),
        ([whole[:3], whole[4:]], "runs 3 to 3 of private are there not at all"),
        ([whole[:3], whole[2:]], "runs 2 to 2 of private are there twice"),
        ([simulate(POLICIES["private"]), simulate(POLICIES["not private"], runs=5)], "ucb1 0 to 4"),
    ):
        with pytest.raises(InvalidInput, match=said):
            dpb.Trace.merged(parts)
    for runs in (slice(6, 9), slice(0, 4, 2), 3):
        with pytest.raises(InvalidInput, match=r"no such runs|expected runs as in trace"):
            whole[runs]  # type: ignore[index]
