"""Worlds, policies and measure of these figures."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.evidence import Interval
from dpbandits.policies import Policy
from dpbandits.policies.kernel import Capri, LocalCapri
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
# How the CAPRI that is played differs from the paper's, which would play uniformly: in a row, in a note.
DIALLED = "not as printed: no random copies; noise, margins, T₁ and τ of our own"


def as_played(margin: str) -> str:
    """The note on what is played as CAPRI, with margins that are so wide."""
    return (
        "What is played as CAPRI is not as printed. The random copies R and S are left out, and their "
        f"expectation is used. Each pair of actions has a Bernstein margin of its own, at {margin}, in "
        "place of 4Δ_r. The noise is calibrated here, in place of σ₀. T₁ is 500 in place of ⌈√T⌉. τ is "
        "10, in the local model 140/μ where that is more (μ of Gaussian DP)."
    )


PLAYED = as_played("a quarter of its valid width")
# How the paper is read where it leaves a choice.
AS_PRINTED = (
    "As printed, the noise has σ₀ = σ̃_max·(4B ln T/ε)·√ln(1.25 ln T/δ), Eq. (5) with σ̃_max of (6); T₁ "
    "is ⌈√T⌉, R and S are drawn at random, and an action is dropped where it is 4Δ_r behind, as in (7). "
    "Both β and β₁ in Δ_r are those of Lemma 6.6, because the β₁ printed beside (7) is smaller than "
    "what the proof needs. The paper leaves τ open: it is 1."
)
THEOREM_6_7 = (
    "Theorem 6.7 is used with δ_ERR = 0.1, B = τ = 1, F = 1 (it is at least that) and γ_T of playing "
    "all pairs equally often (the largest is at least that). The printed bound is therefore this or "
    "more, and each T from which it speaks is a lower limit. It is stated for T > T₀(δ) only, which "
    "depends on a constant that is not given, so that this condition is not checked. Its local formula "
    "lacks the + after 4B; the last line of the proof is used in its place."
)
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
    """The recommended policy; in the local model under ε-DP, which is more and costs less."""
    problem = KernelWorld.standard().problem(None)
    return recommend(problem, ApproxDP(epsilon, DELTA), trust=trust).policy


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


def too_few(holds: bool | None, functions: int) -> str:
    """How a claim of ours differs where the intervals cannot tell."""
    return f"{functions_shown(functions)} cannot tell" if holds is None else ""


def functions_shown(count: int) -> str:
    """How many, in words."""
    return f"{count} function{'s'[: count != 1]}"
