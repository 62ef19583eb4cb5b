"""Which policy to use, and why, in one sentence; the rules are what the leaderboards support."""

from dataclasses import dataclass

from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.policies.arms import BetaThompson, NoiseAwareIMED
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.problems import Arms, Problem


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
