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
def tree_lin_ucb(
    dim: int,
    actions: int,
    gap: float,
    levels: int,
    scale: float,
    shift: float,
    low: float,
    high: float,
    gamma: float,
    level: float,
    rounds: int,
    noise: Any,
    chance: Any,
) -> float:
    """Shariff & Sheffet's Algorithm 1 with Gaussian noise on their own world, in one fused loop."""
    size = dim * (dim + 1) // 2 + dim
    exact, nodes = np.zeros((levels + 1, size)), np.zeros((levels + 1, size))
    theta, features, means = np.zeros(dim), np.zeros((actions, dim)), np.zeros(actions)
    gram, lower, inverse = np.zeros((dim, dim)), np.zeros((dim, dim)), np.zeros((dim, dim))
    moment, mean, leaf = np.zeros(dim), np.zeros(dim), np.zeros(size)
    norm = 0.0
    for i in range(dim):
        theta[i] = chance.standard_normal()
        norm += theta[i] * theta[i]
    for i in range(dim):
        theta[i] /= math.sqrt(norm)
    regret = 0.0
    for t in range(rounds):
        # The decision set.
        place = int(chance.random() * actions)
        for a in range(actions):
            while True:
                square, along = 0.0, 0.0
                for i in range(dim):
                    x = chance.standard_normal()
                    features[a, i] = x
                    square += x * x
                    along += x * theta[i]
                if a == place:
                    square -= along * along
                    for i in range(dim):
                        features[a, i] = 0.75 * theta[i] + math.sqrt((1.0 - 0.5625) / square) * (
                            features[a, i] - along * theta[i]
                        )
                    means[a] = 0.75
                    break
                factor = 1.0 / math.sqrt(square)
                if -0.75 <= along * factor <= 0.75 - gap:
                    for i in range(dim):
                        features[a, i] *= factor
                    means[a] = along * factor
                    break
        # The last round's leaf: the tree's node that it completes.
        if t > 0:
            last, bit = 0, t
            while bit & 1 == 0:
                for k in range(size):
                    leaf[k] += exact[last, k]
                bit >>= 1
                last += 1
            k = 0
            for i in range(dim):
                for j in range(i, dim):
                    wide = scale * math.sqrt(2.0) if i == j else scale
                    exact[last, k] = leaf[k]
                    nodes[last, k] = noise.normal(leaf[k], wide)
                    k += 1
            for k in range(size - dim, size):
                exact[last, k] = leaf[k]
                nodes[last, k] = noise.normal(leaf[k], scale)
            for k in range(size):
                leaf[k] = 0.0
        # The prefix, its factor, its inverse.
        for i in range(dim):
            moment[i] = 0.0
            for j in range(dim):
                gram[i, j] = 0.0
        for which in range(levels):
            if (t >> which) & 1:
                k = 0
                for i in range(dim):
                    for j in range(i, dim):
                        gram[i, j] += nodes[which, k]
                        k += 1
                for i in range(dim):
                    moment[i] += nodes[which, k]
                    k += 1
        log_det = 0.0
        for i in range(dim):
            for j in range(i + 1):
                value = gram[j, i]
                for k in range(j):
                    value -= lower[i, k] * lower[j, k]
                if i == j:
                    value += shift
                    log_det += math.log(value)
                    lower[i, i] = math.sqrt(value)
                else:
                    lower[i, j] = value / lower[j, j]
        for i in range(dim):
            lower[i, i] = 1.0 / lower[i, i]
            for j in range(i):
                value = 0.0
                for k in range(j, i):
                    value -= lower[i, k] * lower[k, j]
                lower[i, j] = value * lower[i, i]
        for i in range(dim):
            for j in range(i + 1):
                value = 0.0
                for k in range(i, dim):
                    value += lower[k, i] * lower[k, j]
                inverse[i, j] = inverse[j, i] = value
        for i in range(dim):
            value = 0.0
            for j in range(dim):
                value += inverse[i, j] * moment[j]
            mean[i] = value
        beta = math.sqrt(2.0 * level + log_det - dim * math.log(low)) + math.sqrt(high) + gamma
        action, highest = 0, -np.inf
        for a in range(actions):
            score, square = 0.0, 0.0
            for i in range(dim):
                value = 0.0
                for j in range(dim):
                    value += inverse[i, j] * features[a, j]
                square += value * features[a, i]
                score += mean[i] * features[a, i]
            score += beta * math.sqrt(square)
            if score > highest:
                action, highest = a, score
        reward = 1.0 if 2.0 * chance.random() < 1.0 + means[action] else -1.0
        k = 0
        for i in range(dim):
            for j in range(i, dim):
                leaf[k] = features[action, i] * features[action, j]
                k += 1
        for i in range(dim):
            leaf[k] = features[action, i] * reward
            k += 1
        regret += 0.75 - means[action]
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
