"""Algorithms as one would write them for one case alone: the references of the speed table."""

import math
from typing import Any

import numba
import numpy as np

fast = numba.njit(nogil=True, error_model="numpy")


@fast
def modified_thompson(
    means: Any, prepulls: int, variance_scale: float, rounds: int, noise: Any, chance: Any
) -> float:
    """The regret of one run; draws the same numbers as the library, in the same order."""
    arms, best = means.size, means.max()
    counts, total = np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(rounds):
        if t < prepulls * arms:
            action = t // prepulls
        else:
            action, highest = 0, -np.inf
            for arm in range(arms):
                width = math.sqrt(variance_scale / (counts[arm] + 1.0))
                sample = noise.normal(total[arm] / (counts[arm] + 1.0), width)
                if sample > highest:
                    action, highest = arm, sample
        total[action] += 1.0 if chance.random() < means[action] else 0.0
        counts[action] += 1.0
        regret += best - means[action]
    return regret


@fast
def lazy_ucb(means: Any, epsilon: float, rounds: int, noise: Any, chance: Any) -> float:
    """Anytime-Lazy-UCB: doubling batches that forget."""
    arms, best = means.size, means.max()
    size, opened, buffer, mean = np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(rounds):
        action = t
        if t >= arms:
            spread, highest = 3.0 * math.log(t + 1.0), -np.inf
            for arm in range(arms):
                index = mean[arm] + math.sqrt(spread / size[arm]) + spread / (epsilon * size[arm])
                if index > highest:
                    action, highest = arm, index
        buffer[action] += 1.0 if chance.random() < means[action] else 0.0
        opened[action] += 1.0
        regret += best - means[action]
        if opened[action] == max(1.0, 2.0 * size[action]):
            size[action] = opened[action]
            mean[action] = noise.laplace(buffer[action], 1.0 / epsilon) / size[action]
            opened[action] = buffer[action] = 0.0
    return regret


@fast
def batched_imed(means: Any, epsilon: float, rounds: int, noise: Any, chance: Any) -> float:
    """DP-IMED with batches that double: the arm is played until its batch ends."""
    arms, best = means.size, means.max()
    size, total = np.zeros(arms), np.zeros(arms)
    arm, left, length, buffer, regret = 0, 1, 1, 0.0, 0.0
    for _ in range(rounds):
        buffer += 1.0 if chance.random() < means[arm] else 0.0
        regret += best - means[arm]
        left -= 1
        if left == 0:
            total[arm] += noise.laplace(buffer, 1.0 / epsilon)
            size[arm] += length
            buffer = 0.0
            arm = _least_evidence(size, total, epsilon)
            length = max(1, int(size[arm]))
            left = length
    return regret


@fast
def _least_evidence(size: Any, total: Any, epsilon: float) -> int:
    top = 0.0
    for arm in range(size.size):
        if size[arm] == 0:
            return arm
        top = max(top, min(1.0, total[arm] / size[arm]))
    chosen, least = 0, np.inf
    for arm in range(size.size):
        x = min(max(total[arm] / size[arm], 0.0), 1.0)
        evidence = 0.0
        if x < top:
            z = min(max(top * math.exp(-epsilon) / (1.0 - top + top * math.exp(-epsilon)), x), top)
            evidence = epsilon * (z - x)
            if z > 0.0:
                evidence += z * math.log(z / top)
            if z < 1.0 and top < 1.0:
                evidence += (1.0 - z) * math.log((1.0 - z) / (1.0 - top))
        index = size[arm] * evidence + math.log(size[arm])
        if index < least:
            chosen, least = arm, index
    return chosen


@fast
def tree_ucb(means: Any, epsilon: float, bonus: float, rounds: int, noise: Any, chance: Any) -> float:
    """UCB on binary-tree sums: one Laplace node per decision, the prefix from the nodes that stand."""
    arms, best = means.size, means.max()
    levels = int(math.log2(rounds)) + 1
    exact, drawn = np.zeros((arms, levels + 1)), np.zeros((arms, levels + 1))
    plays, mean = np.zeros(arms, np.int64), np.zeros(arms)
    regret = 0.0
    for t in range(rounds):
        action = t
        if t >= arms:
            spread, highest = 2.0 * math.log(t + 1.0), -np.inf
            for arm in range(arms):
                index = mean[arm] + math.sqrt(spread / plays[arm]) + bonus / plays[arm]
                if index > highest:
                    action, highest = arm, index
        value = 1.0 if chance.random() < means[action] else 0.0
        regret += best - means[action]
        level, before = 0, plays[action]
        while before >> level & 1:
            value += exact[action, level]
            exact[action, level] = drawn[action, level] = 0.0
            level += 1
        exact[action, level] = value
        drawn[action, level] = noise.laplace(value, levels / epsilon)
        plays[action] = before + 1
        prefix = 0.0
        for level in range(levels):
            prefix += drawn[action, level]
        mean[action] = min(max(prefix / plays[action], 0.0), 1.0)
    return regret
