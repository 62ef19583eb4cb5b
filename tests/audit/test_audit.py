"""The replay test passes real policies at their full budget and catches every broken one."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from epoch_greedy import epoch_greedy
from leaky_policies import LEAKY, LEAKY_FOR_SIX_ARMS

import dpbandits as dpb
from dpbandits.audit import BROKEN, broken_evasive, replay
from dpbandits.audit.battery import battery, starts_plainly
from dpbandits.audit.broken import BrokenThompson, BrokenTree
from dpbandits.audit.broken_linear import BROKEN_FOR_ARMS, RowChangeOfOneArm
from dpbandits.audit.recording import Draw, ForcedNoise, Mismatch, RecordingNoise, Steer
from dpbandits.audit.replay import _draw_cost
from dpbandits.errors import AuditError
from dpbandits.policies import policy_kinds
from dpbandits.policies.linear import randomized_lin_ucb
from dpbandits.policies.testing import short_form
from dpbandits.recipes import Recipe
from dpbandits.sums.batches import toeplitz_root
from dpbandits.sums.binary_tree import start_tree
from dpbandits.testing import example_policies

pytestmark = pytest.mark.slow

BUDGET = dpb.GaussianDP(1.0)


# Without pre-pulls there is no data to misuse when the first draw is made.
NEED_PREPULLS = {"ReadByTwoPhases", "UnnoisedFirstDraw"}


@pytest.mark.parametrize("kind", BROKEN)
def test_every_broken_policy_is_caught(kind: Any) -> None:
    assert_caught(kind(privacy=BUDGET))


@pytest.mark.parametrize("kind", BROKEN_FOR_ARMS)
def test_every_broken_linear_policy_is_caught_for_arms_with_parameters_of_their_own(kind: Any) -> None:
    privacy = dpb.PureDP(1.0) if kind is RowChangeOfOneArm else BUDGET
    problem = dpb.LinearContexts.testing.others(20)["disjoint arms"]
    found = replay(kind(privacy=privacy), problem, rounds=20)
    assert not found.private, found


def test_the_battery_checks_what_can_be_checked_of_arms_with_parameters_of_their_own() -> None:
    def titles(policy: dpb.Policy) -> str:
        return ", ".join(title for title, _ in battery(policy) if title.startswith("disjoint arms"))

    trusted, local = titles(dpb.RandomizedLinUCB(privacy=BUDGET)), dpb.local.LocalLinUCB(privacy=BUDGET)
    for part in ("two rounds of each person", "an earlier log", "every position", "exact noise"):
        assert part in trusted
    assert "every position" in titles(local) and "an earlier log" not in titles(local)
    printed = dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 0.1), noise="wishart")
    assert titles(printed) == ""  # whose noise is not for them


@pytest.mark.parametrize(
    ("kind", "prepulls"),
    [
        (kind, prepulls)
        for kind in BROKEN
        for prepulls in (0, 3)
        if issubclass(kind, BrokenThompson) and (prepulls or kind.__name__ not in NEED_PREPULLS)
    ],
)
def test_a_broken_thompson_is_caught_with_any_prepulls(kind: Any, prepulls: int) -> None:
    assert_caught(kind(privacy=BUDGET, prepulls=prepulls))


@pytest.mark.parametrize("kind", [kind for kind in BROKEN if issubclass(kind, BrokenTree)])
@pytest.mark.parametrize("budget", [BUDGET, dpb.PureDP(1.0)], ids=str)
def test_a_broken_tree_is_caught_where_the_real_one_spends_its_budget(
    kind: Any, budget: dpb.Budget
) -> None:
    # Trees of 15 and of 16 leaves; the streams go on past the horizon, so that both fill up.
    for horizon in (18, 19):
        problem = dpb.Arms(3, horizon=horizon)
        assert replay(dpb.arms.TreeUCB(privacy=budget, confidence="chernoff"), problem).passed
        assert not replay(kind(privacy=budget), problem).private


def assert_caught(policy: dpb.Policy) -> None:
    problem = next(iter(_problems(type(policy))))
    found = replay(policy, problem, rounds=problem.testing.replay_rounds)
    assert not found.private and not found.passed
    assert found.failure or found.cost > 1.01 * found.limit


def _problems(kind: Any) -> list[Any]:
    kinds = (dpb.Arms, dpb.KernelContexts, dpb.LinearContexts, dpb.MatroidBases)
    return [
        one.testing.example(one.testing.replay_rounds)
        for one in kinds
        if issubclass(one, kind.problem_kind)
    ]


def test_every_broken_policy_prints_the_guarantee_it_does_not_deliver() -> None:
    for kind in BROKEN:
        problem = next(iter(_problems(kind)))
        assert kind(privacy=BUDGET).guarantee(problem).budget == BUDGET
        assert kind.__name__ not in str(Recipe.__subclasses__()) and kind.__doc__


@pytest.mark.parametrize("horizon", [31, 32, 33])
@pytest.mark.parametrize("prepulls", [None, 0, 1])
def test_real_policies_reach_their_budget_and_keep_it(horizon: int, prepulls: int | None) -> None:
    policy = dpb.arms.ModifiedThompson(privacy=BUDGET, prepulls=prepulls)
    found = replay(policy, dpb.Arms(3, horizon=horizon))
    assert found.passed, str(found)
    assert 0.98 <= found.cost / found.limit <= 1 + 1e-9


def test_paper_calibration_keeps_the_guarantee_it_reports() -> None:
    policy = dpb.arms.ModifiedThompson(privacy=BUDGET, prepulls=4, calibration="paper")
    problem = dpb.Arms(3, horizon=40)
    found = replay(policy, problem)
    held = policy.guarantee(problem).budget
    assert isinstance(held, dpb.GaussianDP) and held.mu < BUDGET.mu
    assert found.passed and found.limit == pytest.approx(held.mu)


def test_a_vector_released_at_a_pause_is_replayed_too() -> None:
    found = replay(epoch_greedy(), dpb.Arms(3))
    assert found.passed and found.cost == pytest.approx(1.0)


def test_there_is_nothing_to_audit_without_a_guarantee() -> None:
    with pytest.raises(AuditError, match="nothing to audit"):
        replay(dpb.arms.GaussianThompson(), dpb.Arms(3))


def test_a_replay_without_cost_is_a_failure() -> None:
    # The last epoch is never released, so a stream that ends before the first release costs nothing.
    found = replay(epoch_greedy(), dpb.Arms(3), rounds=8)
    assert found.cost == 0.0 and found.private and not found.passed
    assert str(found).startswith("not tight")


def test_costs_of_single_draws() -> None:
    def draw(kind: str, location: Any, scale: Any) -> Draw:
        return Draw(kind, location, scale, np.zeros(np.shape(location))[()])

    def cost(kind: str, one: Any, other: Any, scale: Any, pure: bool) -> float:
        return _draw_cost(draw(kind, one, scale), draw(kind, other, scale), pure)

    assert cost("laplace", 1.0, 3.0, 4.0, pure=True) == 0.5
    assert cost("normal", 1.0, 3.0, 4.0, pure=False) == 0.25
    assert cost("normal", 1.0, 3.0, 4.0, pure=True) == math.inf
    assert cost("normal", 1.0, 1.1, 0.0, pure=False) == math.inf
    assert cost("normal", np.zeros(3), np.array([3.0, 0.0, 4.0]), 5.0, pure=False) == pytest.approx(1.0)
    assert cost("laplace", np.zeros(2), np.ones(2), 2.0, pure=True) == 1.0
    coin = cost("binomial", 0.75, 0.25, 1, pure=True)
    assert coin == pytest.approx(math.log(3))
    # One Laplace draw under a Gaussian budget: ε = −2 ln(2Φ(−μ/2)), 0.9655 for μ = 1.
    assert cost("laplace", 0.0, 0.965529162, 1.0, pure=False) == pytest.approx(1.0, rel=1e-8)


@pytest.mark.parametrize("policy", LEAKY, ids=lambda policy: type(policy).__name__)
def test_leaks_of_other_kinds_are_caught(policy: dpb.Policy) -> None:
    assert not replay(policy, dpb.Arms(3)).private


def test_a_leak_of_later_arms_needs_a_larger_problem() -> None:
    policy, problem = LEAKY_FOR_SIX_ARMS
    assert replay(policy, dpb.Arms(3)).private
    assert not replay(policy, problem, rounds=120, thorough=False).private


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeverRestarts(dpb.arms.TreeUCB):
    """A tree that goes on past the leaves it was calibrated for, in place of a fresh one."""

    abstract = True

    def begin(self, problem: dpb.Arms) -> Any:
        public, _ = super().begin(problem)
        tree, leaves = start_tree(problem.arms, 1, 1.0, self.privacy, leaves=2**20)
        tree = tree._replace(inner=public.tree.inner, root=public.tree.root)
        return public._replace(tree=tree), leaves


def test_laplace_noise_on_factorized_sums_costs_the_l1_norm() -> None:
    kind = next(kind for kind in BROKEN if kind.__name__ == "LaplaceFactorized")
    found = replay(kind(privacy=dpb.PureDP(1.0)))
    weights = toeplitz_root(8)
    assert not found.private
    assert 1.0 < found.cost <= weights.sum() / math.sqrt(weights @ weights) * (1 + 1e-9)


def test_a_tree_that_outgrows_its_levels_is_caught_past_the_horizon() -> None:
    policy, problem = (
        NeverRestarts(privacy=dpb.PureDP(1.0), confidence="chernoff"),
        dpb.Arms(2, horizon=9),
    )
    found = replay(policy, problem, rounds=60)
    assert not found.private and found.cost > 1.05
    assert replay(
        dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0), confidence="chernoff"), problem, rounds=60
    ).passed


def test_a_budget_too_large_for_a_number_does_not_pass_for_none() -> None:
    for kind in (
        dpb.arms.PrivateIMED,
        dpb.arms.PrivateKLUCB,
        dpb.arms.AdaptiveUCB,
        dpb.arms.AdaptiveKLUCB,
    ):
        with pytest.raises(dpb.errors.BudgetNotAccepted, match="within 1e-12 and 1e\\+12"):
            kind(privacy=dpb.GaussianDP(1e200)).start(dpb.Arms(2))


def test_forced_noise_notices_every_difference() -> None:
    recorder = RecordingNoise(np.random.default_rng(1), Steer())
    result = recorder.normal(2.0, 1.5)
    assert ForcedNoise(recorder.draws).normal(-7.0, 1.5) == result
    for wrong in (
        lambda noise: noise.normal(2.0, 1.6),
        lambda noise: noise.laplace(2.0, 1.5),
        lambda noise: (noise.normal(2.0, 1.5), noise.normal(2.0, 1.5)),
    ):
        with pytest.raises(Mismatch):
            wrong(ForcedNoise(recorder.draws))


def test_a_kept_draw_does_not_change_with_the_buffer_it_came_from() -> None:
    buffer = np.ones(2)
    recorder = RecordingNoise(np.random.default_rng(1), Steer())
    recorder.normal(buffer, 1.0)
    buffer[:] = 0.0
    assert recorder.draws[0].location.tolist() == [1.0, 1.0]


def test_more_noise_than_needed_must_be_stated_as_slack() -> None:
    class Careful(type(epoch_greedy())):  # type: ignore[misc]
        def begin(self, problem: dpb.Arms) -> Any:
            public, secret = super().begin(problem)
            return public._replace(scale=2.0 * public.scale), secret

    assert not replay(Careful(privacy=BUDGET), dpb.Arms(3)).passed
    assert replay(Careful(privacy=BUDGET), dpb.Arms(3), floor=0.4).passed
    assert not replay(dataclasses.replace(Careful(privacy=dpb.GaussianDP(1.0))), dpb.Arms(3)).cost > 0.51


@pytest.mark.filterwarnings("ignore:.*rounds can explain only")
def test_users_are_given_what_the_audit_is_given() -> None:
    for kind in policy_kinds().values():
        for policy in example_policies(kind):
            example = kind.problem_kind.testing.example(48)
            assert not policy.guarantee(example).is_private or starts_plainly(policy, example), policy
    raw = broken_evasive.SendsRaw(privacy=dpb.GaussianDP(1.0))
    assert not starts_plainly(raw, dpb.Arms(3))


@pytest.mark.parametrize("kind", broken_evasive.EVASIVE)
def test_evasive_policies_pass_a_short_replay_but_not_the_battery(kind: Any) -> None:
    policy, title = kind(privacy=dpb.GaussianDP(1.0)), kind.found_by
    rounds = policy.problem_kind.testing.replay_rounds
    example = policy.problem_kind.testing.example(rounds)
    assert replay(short_form(policy), example, rounds=rounds, thorough=False).passed
    check = dict(battery(policy))[title]()
    assert not check.passed, check.said
    honest = kind.__mro__[1]
    while honest.abstract:
        honest = honest.__mro__[1]
    assert dict(battery(honest(privacy=dpb.GaussianDP(1.0))))[title]().passed


class _NoisyWhereShort(dpb.arms.SequentialHalving):
    """Enough noise where it has few rounds, and a hundredth of it as users run it."""

    abstract = True

    def begin(self, problem: Any) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        less = public.batches.scale / (100.0 if self.rounds > 1000 else 1.0)
        return public._replace(batches=public.batches._replace(scale=less)), secret


def test_the_recipe_as_configured_is_played_until_something_is_released() -> None:
    """Its first phase is longer than the usual long stream, in which it would have cost nothing."""
    budget = dpb.PureDP(1.0)
    for kind, passes in ((dpb.arms.SequentialHalving, True), (_NoisyWhereShort, False)):
        check = dict(battery(kind(privacy=budget, rounds=2500)))["as configured"]()
        assert check.passed is passes and "cost 0 " not in check.said, check
    never = dpb.arms.SequentialHalving(privacy=budget, rounds=10**6)
    check = dict(battery(never))["as configured"]()
    assert not check.passed and "nothing can be tested" in check.said


class _SetsExplore(dpb.RandomizedLinUCB):
    """Leaves its features in the generator, from which the next decision is drawn."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def select(self, context: Any, explore: Any) -> int:
            action: int = super().select(context, explore)
            explore.bit_generator.state = np.random.PCG64(int(context[0][0, 0] > 0.5)).state
            return action


def test_exploration_is_drawn_from_and_nothing_else() -> None:
    with pytest.raises(AuditError, match="bit_generator"):
        replay(_SetsExplore(privacy=dpb.GaussianDP(1.0)))
