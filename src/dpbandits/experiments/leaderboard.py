"""What the leaderboards share: who takes part, numbers with their spread, and the picture's axes."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.policies import Policy, policy_kinds
from dpbandits.privacy.budgets import Budget
from dpbandits.problems import Problem
from dpbandits.reports.figures import light_axes


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


def instance_axes(axes: Any, title: str, measure: str) -> None:
    """A measure on a log axis, instances beside each other."""
    axes.set_yscale("log")
    axes.set_title(title)
    axes.set_ylabel(measure)
    axes.tick_params(axis="x", rotation=30)
    light_axes(axes)
