"""Classified examples as a bandit: the share that private policies named right, beside LinThompson.

Each round shows one example of a data set of scikit-learn, and naming its class pays. Ranges are taken
as public; rows have an intercept and length 1. Policies were tuned on wine, breast cancer and made-up
classes (`make_classification`), not on digits.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn import datasets

import dpbandits as dpb
from dpbandits.reports.tables import terminal_table

ROUNDS, RUNS, SEED = 100_000, 4, 2026
SETS: dict[str, Any] = {
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
}
BUDGETS = (dpb.ApproxDP(1.0, 1e-6), dpb.ApproxDP(10.0, 1e-6))


def world(name: str) -> dpb.worlds.LoggedContexts:
    """Every example as a context of its own, in which its class pays 1 and all others 0."""
    found = SETS[name]()
    return dpb.worlds.LoggedContexts(
        actions=tuple(str(one) for one in found.target_names),
        features=rows(found.data),
        shares=np.ones(found.target.size),
        rates=np.eye(found.target_names.size)[found.target],
        title=name,
    )


def rows(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns by their range to [−1, 1], an intercept, and length 1."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    wide = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, 2.0 * (numbers - low) / wide - 1.0, 0.0)
    whole = np.column_stack([scaled, np.ones(len(scaled))])
    unit: NDArray[np.float64] = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    return unit * (1.0 - 1e-12)


def shares(name: str, rounds: int) -> list[dict[str, object]]:
    """A row for each policy: the share right so far, the mean of some runs and the least."""
    policies: dict[str, dpb.Policy] = {"lin-thompson": dpb.linear.LinThompson()}
    for budget in BUDGETS:
        for kind in (dpb.linear.BatchedLinThompson, dpb.RandomizedLinUCB, dpb.linear.BatchedLinUCB):
            policies[f"{kind.name()}, {budget}"] = kind(privacy=budget)
    trace = dpb.simulate(policies, world(name), rounds, RUNS, SEED)
    found: list[dict[str, object]] = []
    for label in policies:
        right = 1.0 - trace.regret(label)[:, -1] / rounds
        mean, least = (f"{100 * share:.1f} %" for share in (right.mean(), right.min()))
        found.append({"data": name, "policy": label, "right": mean, "worst run": least})
    return found


if __name__ == "__main__":
    names = sys.argv[1:] or list(SETS)
    table = [row for name in names for row in shares(name, ROUNDS)]
    Console(width=110).print(f"Share right in {ROUNDS:,} rounds, {RUNS} runs", terminal_table(table))
