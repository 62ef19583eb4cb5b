"""Leaps: one draw for all rounds between which nothing is decided, in law as round by round."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpbandits as dpb
from dpbandits.engine import Chance, Streams, knows_ahead, pays_many
from dpbandits.engine.loop import Ledger, leap_rounds
from dpbandits.engine.streams import run_seed
from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.experiments.figure import Simulation
from dpbandits.experiments.playing import play as play_figure
from dpbandits.policies import policy_kinds
from dpbandits.policies.arms.shared.episodes import InTurn
from dpbandits.simulation import run as run_module
from dpbandits.simulation.replicate import thin_grid
from dpbandits.simulation.run import Player, Seeds, Watch
from dpbandits.testing import example_policies
from dpbandits.worlds import BernoulliArms, LoggedArms, TruncatedExponentialArms
from dpbandits.worlds.arms import BernoulliWorld

WORLD = BernoulliArms((0.8, 0.5, 0.2))
LOG = LoggedArms(actions=("a", "b"), rewards=((0, 1), (0, 1)), weights=((3, 2), (1, 4)))
POLICY = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))
ALL = [
    one
    for kind in policy_kinds().values()
    for one in example_policies(kind)
    if kind.problem_kind is dpb.Arms
]
LEAPING = [one for one in ALL if issubclass(type(one.begin(dpb.Arms(3, horizon=1000))[0]), InTurn)]


def simulate(policies: Any = POLICY, world: Any = WORLD, **options: Any) -> dpb.Trace:
    settings: dict[str, Any] = {"rounds": 2000, "runs": 4, "seed": 3, "leaps": True, "progress": False}
    return dpb.simulate(policies, world, **(settings | options))


def test_policies_that_play_in_episodes_can_leap_and_no_others() -> None:
    names = {"noise-aware-imed", "adaptive-ucb", "adaptive-klucb", "private-klucb", "private-imed"}
    assert {one.name() for one in LEAPING} == names
    able = [one for one in ALL if knows_ahead(type(one.begin(dpb.Arms(3, horizon=1000))[0]))]
    assert able == LEAPING


@pytest.mark.slow
@pytest.mark.parametrize("policy", LEAPING, ids=lambda one: f"{one.name()}-{one.privacy}")
@pytest.mark.parametrize("world", [WORLD, LOG], ids=lambda one: one.name())
def test_compiled_leaps_are_those_of_plain_python(policy: dpb.Policy, world: Any) -> None:
    grid = thin_grid(100_000, 10)
    found = simulate({"it": policy}, world, rounds=100_000, runs=range(1, 3), points=10).curves["it"]
    for run, curves in zip((1, 2), found, strict=True):
        public, secret = policy.begin(world.problem(100_000))
        ledger = Ledger.on(grid)
        leap_rounds(public, secret, world.world(), Streams.of(run_seed(3, run)), ledger, 100_000)
        np.testing.assert_array_equal(ledger.curves, curves)


@pytest.mark.parametrize("chance", [0.0, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.999, 1.0])
def test_compiled_sums_are_those_of_numpy(chance: float) -> None:
    """Where a batch is so long that nothing but one draw is played: the reward of a run is that draw."""
    first = 10_000_000
    policy = dpb.NoiseAwareIMED(privacy=dpb.NonPrivate(), first_batch=first)
    for rounds in (1, 7, 60, 1000, first):
        trace = simulate(
            {"it": policy}, BernoulliArms((chance, chance)), rounds=rounds, runs=50, points=1
        )
        drawn = [Streams.of(run_seed(3, run)).chance.binomial(rounds, chance) for run in range(50)]
        assert trace.reward("it")[:, -1].tolist() == drawn


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize("chunk", [1, 170, 100_000])
def test_neither_chunks_nor_threads_change_anything(
    chunk: int, placed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = simulate(runs=6)
    np.testing.assert_array_equal(
        simulate(runs=6, threads=3).curves[POLICY.name()], usual.curves[POLICY.name()]
    )
    monkeypatch.setattr(run_module, "is_placed", lambda: placed)
    advanced: list[int] = []
    player = Player(POLICY, WORLD, thin_grid(2000), Watch(advanced.append, chunk=chunk), leaps=True)
    some = player.play(Seeds.of(3, range(6))(range(6)))
    np.testing.assert_array_equal(
        [one.curves for found in some for one in found], usual.curves[POLICY.name()]
    )
    assert sum(advanced) == 6 * 2000


def test_leaps_end_where_curves_are_kept() -> None:
    """So other `points` are other draws; and without rounds between two of them, all are alone."""
    few, many = simulate(points=1), simulate(points=100)
    assert not np.array_equal(few.reward(POLICY.name())[:, -1], many.reward(POLICY.name())[:, -1])
    for trace in (few, many):
        curves = trace.curves[POLICY.name()]
        np.testing.assert_allclose(curves[:, :, 2], 0.8 * np.tile(trace.rounds, (4, 1)))
        assert np.all(np.diff(curves, axis=1) >= 0.0)


_RUNS, _ROUNDS, _ERRORS = 4000, 3000, 5.0
LAWS = [
    *((policy, WORLD) for policy in (
        POLICY,
        dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(0.5)),
        dpb.arms.PrivateIMED(privacy=dpb.PureDP(1.0)),
        dpb.arms.AdaptiveKLUCB(privacy=dpb.PureDP(1.0)),
    )),
    (POLICY, LOG),
    (POLICY, BernoulliArms((0.02, 0.03, 0.9, 0.01))),
]  # fmt: skip


def _differences(one: dpb.Trace, other: dpb.Trace) -> NDArray[np.float64]:
    """Of the means of regret and reward on the way and at the end, in standard errors."""
    points = [one.rounds.size // 2, -1]
    found = [trace.curves["it"][:, points, :2].reshape(_RUNS, -1) for trace in (one, other)]
    error = np.sqrt((found[0].var(axis=0, ddof=1) + found[1].var(axis=0, ddof=1)) / _RUNS)
    return np.asarray(np.abs(found[0].mean(axis=0) - found[1].mean(axis=0)) / error)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "world"), LAWS, ids=lambda one: one.name())
def test_the_law_is_that_of_round_by_round(policy: dpb.Policy, world: dpb.worlds.Environment) -> None:
    """Four means, each within five standard errors: by normal tails one in 400,000 fails by chance."""
    options: dict[str, Any] = {"rounds": _ROUNDS, "runs": _RUNS, "points": 4}
    leaping = simulate({"it": policy}, world, **options)
    one_by_one = simulate({"it": policy}, world, leaps=False, seed=4, **options)
    assert np.all(_differences(leaping, one_by_one) < _ERRORS)


class OtherWorld(BernoulliWorld):
    """Pays less where it pays many."""

    def pay_many(self, action: int, count: int, chance: Chance) -> float:
        return float(chance.binomial(count, 0.9 * self.means[action]))


class PaysOtherwise(BernoulliWorld):
    """Says nothing of how it pays many."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        return 1.0


class OffersOtherwise(BernoulliWorld):
    """Draws something in every round."""

    def offer(self, chance: Chance) -> None:
        chance.random()


class SettlesOtherwise(BernoulliWorld):
    """Income is not what is paid: that of many rounds is not that of their sum."""

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        return self.best, self.means[action], max(0.0, reward - 0.5)


@pytest.mark.slow
def test_control_another_law_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"rounds": _ROUNDS, "runs": _RUNS, "points": 4}
    one_by_one = simulate({"it": POLICY}, leaps=False, seed=4, **options)
    monkeypatch.setattr(
        BernoulliArms, "world", lambda self: OtherWorld(np.array(self.means), max(self.means))
    )
    assert np.any(_differences(simulate({"it": POLICY}, **options), one_by_one) > 2 * _ERRORS)


def test_a_world_that_pays_otherwise_than_it_inherited_cannot_leap() -> None:
    assert pays_many(BernoulliWorld) and pays_many(OtherWorld)
    assert not any(pays_many(one) for one in (PaysOtherwise, OffersOtherwise, SettlesOtherwise))


def test_a_trace_says_so_and_traces_are_not_mixed(tmp_path: Path) -> None:
    leaping, usual = simulate(), simulate(leaps=False)
    assert leaping.header["leaps"] and leaping.leaps and not usual.leaps
    assert "leaps" not in usual.header
    more = simulate(runs=range(4, 6), leaps=False)
    with pytest.raises(InvalidInput, match="these traces are not of one simulation: leaps differs"):
        dpb.Trace.merged([leaping, more])
    whole = dpb.Trace.merged([leaping, simulate(runs=range(4, 6))])
    np.testing.assert_array_equal(whole.curves[POLICY.name()], simulate(runs=6).curves[POLICY.name()])
    leaping.save(tmp_path / "trace.parquet")
    assert dpb.Trace.load(tmp_path / "trace.parquet").leaps


def test_a_checkpoint_of_leaps_is_not_one_of_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.npz"

    def interrupt(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(
            run_module.Watch, "chunk", lambda self, go_on, left=[3]: _some(self, go_on, left)
        )
        with pytest.raises(KeyboardInterrupt):
            simulate(runs=40, threads=1, checkpoint=path)
    with pytest.raises(SaveFileError, match="checkpoint of another simulation"):
        simulate(runs=40, leaps=False, checkpoint=path)
    found = simulate(runs=40, checkpoint=path).curves[POLICY.name()]
    np.testing.assert_array_equal(found, simulate(runs=40).curves[POLICY.name()])


def _some(watch: Watch, go_on: Any, left: list[int]) -> tuple[int, float]:
    """Some chunks, then Ctrl-C."""
    left[0] -= 1
    if left[0] < 0:
        raise KeyboardInterrupt
    return go_on(5000), 0.1


def test_simulations_of_figures_may_leap(tmp_path: Path) -> None:
    one = Simulation(policies={"it": POLICY}, environment=WORLD, rounds=2000, runs=4, seed=3, leaps=True)
    found = play_figure({"a": one}, tmp_path, "a", progress=False)["a"]
    alone = simulate({"it": POLICY})
    assert found.header == alone.header
    np.testing.assert_array_equal(found.curves["it"], alone.curves["it"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"policies": dpb.arms.LazyUCB(privacy=dpb.PureDP(1.0))}, "^lazy-ucb cannot be played in leaps"),
        ({"policies": {"x": dpb.arms.GaussianThompson()}}, "^x cannot be played in leaps"),
        ({"world": TruncatedExponentialArms((1.0, 2.0))}, "^truncated-exponential-arms cannot be"),
        ({"in_flight": 2}, "one at a time, without in_flight"),
        ({"device": "cuda"}, 'not with device="cuda"'),
    ],
)
def test_what_cannot_be_played_in_leaps_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        simulate(**options)
