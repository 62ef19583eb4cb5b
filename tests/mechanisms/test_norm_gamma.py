"""The Gamma mechanism: its law, its price in the replay test, and trees of it."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest

import dpbandits as dpb
from dpbandits.audit import replay, sample
from dpbandits.audit.recording import Draw, ForcedNoise, Mismatch, RecordingNoise, Steer
from dpbandits.audit.replay import draws_cost
from dpbandits.engine.philox import philox_key, start_philox
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.mechanisms.gram import pair_size, pair_widths
from dpbandits.mechanisms.norm_gamma import draw_norm_gamma
from dpbandits.policies.linear import TreeContextualThompson, TreeContextualUCB
from dpbandits.policies.linear.tree_contextual_ucb import row_change
from dpbandits.privacy import curves
from dpbandits.testing import check_policy

pytestmark = pytest.mark.slow

ONE = dpb.PureDP(1.0)
WIDTHS = np.array([1.0, 2.0, 0.5, 3.0])


@numba.njit
def draw_many(noise: Any, location: Any, out: Any, scale: float, widths: Any) -> None:
    for row in range(out.shape[0]):
        draw_norm_gamma(noise, location, out[row], scale, widths)


def drawn(scale: float, widths: Any, runs: int = 20_000) -> Any:
    out = np.zeros((runs, widths.size))
    draw_many(np.random.default_rng(0), np.zeros(widths.size), out, scale, widths)
    return out


# Nine tests at 10⁻⁶ each: a right sampler fails once in 100,000 seeds.
LEVEL = 1e-6


def law_p_values(noise: Any, scale: float, widths: Any) -> list[float]:
    """The norm is a Gamma number; squared coordinates of the direction are Beta, in any direction."""
    size = widths.size
    plain = noise / widths
    norms = np.linalg.norm(plain, axis=1)
    units = plain / norms[:, None]
    along = [units[:, i] for i in range(size)] + [units.sum(axis=1) / math.sqrt(size)]
    sphere = beta(0.5, (size - 1) / 2).cdf
    return [
        kstest(norms, gamma(size, scale=scale).cdf).pvalue,
        *(kstest(values**2, sphere).pvalue for values in along),
        *(kstest(np.sign(values) * norms, _mirrored(size, scale)).pvalue for values in along[:3]),
    ]


def _mirrored(size: int, scale: float) -> Any:
    """The law of a Gamma number with a random sign."""
    law = gamma(size, scale=scale)
    return lambda x: np.where(x < 0.0, 0.5 * law.sf(-x), 0.5 + 0.5 * law.cdf(x))


def test_the_law_is_that_of_its_density() -> None:
    noise = drawn(1.3, WIDTHS)
    assert min(law_p_values(noise, 1.3, WIDTHS)) > LEVEL
    # The controls: five percent more width; independent Laplace numbers; one width another.
    assert min(law_p_values(drawn(1.365, WIDTHS), 1.3, WIDTHS)) < LEVEL
    laplace = np.random.default_rng(0).laplace(0.0, 1.3 * WIDTHS, noise.shape)
    assert min(law_p_values(laplace, 1.3, WIDTHS)) < LEVEL
    assert min(law_p_values(noise, 1.3, WIDTHS * [1.0, 1.0, 1.1, 1.0])) < LEVEL


def test_its_deviation_is_what_the_tree_says() -> None:
    """w s √(n+1) for each number, within five standard errors of a variance (kurtosis below 6)."""
    runs = 40_000
    found = drawn(0.7, WIDTHS, runs).std(axis=0) / (0.7 * WIDTHS * math.sqrt(WIDTHS.size + 1))
    error = math.sqrt(5.0 / (4.0 * runs))
    assert (np.abs(found - 1.0) < 5 * error).all()
    assert (np.abs(found * math.sqrt(5 / 4) - 1.0) > 5 * error).all()  # the control: √n
    public, secret = TreeContextualUCB(privacy=ONE, noise="gamma").begin(
        dpb.LinearContexts(2, horizon=8)
    )
    context, generator = (np.zeros((3, 2)),), np.random.default_rng(1)
    for _ in range(3):  # two nodes of three levels each
        public.observe(secret, context, 0, 0.0)
        public.release(secret, generator)
    assert public.tree.variance[0] == pytest.approx(2 * 3.0**2 * (pair_size(2) + 1))


def test_plain_compiled_and_recorded_draws_are_the_same_to_the_bit() -> None:
    location = np.random.default_rng(1).normal(size=4)
    plain, compiled, philox = (np.zeros((50, 4)) for _ in range(3))
    draw_many.py_func(np.random.default_rng(2), location, plain, 1.7, WIDTHS)
    draw_many(np.random.default_rng(2), location, compiled, 1.7, WIDTHS)
    draw_many.py_func(start_philox(philox_key(3), 0, 0), location, philox, 1.7, WIDTHS)
    recorder, recorded = RecordingNoise(np.random.default_rng(2), Steer()), np.zeros((50, 4))
    draw_many.py_func(recorder, location, recorded, 1.7, WIDTHS)
    assert plain.tobytes() == compiled.tobytes() == recorded.tobytes() and (plain != 0).all()
    assert np.isfinite(philox).all() and (philox != plain).all()
    assert recorder.numbers == 200 and len(recorder.draws) == 50
    with pytest.raises(ValueError, match="3 widths"):
        draw_norm_gamma(np.random.default_rng(2), location, np.zeros(4), 1.0, np.ones(3))


# ------------------------------------------------------------------------------------ the replay test


def test_a_moved_vector_is_priced_by_its_norm() -> None:
    def moved(shift: Any, scale: Any) -> Any:
        where = np.zeros(len(shift))
        return tuple(Draw("norm_gamma", x, scale, where) for x in (where, np.array(shift)))

    one = moved([3.0, 4.0], 10.0)
    assert draws_cost([one], ONE) == pytest.approx(0.5)  # in L1 it would be 0.7
    assert draws_cost([one, one], ONE) == pytest.approx(1.0)  # draws add up, numbers do not
    assert draws_cost([moved([3.0, 4.0], np.array([3.0, 4.0]))], ONE) == pytest.approx(math.sqrt(2.0))
    assert draws_cost([moved([1.0, 0.0], 0.0)], ONE) == math.inf
    assert draws_cost([moved([math.nan, 0.0], 1.0)], ONE) == math.inf
    assert draws_cost([one], dpb.GaussianDP(1.0)) == pytest.approx(curves.pure_mu(0.5))


def test_a_forced_vector_must_be_the_same_but_for_its_location() -> None:
    recorder, location, result = (
        RecordingNoise(np.random.default_rng(0), Steer(1)),
        np.ones(4),
        np.zeros(4),
    )
    draw_norm_gamma(recorder, location, result, 0.5, WIDTHS)
    assert result[1] < -900.0 and (np.abs(np.delete(result, 1)) < 100.0).all()  # which was steered
    forced, again = ForcedNoise(), np.zeros(4)
    forced.start_round(recorder.draws)
    draw_norm_gamma(forced, location + 1.0, again, 0.5, WIDTHS)
    assert again.tolist() == result.tolist()
    for scale, size in ((0.6, 4), (0.5, 3)):
        forced.start_round(recorder.draws)
        with pytest.raises(Mismatch):
            draw_norm_gamma(forced, np.zeros(size), np.zeros(size), scale, WIDTHS[:size])


@dataclass(frozen=True, kw_only=True)
class _Broken(TreeContextualUCB):
    """Noise of the Gamma mechanism, `narrow` times what it should be."""

    abstract: ClassVar[bool] = True
    narrow: float = 1.0
    even: bool = False

    def begin(self, problem: Any) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        for scale in (public.tree.inner, public.tree.root):
            scale *= self.narrow
        if self.even:
            public.tree.widths[:] = 1.5
        return public, secret


def test_a_tree_of_it_keeps_its_budget_and_spends_it() -> None:
    right = replay(_Broken(privacy=ONE, noise="gamma"), rounds=20)
    assert right.passed and right.cost == pytest.approx(1.0, rel=1e-3), str(right)
    level_short = replay(_Broken(privacy=ONE, noise="gamma", narrow=4 / 5), rounds=20)
    assert level_short.cost == pytest.approx(5 / 4, rel=1e-3)
    even = replay(_Broken(privacy=ONE, noise="gamma", even=True), rounds=20)  # also on the diagonal
    assert not even.private and even.cost < 1.5


OPTIONS: list[dict[str, Any]] = [{"noise": "gamma"}, {"split": "paper"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [TreeContextualUCB, TreeContextualThompson])
def test_other_noises_of_contextual_trees_conform(kind: Any, options: dict[str, Any]) -> None:
    check_policy(kind(privacy=ONE, **options))


def test_the_printed_split_promises_what_it_delivers() -> None:
    """2ε/(d² + 3d) for each stream is worth less than ε where rows have bounded norms; else refused."""
    policy = TreeContextualUCB(privacy=ONE, split="paper")
    for dim in (2, 3, 5):
        problem = dpb.LinearContexts(dim, horizon=20)
        held = policy.guarantee(problem).budget
        assert held == dpb.PureDP(row_change(dim) / pair_size(dim)) and held.epsilon < 1.0
        levels = 5
        assert policy.begin(problem)[0].tree.inner[0] == levels * (dim * dim + 3 * dim) / 2
        found = replay(policy, problem, rounds=20)
        assert found.private and found.limit == held.epsilon, str(found)
        assert found.tight or dim > 2  # where the people of the replay move numbers most
    assert policy.twin() == TreeContextualUCB(privacy=dpb.NonPrivate(), split="paper")
    for refused in (dpb.LinearContexts(1, horizon=20), dpb.LinearContexts(2, arms=3, horizon=20)):
        for method in (policy.guarantee, policy.begin, policy.start):
            with pytest.raises(InvalidInput, match="at most 1 each"):
                method(refused)


def test_what_does_not_go_together_is_refused() -> None:
    for options in OPTIONS:
        with pytest.raises(BudgetNotAccepted, match="are for PureDP"):
            TreeContextualUCB(privacy=dpb.GaussianDP(1.0), **options)
    with pytest.raises(InvalidInput, match="split='none'"):
        TreeContextualUCB(privacy=ONE, split="paper", noise="gamma")
    for wrong in ({"noise": "laplace"}, {"split": "ours"}):
        with pytest.raises(InvalidInput, match="one of"):
            TreeContextualUCB(privacy=ONE, **wrong)  # type: ignore[arg-type]
    policy = TreeContextualThompson(privacy=ONE, noise="gamma")
    assert policy.start(dpb.LinearContexts(2, horizon=9)).noise == "float"
    with pytest.raises(InvalidInput, match="no draw of a number"):
        policy.start(dpb.LinearContexts(2, horizon=9), noise="exact")


def test_arms_with_parameters_of_their_own_are_one_vector() -> None:
    policy, problem = (
        TreeContextualUCB(privacy=ONE, noise="gamma"),
        dpb.LinearContexts(2, arms=3, horizon=20),
    )
    public, _ = policy.begin(problem)
    assert public.tree.widths.tolist() == np.tile(pair_widths(2), 3).tolist()
    found = replay(policy, problem, rounds=20, thorough=False, floor=0.75)
    assert found.passed, str(found)


def test_sampling_shows_no_more_than_is_promised() -> None:
    """What is executed, compiled; at an error rate of 10⁻³. The control has a tenth of the noise."""
    right = sample(_Broken(privacy=dpb.PureDP(3.0), noise="gamma"), runs=20_000, error=1e-3)
    assert right.kept and right.bound > 0.0, str(right)
    wrong = sample(_Broken(privacy=dpb.PureDP(3.0), noise="gamma", narrow=0.1), runs=20_000, error=1e-3)
    assert not wrong.kept, str(wrong)
