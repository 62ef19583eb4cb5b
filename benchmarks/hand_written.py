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


@fast
def _kernel_rounds(table: Any, means: Any, sums: Any, rounds: int, explore: Any, chance: Any) -> float:
    contexts, actions = means.shape
    regret = 0.0
    for _ in range(rounds):
        context = int(chance.random() * contexts)
        drawn, action = explore.random(), 0
        while action < actions - 1 and drawn >= table[context, action]:
            action += 1
        high = 0.5 + 0.5 * means[context, action]
        sums[context * actions + action] += 1.0 if chance.random() < high else -1.0
        regret += means[context].max() - means[context, action]
    return regret


def kernel_thompson(
    means: Any, rows: Any, scale: float, first: int, rounds: int, noise: Any, explore: Any, chance: Any
) -> float:
    """Thompson sampling on one posterior of noisy sums, for contexts that come equally often."""
    (contexts, actions), size = means.shape, rows.shape[1]
    precision, evidence, unit = 20.0 * np.eye(size), np.zeros(size), np.eye(size)
    table = np.cumsum(np.full(means.shape, 1.0 / actions), axis=1)
    regret, done, length = 0.0, 0, first
    while done < rounds:
        sums, played = np.zeros(rows.shape[0]), min(length, rounds - done)
        regret += _kernel_rounds(table, means, sums, played, explore, chance)
        done += played
        released = noise.normal(rows.T @ sums, scale)
        shares = np.diff(table, axis=1, prepend=0.0).ravel() / contexts
        z = length * (rows * shares[:, None]).T @ rows
        gain = np.linalg.solve(z + scale**2 * unit, np.column_stack([z, released]))
        added = z @ gain
        precision, evidence = precision + added[:, :-1], evidence + added[:, -1]
        root = np.linalg.cholesky((precision + precision.T) / 2.0)
        mean = np.linalg.solve(precision, evidence)
        vectors = mean[:, None] + 0.5 * np.linalg.solve(root.T, noise.normal(0.0, 1.0, (size, 200)))
        best = (rows @ vectors).reshape(contexts, actions, 200).argmax(axis=1)
        counts = np.stack([np.bincount(row, minlength=actions) for row in best])
        table = np.cumsum(counts, axis=1) / 200.0
        length *= 2
    return float(regret)
