"""Which policy to use, and why, in one sentence; the rules are what the leaderboards support."""

from dataclasses import dataclass

from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.policies.arms import BetaThompson, NoiseAwareIMED
from dpbandits.policies.linear import LinUCB, RandomizedLinUCB, TreeContextualUCB
from dpbandits.policies.matroid import FocusedMatroidUCB
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP
from dpbandits.problems import Arms, LinearContexts, LinearProblem, MatroidBases, Problem


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A policy, ready to start, and the reason for it."""

    policy: Policy
    reason: str

    def __str__(self) -> str:
        return f"{type(self.policy).__name__}: {self.reason}"


def recommend(problem: Problem, privacy: Budget) -> Recommendation:
    """The policy to use on this problem at this budget.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> print(recommend(Arms(5), PureDP(1.0)))
    NoiseAwareIMED: it has the lowest regret at equal privacy over the instances of arms-leaderboard, ...
    """
    if isinstance(problem, Arms):
        return _for_arms(problem, privacy)
    if isinstance(problem, LinearProblem):
        return _for_linear(problem, privacy)
    if isinstance(problem, MatroidBases):
        return _for_matroids(problem, privacy)
    raise InvalidInput(f"there is no recommendation for {problem!r} yet")


def _for_arms(problem: Arms, privacy: Budget) -> Recommendation:
    if isinstance(privacy, NonPrivate):
        reason = "without privacy nothing here does better on rewards in [0, 1], and it needs no tuning."
        return Recommendation(policy=BetaThompson(), reason=reason)
    policy = NoiseAwareIMED(privacy=privacy)
    reason = (
        "it has the lowest regret at equal privacy over the instances of arms-leaderboard, for any "
        "number of rounds."
    )
    tries = problem.arms * policy.schedule()[0]
    if problem.horizon is not None and 5 * tries > problem.horizon:
        reason += (
            f" At this budget one try of each arm takes {tries:,} of {problem.horizon:,} rounds, so "
            "expect little better than uniform play; fewer arms, more rounds or a larger budget help."
        )
    return Recommendation(policy=policy, reason=reason)


def _for_linear(problem: LinearProblem, privacy: Budget) -> Recommendation:
    if isinstance(privacy, NonPrivate):
        if isinstance(problem, LinearContexts):
            reason = (
                "without privacy it is the reference on fresh decision sets, with a bound on regret."
            )
            return Recommendation(policy=LinUCB(), reason=reason)
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
                "under ε-DP linear policies need the horizon: LinearContexts(..., horizon=100_000)"
            )
        reason = (
            "it is the one linear policy here under ε-DP. The same person is protected with far less "
            "noise under (ε, δ)-DP: ApproxDP(1.0, 1e-6) is met by RandomizedLinUCB."
        )
        return Recommendation(policy=TreeContextualUCB(privacy=privacy), reason=reason)
    policy = RandomizedLinUCB(privacy=privacy)
    reason = (
        "it has the lowest regret at equal privacy, or nearly, over the instances of "
        "linear-leaderboard, for any number of rounds; its widths are heuristic, its privacy is not."
    )
    # Directions are told apart once a Gram matrix of some t/d outgrows noise of about 4·√d/μ.
    needed = round(20.0 * problem.dimension**1.5 / privacy.to_gaussian().mu)
    if problem.horizon is not None and problem.horizon < needed:
        reason += (
            f" At this budget some {needed:,} rounds pass before {problem.dimension} features are told "
            "apart from noise, so expect little better than uniform play; fewer features, more rounds "
            "or a larger budget help."
        )
    return Recommendation(policy=policy, reason=reason)


def _for_matroids(problem: MatroidBases, privacy: Budget) -> Recommendation:
    policy = FocusedMatroidUCB(privacy=privacy)
    equal = "without privacy" if isinstance(privacy, NonPrivate) else "at equal privacy"
    reason = (
        f"it loses least {equal} over the matroids of matroid-leaderboard, for any number of rounds."
    )
    fed, first_batch = policy.schedule(problem)
    tries = -(-(problem.items - len(problem.matroid.loops)) * first_batch // fed)
    if problem.horizon is not None and 3 * tries > problem.horizon:
        reason += (
            f" At this budget one try of each item takes about {tries:,} of {problem.horizon:,} rounds: "
            "expect little better than random bases; fewer items, more rounds or a larger budget help."
        )
    return Recommendation(policy=policy, reason=reason)
