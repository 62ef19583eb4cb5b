"""Blocks of runs: played by one state and one set of generators, as if each had its own."""

import itertools
import threading
import time

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.engine import leaves
from dpbandits.engine.streams import run_seed
from dpbandits.policies import policy_kinds
from dpbandits.simulation import run as run_module
from dpbandits.simulation.replicate import _Waiting
from dpbandits.simulation.run import Player, Seeds, Watch, play
from dpbandits.testing import example_environment, example_policies

GRID = np.array([1, 40, 150])
WORLD = dpb.worlds.BernoulliArms((0.8, 0.5, 0.2))
POLICY = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))
SOME = [POLICY, dpb.KernelThompson(privacy=dpb.ApproxDP(1.0, 1e-5))]  # the second pauses
ALL = [example_policies(kind)[0] for kind in policy_kinds().values()]


def together(player: Player, seed: int, runs: list[int]) -> list[run_module.Played]:
    return [one for some in player.play(Seeds.of(seed, runs)(runs)) for one in some]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL, ids=lambda one: one.name())
def test_runs_of_a_block_are_those_played_alone(policy: dpb.Policy) -> None:
    world, runs = example_environment(policy.problem_kind), [0, 5, 2]
    player = Player(policy, world, GRID, Watch())
    for _ in range(2):  # and again, set back to the first
        for run, one in zip(runs, together(player, 3, runs), strict=True):
            alone = play(policy, world, GRID, run_seed(3, run))
            assert alone is not None
            np.testing.assert_array_equal(one.curves, alone.curves)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ALL, ids=lambda one: one.name())
def test_no_two_arrays_that_play_changes_share_memory(policy: dpb.Policy) -> None:
    """Laid out apart, each would then have values of its own."""
    world = example_environment(policy.problem_kind)
    states = *policy.begin(world.problem(100)), world.world()
    named = [one for state in states for one in leaves(state) if isinstance(one[1], np.ndarray)]
    # A matroid has tables, and sets that are cleared before each use: two bases may share those.
    arrays = [array for name, array in named if ".matroid." not in name and array.size]
    for one, other in itertools.combinations(arrays, 2):
        assert not np.may_share_memory(one, other)


@pytest.mark.parametrize("policy", SOME, ids=lambda one: one.name())
@pytest.mark.parametrize(("chunk", "placed"), [(7, True), (170, True), (None, False)])
def test_neither_chunks_nor_how_generators_are_set_change_anything(
    policy: dpb.Policy, chunk: int | None, placed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, runs = example_environment(policy.problem_kind), [0, 5, 2]
    usual = together(Player(policy, world, GRID, Watch()), 3, runs)
    monkeypatch.setattr(run_module, "is_placed", lambda: placed)
    advanced: list[int] = []
    other = together(Player(policy, world, GRID, Watch(advanced.append, chunk=chunk)), 3, runs)
    np.testing.assert_array_equal([x.curves for x in usual], [x.curves for x in other])
    assert sum(advanced) == 3 * 150


def test_the_time_of_a_block_is_shared_by_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(POLICY, WORLD, np.array([20]), Watch(chunk=30))
    clock = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(clock)))  # a chunk takes one second
    found = [[one.seconds for one in some] for some in player.play(Seeds.of(1, range(3))(range(3)))]
    assert found == [[pytest.approx(2 / 3)], [pytest.approx(2 / 3)] * 2]


def test_a_block_that_is_stopped_gives_the_runs_that_are_finished() -> None:
    stop, found = threading.Event(), []
    player = Player(POLICY, WORLD, np.array([40]), Watch(stop=stop, chunk=50))
    for some in player.play(Seeds.of(1, range(9))(range(9))):
        found.extend(some)
        if len(found) == 3:
            stop.set()
    assert len(found) == 3


def test_chunks_last_as_long_as_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """A microsecond a round: a fifth of a second is 200,000; short blocks in between change nothing."""
    now, sizes = [0.0], []
    monkeypatch.setattr(time, "thread_time", lambda: now[0])
    watch = Watch()

    def go_on(rounds: int, last: int = 10**9) -> int:
        sizes.append(rounds)
        now[0] += 1e-6 * min(rounds, last)
        return min(rounds, last)

    for _ in range(6):
        watch.chunk(go_on)
        watch.chunk(lambda rounds: go_on(rounds, last=10))
    assert sizes[0] == 1000 and sizes[-1] == pytest.approx(200_000, rel=0.01)


def test_threads_take_all_runs_once_and_begin_with_different_policies() -> None:
    waiting = _Waiting([(label, run) for run in range(100) for label in "ab"], threads=2)
    first, second = waiting.take(None), waiting.take(None)
    assert first == ("a", list(range(25))) and second == ("b", list(range(25)))
    taken = [first, second]
    while (more := waiting.take("b")) is not None:
        taken.append(more)
    assert sorted((label, run) for label, runs in taken for run in runs) == sorted(
        (label, run) for label in "ab" for run in range(100)
    )
    assert max(len(runs) for _, runs in taken[-4:]) == 1  # so that all end together
