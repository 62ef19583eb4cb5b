"""Worlds, policies and measure of these figures."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.evidence import Interval
from dpbandits.policies import Policy
from dpbandits.policies.kernel import Capri, KernelThompson, LocalCapri, LocalKernelThompson
from dpbandits.privacy.budgets import ApproxDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Kernel, LinearKernel, Matern, SquaredExponential
from dpbandits.recommend import recommend
from dpbandits.simulation import Trace
from dpbandits.worlds import KernelWorld

PAPER = "Pavlovic, Salgia & Zhao"
KERNELS: dict[str, Kernel] = {
    "squared exponential": SquaredExponential(0.2),
    "Matérn 2.5": Matern(0.2, 2.5),
    "Matérn 1.5": Matern(0.2, 1.5),
}
LINEAR: dict[str, Kernel] = {"linear": LinearKernel()}
DELTA = 1e-5
# How the CAPRI that is played differs from the paper's, which would play uniformly.
DIALLED = "noise as calibrated here and a quarter of the valid margins, not as printed"
_CAPRI = {Trust.JOINT: Capri, Trust.LOCAL: LocalCapri}


def world(kernel: Kernel, function: int, **options: Any) -> KernelWorld:
    """20 contexts, 20 actions, one of the functions."""
    grid = tuple((x,) for x in np.linspace(0.0, 1.0, 20).tolist())
    return KernelWorld(kernel, grid, grid, seed=function, **options)


def dialled(epsilon: float, trust: Trust = Trust.JOINT) -> Policy:
    """`Capri` with the dial that `recommend` sets."""
    problem = KernelWorld.standard().problem(None)
    return recommend(problem, ApproxDP(epsilon, DELTA), trust=trust, kind=_CAPRI[trust]).policy


def thompson(epsilon: float, trust: Trust = Trust.JOINT) -> Policy:
    """The recommended policy."""
    kind = LocalKernelThompson if trust is Trust.LOCAL else KernelThompson
    return kind(privacy=ApproxDP(epsilon, DELTA))


def printed(epsilon: float, trust: Trust = Trust.JOINT) -> Policy:
    """`Capri` as printed: noise, copies and confidence."""
    return _CAPRI[trust](privacy=ApproxDP(epsilon, DELTA), calibration="paper", tau=1.0)


def shares(traces: Mapping[str, Trace], prefix: str, policy: str) -> NDArray[np.float64]:
    """Regret as a share of uniform play's, by round, over all functions of a prefix."""
    mine: Any = 0.0
    uniform: Any = 0.0
    for name, trace in traces.items():
        if name.startswith(prefix):
            gap = KernelWorld.from_dict(trace.header["environment"]).uniform_regret()
            mine = mine + trace.regret(policy).mean(axis=0)
            uniform = uniform + gap * trace.rounds
    return np.asarray(mine / uniform)


def regrets(traces: Mapping[str, Trace], prefix: str, policy: str) -> NDArray[np.float64]:
    """Regret by round of each function of a prefix, (functions, points)."""
    kept = [trace for name, trace in traces.items() if name.startswith(prefix)]
    return np.stack([trace.regret(policy).mean(axis=0) for trace in kept])


def information_gain(kernel: Kernel, rounds: float, tau: float = 1.0) -> float:
    """½ ln det(I + K T/(τ|W|)): of playing every pair equally often, which γ_T is at least."""
    return float(0.5 * np.log1p(_spectrum(kernel) * (rounds / tau)).sum())


@functools.lru_cache(maxsize=16)
def _spectrum(kernel: Kernel) -> NDArray[np.float64]:
    """The eigenvalues of K/|W|."""
    rows = world(kernel, 0).problem(None).features().rows
    return np.asarray(np.maximum(np.linalg.eigvalsh(rows.T @ rows / len(rows)), 0.0))


def at_most(limit: float, *found: Interval) -> bool | None:
    """Whether all of these are, by their intervals; None where none is above and not all are below."""
    if any(one.low > limit for one in found):
        return False
    return True if all(one.high <= limit for one in found) else None


def functions_shown(count: int) -> str:
    """How many, in words."""
    return f"{count} function{'s'[: count != 1]}"
