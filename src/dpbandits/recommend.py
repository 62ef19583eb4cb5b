"""Which policy to use, and why, in one sentence; the rules are what the leaderboards support."""

from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar, overload

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.expectation import Expectation, expect
from dpbandits.policies import LocalPolicy, Policy, TrustedPolicy
from dpbandits.policies.arms import BetaThompson, LocalUCB, NoiseAwareIMED, SequentialHalving
from dpbandits.policies.kernel import (
    Capri,
    KernelThompson,
    KernelUCB,
    LocalCapri,
    LocalKernelThompson,
)
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy
from dpbandits.policies.kernel.shared.outlook import short_horizon
from dpbandits.policies.linear import (
    LinThompson,
    LocalLinUCB,
    RandomizedLinUCB,
    TreeContextualUCB,
)
from dpbandits.policies.matroid import FocusedMatroidUCB
from dpbandits.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearContexts,
    LinearProblem,
    MatroidBases,
    Problem,
)
from dpbandits.wording import number

_SHORT = 20_000  # rounds, up to which the guard of the policy for matroids costs more than it saves
# The share of a horizon that one try of every arm takes from which on halving loses less, on random arms
# of ordinary and of small rates (tests/test_recommend.py); the least and most that its search may take.
_FEW_TRIES, _LEAST_SEARCH, _MOST_SEARCH = 0.06, 0.1, 1 / 3
_HEARD = 1.5  # rewards that a first try of rare ones should hold, under ε-DP in units of 1/ε
Started = TypeVar("Started", bound=Policy, covariant=True)


@dataclass(frozen=True, kw_only=True)
class Recommendation(Generic[Started]):
    """A policy, ready to start, and the reason for it."""

    policy: Started
    reason: str
    rate: float | None = None  # what rewards are about, where that was said

    def __str__(self) -> str:
        return f"{type(self.policy).__name__}: {self.reason}"

    def expect(self, problem: Problem, *, progress: bool = False) -> Expectation:
        """What to expect of it on this problem: a quick simulation of a standard instance of its size.

        >>> found = recommend(Arms(5, horizon=10_000), PureDP(1.0))
        >>> print(found.expect(Arms(5, horizon=10_000)))
        Simulated on 5 Bernoulli arms of means 0.75 to 0.25, 10,000 rounds: regret ...
        """
        return expect(self.policy, problem, rate=self.rate, progress=progress)


# By `trust` a type checker knows whether the policy starts as a learner or as a server.
@overload
def recommend(
    problem: Problem,
    privacy: Budget,
    *,
    trust: Literal[Trust.CENTRAL, Trust.JOINT] | None = None,
    kind: type[Policy] | None = None,
    rate: float | None = None,
) -> Recommendation[TrustedPolicy]: ...


@overload
def recommend(
    problem: Problem,
    privacy: Budget,
    *,
    trust: Literal[Trust.LOCAL],
    kind: type[Policy] | None = None,
    rate: float | None = None,
) -> Recommendation[LocalPolicy]: ...


@overload
def recommend(
    problem: Problem,
    privacy: Budget,
    *,
    trust: Trust | None,
    kind: type[Policy] | None = None,
    rate: float | None = None,
) -> Recommendation[Policy]: ...


def recommend(
    problem: Problem,
    privacy: Budget,
    *,
    trust: Trust | None = None,
    kind: type[Policy] | None = None,
    rate: float | None = None,
) -> Recommendation[Policy]:
    """The policy to use on this problem at this budget.

    `trust` is LOCAL where nobody may hold raw data. With a `kind`, the settings to use it with. For arms
    with a horizon, a `rate` is what rewards are about on average where that is small and public: 0.01
    where one in a hundred clicks.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> print(recommend(Arms(5), PureDP(1.0)))
    NoiseAwareIMED: it has the lowest regret at equal privacy over the instances of arms-leaderboard, ...
    """
    if not isinstance(problem, Problem):
        raise InvalidInput(f"expected a problem such as Arms(5), got {checks.shown(problem)}")
    if not isinstance(privacy, Budget):
        raise InvalidInput(f"expected a budget such as PureDP(1.0), got {checks.shown(privacy)}")
    trust = _trust(trust, problem)
    if rate is not None:
        if not isinstance(problem, Arms) or trust is Trust.LOCAL:
            raise InvalidInput("a rate of rewards is of use for arms with a trusted server only")
        checks.open_unit(rate=rate)  # a share: one in a hundred is 0.01
    if isinstance(problem, KernelContexts):
        return _for_kernels(problem, privacy, trust is Trust.LOCAL, kind)
    if trust is Trust.LOCAL and kind is None and isinstance(problem, Arms | LinearContexts):
        return _for_local(problem, privacy)
    if trust is Trust.LOCAL or kind is not None:
        what = "local policy" if kind is None else f"recommendation about {checks.shown(kind)}"
        raise InvalidInput(f"there is no {what} for {type(problem).__name__} yet")
    if isinstance(problem, Arms):
        return replace(_for_arms(problem, privacy, rate), rate=rate)
    if isinstance(problem, LinearProblem):
        return _for_linear(problem, privacy)
    if isinstance(problem, MatroidBases):
        return _for_matroids(problem, privacy)
    raise InvalidInput(f"there is no recommendation for {checks.shown(problem)} yet")


def _trust(given: object, problem: Problem) -> Trust | None:
    """Whom to trust; a word for it is as good. What the problem cannot have is refused."""
    if given is None:
        return None
    if not isinstance(given, Trust):
        checks.one_of([str(one) for one in Trust], trust=given)
    wanted = Trust(str(given))
    if wanted not in (problem.trust, Trust.LOCAL):
        raise InvalidInput(f"this problem allows {problem.trust} or local trust, not {wanted}")
    return wanted


def _for_arms(problem: Arms, privacy: Budget, rate: float | None) -> Recommendation[Policy]:
    if isinstance(privacy, NonPrivate):
        reason = "without privacy nothing here does better on rewards in [0, 1], and it needs no tuning."
        return Recommendation(policy=BetaThompson(), reason=reason)
    steady = NoiseAwareIMED(privacy=privacy)
    tries = problem.arms * _first_try(steady.for_people(problem), rate)
    if problem.horizon is None or problem.capacity is not None or tries < _FEW_TRIES * problem.horizon:
        reason = (
            "it has the lowest regret at equal privacy over the instances of arms-leaderboard, for any "
            "number of rounds."
        )
        return Recommendation(policy=steady, reason=reason)
    share = min(_MOST_SEARCH, max(_LEAST_SEARCH, 1.2 * tries / problem.horizon))
    rounds = max(2, round(share * problem.horizon))
    reason = (
        f"{problem.horizon:,} rounds are few for {problem.arms} arms at this budget. It searches for "
        f"{rounds:,} of them and plays what it found from then on, which loses less on average than to "
        "insure every arm, but a wrong choice is never mended."
    )
    if tries > 2 * problem.horizon:
        reason += (
            f" One good try of each arm {_takes(tries, problem.horizon)}, so expect little better than "
            "uniform play; fewer arms, more rounds or a larger budget help."
        )
    return Recommendation(policy=SequentialHalving(privacy=privacy, rounds=rounds), reason=reason)


def _first_try(policy: NoiseAwareIMED, rate: float | None) -> int:
    """Rounds that tell an arm of ordinary or of such rewards from a bad one, roughly."""
    rounds = float(policy.schedule()[0])
    if rate is not None:
        noise = 1.0 / policy.privacy.epsilon if isinstance(policy.privacy, PureDP) else 0.0
        rounds = max(rounds, _HEARD * max(1.0, noise) / rate)
    return round(rounds)


def _width(policy: Policy, problem: Problem) -> float:
    """μ of one round, which is less than is asked for where all rounds of a person share the budget."""
    return float(policy.for_people(problem).privacy.to_gaussian().mu)


def _takes(rounds: int, horizon: int) -> str:
    if rounds > horizon:
        return f"takes {rounds:,} rounds, more than the {horizon:,} there are"
    return f"takes {rounds:,} of {horizon:,} rounds"


def _for_local(problem: Arms | LinearContexts, privacy: Budget) -> Recommendation[Policy]:
    if isinstance(problem, Arms):
        reason = "people randomise their own answers, at the best order of regret there can be."
        return Recommendation(policy=LocalUCB(privacy=privacy), reason=reason)
    policy = LocalLinUCB(privacy=privacy)
    reason = "people randomise their own rows."
    if not isinstance(privacy, NonPrivate):
        # What noise adds up to grows with the root of the rounds: some 10⁵ of them at μ = 1.
        needed = float(f"{1e5 / _width(policy, problem) ** 2:.0e}")
        reason += (
            f" At {privacy} expect it to need some {number(needed)} rounds before it is much better "
            "than uniform play."
        )
    return Recommendation(policy=policy, reason=reason)


def _for_linear(problem: LinearProblem, privacy: Budget) -> Recommendation[Policy]:
    if isinstance(privacy, NonPrivate):
        if isinstance(problem, LinearContexts):
            reason = (
                "without privacy it loses least on real contexts and with many features; with few of "
                "them, evenly spread, LinUCB does as well."
            )
            return Recommendation(policy=LinThompson(), reason=reason)
        reason = "on a fixed decision set it beats plain optimism by far, without noise as well."
        return Recommendation(policy=RandomizedLinUCB(privacy=privacy), reason=reason)
    if isinstance(privacy, PureDP):
        if not isinstance(problem, LinearContexts):
            raise InvalidInput(
                f"nothing here meets {privacy} on LinearActions; RandomizedLinUCB meets ApproxDP and "
                "Gaussian budgets"
            )
        if problem.horizon is None:
            raise InvalidInput(
                "under ε-DP linear policies need the number of rounds: give a horizon, such as 100000"
            )
        reason = (
            "under ε-DP there are only trees of Laplace noise, here and in TreeContextualThompson. The "
            "same person is protected with far less noise under (ε, δ)-DP: ApproxDP(1.0, 1e-6) is met "
            "by RandomizedLinUCB."
        )
        return Recommendation(policy=TreeContextualUCB(privacy=privacy), reason=reason)
    policy = RandomizedLinUCB(privacy=privacy)
    reason = (
        "it has the lowest regret at equal privacy, or nearly, over the instances of "
        "linear-leaderboard, for any number of rounds; its widths are heuristic, its privacy is not."
    )
    if problem.blocks > 1:
        reason = (
            "where every arm has parameters of its own nothing here does better at equal privacy, on "
            "made-up contexts and on real ones (benchmarks/digits.py), for any number of rounds; its "
            "widths are heuristic, its privacy is not."
        )
    # Directions are told apart once a Gram matrix of some t/d outgrows noise of about 4·√d/μ; that of K
    # arms with their own some √K times later (measured on DisjointContexts).
    needed = problem.blocks**0.5 * problem.dimension**1.5
    needed = round(20.0 * needed / _width(policy, problem))
    if problem.horizon is not None and problem.horizon < needed:
        whose = f" of {problem.blocks} arms" if problem.blocks > 1 else ""
        reason += (
            f" At this budget some {needed:,} rounds pass before {problem.dimension} features{whose} "
            "are told apart from noise, so expect little better than uniform play; fewer features, "
            "more rounds or a larger budget help."
        )
    return Recommendation(policy=policy, reason=reason)


def _for_matroids(problem: MatroidBases, privacy: Budget) -> Recommendation[Policy]:
    policy = FocusedMatroidUCB(privacy=privacy)
    equal = "without privacy" if isinstance(privacy, NonPrivate) else "at equal privacy"
    reason = f"it loses least {equal}, on average over the matroids of matroid-leaderboard."
    if problem.horizon is None or problem.horizon > _SHORT:
        # Laplace noise has the heavier tails.
        margin = 0.04 if isinstance(privacy, PureDP) else 0.045
        policy = replace(policy, growth=0.3, caution=0.5, margin=margin)
        reason += (
            " With a margin it costs more on average and hardly ever loses one of the best items; over "
            f"a horizon of at most {_SHORT:,} rounds that would not pay."
        )
    fed, first_batch = policy.for_people(problem).schedule(problem)
    tries = -(-(problem.items - len(problem.matroid.loops)) * first_batch // fed)
    if problem.horizon is not None and 3 * tries > problem.horizon:
        reason += (
            f" At this budget one try of each item {_takes(tries, problem.horizon)}: "
            "expect little better than random bases; fewer items, more rounds or a larger budget help."
        )
    return Recommendation(policy=policy, reason=reason)


def _for_kernels(
    problem: KernelContexts, privacy: Budget, local: bool, kind: type[Policy] | None
) -> Recommendation[Policy]:
    eliminating = LocalCapri if local else Capri
    sampling = LocalKernelThompson if local else KernelThompson
    if kind not in (None, eliminating, sampling):
        raise InvalidInput(
            f"there is no recommendation for {checks.shown(kind)} on {type(problem).__name__} yet"
        )
    if isinstance(privacy, NonPrivate) and kind is None and not local:
        reason = "without privacy it is the standard, and about as good as anything here."
        return Recommendation(policy=KernelUCB(), reason=reason)
    if kind is eliminating:
        policy: Policy = eliminating(privacy=privacy, width=0.25)
        reason = (
            "a quarter of the valid widths, which are heuristic then, has a fraction of their regret in "
            "kernel-leaderboard; privacy is the same."
        )
    else:
        policy = sampling(privacy=privacy)
        reason = (
            "it has the lowest regret at equal privacy in kernel-leaderboard, for any number of rounds."
        )
        if isinstance(policy, LocalKernelThompson) and isinstance(privacy, ApproxDP):
            coins = replace(policy, privacy=PureDP(privacy.epsilon))
            # As run: k rounds of a person divide ε by k, but a Gaussian budget by √k.
            mine, theirs = (one.for_people(problem).deviation(1.0) for one in (coins, policy))
            if mine < theirs:
                policy = coins
                reason += (
                    f" At {coins.privacy}, a stronger promise, each answer is one bit, which is less "
                    f"noisy than numbers at {privacy}."
                )
    if isinstance(policy, LocalKernelPolicy):
        run = policy.for_people(problem)
        said = short_horizon(problem, run.privacy, run.deviation(problem.max_reward))
        reason += f" But {said}." if said is not None else ""
    return Recommendation(policy=policy, reason=reason)
