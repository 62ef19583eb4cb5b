"""What the leaderboards share: who takes part, numbers with their spread, and limits."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpbandits.limits import known_limit
from dpbandits.policies import Policy, policy_kinds
from dpbandits.privacy.budgets import Budget
from dpbandits.problems import Problem
from dpbandits.worlds import Environment


def policies_for(problem: Problem, budget: Budget) -> dict[str, Policy]:
    """Every policy for this problem that accepts the budget, at its defaults."""
    return {
        name: kind(privacy=budget)
        for name, kind in policy_kinds().items()
        if isinstance(problem, kind.problem_kind) and isinstance(budget, kind.accepts)
    }


def mean_and_error(runs: NDArray[np.float64], form: str) -> str:
    """Mean ± standard error, each in this format."""
    return f"{runs.mean():{form}} ± {runs.std(ddof=1) / math.sqrt(runs.size):{form}}"


def with_worst(runs: NDArray[np.float64], form: str = ",.0f") -> str:
    """Mean ± standard error (worst run)."""
    return f"{mean_and_error(runs, form)} ({runs.max():{form}})"


def limit_at(world: Environment, budget: Budget, rounds: int) -> float | None:
    """What no policy of this budget beats in the long run, after so many rounds; None if not known."""
    limit = known_limit(world, budget)
    return None if limit is None else float(limit.at(rounds))


def geometric_mean(ratios: Sequence[float]) -> float:
    """Of ratios of regrets; one that is next to nothing counts as a thousandth."""
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-3)))))


ABOUT_LIMITS = (
    "Times limit: regret as a multiple of what no policy of this budget beats in the long run "
    "(docs/limits.md), dotted in the picture. It is asymptotic, for policies that learn on every "
    "instance: at a given T a policy may be below."
)
