"""What to expect before anything is played: how much can be learned, and what it costs to compute."""

import math
import time
from typing import NamedTuple

import numpy as np

from dpbandits.policies.kernel.shared.epochs import shares_of, uniform_table
from dpbandits.policies.kernel.shared.posterior import absorb, design
from dpbandits.privacy.budgets import Budget
from dpbandits.problems.kernel_contexts import KernelContexts

# Below this share of the prior variance, measured regret is hardly better than uniform play's.
MIN_LEARNABLE_SHARE = 0.25


def learnable_share(
    problem: KernelContexts, deviation: float, rounds: int, *, local: bool, prior: float = 0.05
) -> float:
    """The share of the mean reward's prior variance that `rounds` of uniform play would explain.

    From the declared problem and the noise alone, that of a vector of norm 1: 0 where it drowns
    everything, 1 where nothing stays unknown. In the local model every round has such noise.
    """
    features, bound = problem.features(), problem.max_reward
    rows, size = features.rows, features.rows.shape[1]
    variance = (features.radius * deviation) ** 2 * (rounds if local else 1)
    shares = shares_of(uniform_table(problem), problem.context_weights())
    before = np.eye(size) / (prior * bound**2)
    z = design(rows, shares, rounds)
    after, _ = absorb(before, np.zeros(size), z, np.zeros(size), bound, variance)
    left = np.einsum("wm,mw->w", rows, np.linalg.solve(after, rows.T))
    all_of_it = prior * bound**2 * np.einsum("wm,wm->w", rows, rows)
    return 1.0 - float(np.sum(shares * left) / np.sum(shares * all_of_it))


def short_horizon(problem: KernelContexts, privacy: Budget, deviation: float) -> str | None:
    """What to say of a local policy with too few rounds to be of use; None if they are enough."""
    if problem.horizon is None:
        return None
    share = learnable_share(problem, deviation, problem.horizon, local=True)
    if share >= MIN_LEARNABLE_SHARE:
        return None
    rounds = problem.horizon
    while (
        rounds < 2**50 and learnable_share(problem, deviation, rounds, local=True) < MIN_LEARNABLE_SHARE
    ):
        rounds *= 2
    return (
        f"with {privacy} in the local model, {problem.horizon:,} rounds can explain only "
        f"{100 * share:.0f} % of what there is to learn here: expect little better than uniform play. "
        f"About {rounds:,} rounds, a larger budget, fewer pairs or a smoother kernel would help"
    )


class Cost(NamedTuple):
    """What a run will take, roughly."""

    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return f"about {self.seconds:.2g} s and {self.megabytes:,.0f} MB a run"


def expected_cost(
    problem: KernelContexts, rounds: int, *, local: bool = False, draws: int = 200
) -> Cost:
    """The time and memory of one run, from the sizes and the speed of small linear systems."""
    features = problem.features()
    pairs, size = features.rows.shape
    epochs = max(1.0, math.log2(rounds / 100.0 + 1.0))
    flop = _seconds_a_flop()
    work = 2.0 * pairs * size**2 + 8.0 * size**3 + 2.0 * pairs * size * draws
    a_round = 1e-7 + (8e-9 * size if local else 0.0)
    memory = 8.0 * (4.0 * pairs * size + 8.0 * size**2 + 3.0 * pairs * draws)
    return Cost(epochs * work * flop + rounds * a_round, memory / 1e6)


def _seconds_a_flop(size: int = 200) -> float:
    """The quickest of some small linear systems: others were held up by something else."""
    trial, times = np.eye(size) + 1.0, []
    for _ in range(9):
        began = time.perf_counter()
        np.linalg.solve(trial, trial)
        times.append(time.perf_counter() - began)
    return min(times) / (8.0 / 3.0 * size**3)
