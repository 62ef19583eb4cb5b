"""Matroid policies as one would write them for vectors alone: references of the speed table."""

import math
from typing import Any

import numpy as np
from hand_written import fast


@fast
def _sort(order: Any, weights: Any) -> bool:
    """Insertion sort, the largest first; says whether anything moved."""
    moved = False
    for start in range(1, order.size):
        place, item = start, order[start]
        while place > 0 and weights[item] > weights[order[place - 1]]:
            order[place] = order[place - 1]
            place -= 1
            moved = True
        order[place] = item
    return moved


@fast
def _greedy(vectors: Any, order: Any, basis: Any, rows: Any, pivots: Any) -> None:
    """Gaussian elimination in floating point."""
    chosen, dim = 0, vectors.shape[1]
    for item in order:
        row = rows[chosen]
        row[:] = vectors[item]
        for index in range(chosen):
            factor = row[pivots[index]]
            if factor != 0.0:
                for axis in range(dim):
                    row[axis] -= factor * rows[index, axis]
        best = 0
        for axis in range(dim):
            if abs(row[axis]) > abs(row[best]):
                best = axis
        if abs(row[best]) > 1e-9:
            row /= row[best]
            pivots[chosen] = best
            basis[chosen] = item
            chosen += 1
            if chosen == basis.size:
                return


@fast
def matroid_ucb(
    vectors: Any, rank: int, means: Any, epsilon: float, rounds: int, noise: Any, chance: Any
) -> float:
    """DPUCB-MAT; loops are left out beforehand."""
    items = means.size
    order, basis = np.arange(items), np.zeros(rank, np.int64)
    rows, pivots = np.zeros((rank + 1, vectors.shape[1])), np.zeros(rank + 1, np.int64)
    _greedy(vectors, order, basis, rows, pivots)
    size, opened, buffer = np.zeros(items), np.zeros(items), np.zeros(items)
    mean, index, paid = np.full(items, np.inf), np.zeros(items), np.zeros(items)
    earned = 0.0
    for t in range(rounds):
        if t > 0:
            spread = 3.0 * math.log(rank * (t + 1.0))
            for item in range(items):
                bonus = math.sqrt(spread / size[item]) + spread * rank / (epsilon * size[item])
                index[item] = mean[item] + (bonus if size[item] > 0.0 else 0.0)
            if _sort(order, index):
                _greedy(vectors, order, basis, rows, pivots)
        for item in range(items):
            paid[item] = 1.0 if chance.random() < means[item] else 0.0
        for place in range(rank):
            item = basis[place]
            earned += means[item]
            buffer[item] += paid[item]
            opened[item] += 1.0
            if opened[item] == max(1.0, 2.0 * size[item]):
                size[item] = opened[item]
                mean[item] = noise.laplace(buffer[item], rank / epsilon) / size[item]
                opened[item] = buffer[item] = 0.0
    return earned


@fast
def focused_matroid_ucb(
    vectors: Any,
    rank: int,
    means: Any,
    fed: int,
    first: int,
    epsilon: float,
    rounds: int,
    noise: Any,
    chance: Any,
) -> float:
    """Explore only what is fed; batches weighted by precision."""
    items, scale = means.size, fed / epsilon
    hopeful, played = np.arange(items), np.arange(items)
    hoped, basis = np.zeros(rank, np.int64), np.zeros(rank, np.int64)
    rows, pivots = np.zeros((rank + 1, vectors.shape[1])), np.zeros(rank + 1, np.int64)
    plays, opened, buffer, length = (
        np.zeros(items),
        np.zeros(items),
        np.zeros(items),
        np.full(items, first),
    )
    sums, counts, squares = np.zeros(items), np.zeros(items), np.zeros(items)
    weights, top = np.zeros(items), np.zeros(items)
    mean, doubt, score, paid = np.zeros(items), np.full(items, np.inf), np.zeros(items), np.zeros(items)
    until, earned = 0, 0.0
    for t in range(rounds):
        if t >= until:
            for item in range(items):
                score[item] = np.inf
                if plays[item] > 0.0:
                    log = math.log(1.0 + t / plays[item])
                    width = max(math.sqrt(log * doubt[item]), log * scale * top[item] / counts[item])
                    score[item] = mean[item] + width
            _sort(hopeful, score)
            _greedy(vectors, hopeful, hoped, rows, pivots)
            score[:] = mean
            for _ in range(fed):
                most = hoped[0]
                for one in hoped:
                    if score[one] < np.inf and (score[most] == np.inf or doubt[one] > doubt[most]):
                        most = one
                score[most] = np.inf
            _sort(played, score)
            _greedy(vectors, played, basis, rows, pivots)
            until = t + max(1, int(0.03 * t))
        for item in range(items):
            paid[item] = 1.0 if chance.random() < means[item] else 0.0
        for place in range(rank):
            item = basis[place]
            earned += means[item]
            if place < fed:
                buffer[item] += paid[item]
                opened[item] += 1.0
                if opened[item] == length[item]:
                    n = opened[item]
                    weight = n / (0.25 * n + 2.0 * scale * scale)
                    sums[item] += weight * noise.laplace(buffer[item], scale)
                    counts[item] += weight * n
                    squares[item] += weight * weight * n
                    weights[item] += weight * weight
                    top[item] = max(top[item], weight)
                    plays[item] += n
                    mean[item] = sums[item] / counts[item]
                    spread = 0.25 * squares[item] + 2.0 * scale * scale * weights[item]
                    doubt[item] = spread / (counts[item] * counts[item])
                    opened[item] = buffer[item] = 0.0
                    length[item] = max(first, math.ceil(0.5 * plays[item]))
                    until = t + 1
    return earned
