"""Theorem 6.7 with its constants."""

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.capri.setting import (
    AS_PRINTED,
    DELTA,
    KERNELS,
    LINEAR,
    PAPER,
    THEOREM_6_7,
    functions_shown,
    information_gain,
    printed,
    world,
)
from dpbandits.experiments.evidence import as_power_of_ten, speaks_from
from dpbandits.experiments.figure import Claim, Figure, Scale
from dpbandits.policies.kernel.shared.confidence import printed_constants
from dpbandits.policies.kernel.shared.epochs import shares_of, uniform_table
from dpbandits.policies.kernel.shared.posterior import design
from dpbandits.policies.kernel.shared.projection import whitened
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Kernel
from dpbandits.reports.figures import COLOURS, light_axes, log_axes, new_figure, power_of_ten
from dpbandits.simulation import Trace

_KERNELS = KERNELS | LINEAR
_FUNCTIONS = 4
_PRIVACY = ApproxDP(1.0, DELTA)


def regret_bound(
    kernel: Kernel, rounds: float, privacy: ApproxDP, *, local: bool = False, failure: float = 0.1
) -> float:
    """Theorem 6.7 at τ = 1 on 20 × 20 pairs: √T(4B + 135/26 F² ln T β √(2γ_T)) + 135/13 F² ln T β₁γ_T.

    The last term is √T times as large in the local model. F, a bound on the kernel's eigenfunctions, is
    at least 1 and taken to be 1; γ_T is at least the gain of playing all pairs equally often, which is
    used. So the printed bound is this or more.
    """
    problem, log = world(kernel, 0).problem(None), math.log(rounds)
    slope, square = printed_constants(problem, rounds, privacy, failure, 1.0)
    gain = information_gain(kernel, rounds)
    data = 4.0 * problem.max_reward + 135.0 / 26.0 * log * slope * math.sqrt(2.0 * gain)
    noise = 135.0 / 13.0 * log * square * gain
    return math.sqrt(rounds) * data + (math.sqrt(rounds) if local else 1.0) * noise


def uniform_regret(kernel: Kernel) -> float:
    """Regret a round of uniform play, on average over functions."""
    return float(np.mean([world(kernel, one).uniform_regret() for one in range(_FUNCTIONS)]))


@cache
def bound_speaks_from(kernel: Kernel, *, local: bool = False) -> float:
    """From which T on Theorem 6.7 is below the regret of uniform play, at ε = 1."""
    bound = partial(regret_bound, kernel, privacy=_PRIVACY, local=local)
    return speaks_from(bound, uniform_regret(kernel))


def begins_shown(begins: Mapping[str, float]) -> str:
    """From which T on the first of the kernels speaks, and when the others do.

    >>> begins_shown({"Matérn": 1e17, "linear": 1e15, "squared": 1e16})
    'T ≈ 10^15.0 (linear; the others 10^16.0 to 10^17.0)'
    """
    (first, earliest), *others = sorted(begins.items(), key=lambda one: one[1])
    low, high = (as_power_of_ten(others[at][1]) for at in (0, -1))
    return f"T ≈ {as_power_of_ten(earliest)} ({first}; the others {low} to {high})"


def delivered(trust: Trust, rounds: int) -> Budget:
    """What the printed σ₀ guarantees at ε = 1, where every context comes."""
    problem = world(KERNELS["squared exponential"], 0).problem(rounds)
    return printed(1.0, trust).guarantee(problem).budget


@cache
def delivered_to_a_stranger(kernel: Kernel, rounds: int) -> Budget:
    """What the printed σ₀ at ε = 1 guarantees to a person in the first context, where κ gives it 0.

    σ̃_max leaves her pairs out, and her vector may be longer. R and S are at their expectation, in the
    last epoch that ends before the horizon.
    """
    weights = (0.0, *[1.0 / 19.0] * 19)
    problem = world(kernel, 0, declared=weights).problem(rounds)
    rows, kappa = problem.features().rows, problem.context_weights()
    first = math.ceil(math.sqrt(rounds))
    last = first * 2 ** max(0, math.ceil(math.log2(rounds / first + 1.0)) - 2)
    maps, _ = whitened(rows, design(rows, shares_of(uniform_table(problem), kappa), last), 1.0)
    lengths = np.linalg.norm(maps, axis=1)
    comes = np.repeat(kappa > 0.0, len(problem.actions))
    held = delivered(Trust.JOINT, rounds)
    assert isinstance(held, GaussianDP)
    return GaussianDP(held.mu * float(lengths.max() / lengths[comes].max()))


class CapriBound(Figure):
    """Theorem 6.7."""

    name: ClassVar[str] = "capri-bound"
    title: ClassVar[str] = "Theorem 6.7 with its constants, as a share of uniform play, ε = 1"
    paper: ClassVar[str] = f"{PAPER}, Theorem 6.7"
    notes: ClassVar[tuple[str, ...]] = (
        "All at δ = 10⁻⁵. A bound above the regret of uniform play says nothing yet.",
        THEOREM_6_7,
        AS_PRINTED,
        "The guarantee delivered is that of Gaussian noise, exactly, and of each epoch on its own, as a "
        "person is in one epoch only; the paper divides ε and δ by ln T for all epochs. The maximum in "
        "(6) is over contexts that come by κ, while a neighbour in Definition 2.6 may have any context. "
        "`Capri` shortens the vector of a context of weight 0, so that the guarantee holds for all.",
    )

    def describe_scale(self, scale: Scale) -> str:
        """Formulas have one scale."""
        return f"formula, 20 contexts × 20 actions, uniform play on {functions_shown(_FUNCTIONS)}"

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A line for each kernel and model."""
        figure, (axes,) = new_figure(width=7.5, height=4.4)
        rounds = np.geomspace(1e3, 1e27, 60)
        for colour, (name, kernel) in zip(COLOURS, _KERNELS.items(), strict=False):
            for local, stroke in ((False, "-"), (True, "--")):
                bounds = [regret_bound(kernel, t, _PRIVACY, local=local) for t in rounds]
                label = f"{name}, {'local' if local else 'joint'}"
                share = np.array(bounds) / (uniform_regret(kernel) * rounds)
                axes.plot(rounds, share, stroke, color=colour, label=label)
        axes.axhline(1.0, color="#999999", linewidth=0.8)
        axes.set(xlabel="T", ylabel="bound / regret of uniform play")
        log_axes(axes)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(power_of_ten)
        light_axes(axes)
        axes.legend(frameon=False, fontsize="small")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """From when on each says something, and the dimension of the linear kernel."""
        found = []
        for local in (False, True):
            begins = {x: bound_speaks_from(kernel, local=local) for x, kernel in _KERNELS.items()}
            shown = ", ".join(f"{as_power_of_ten(t)} ({name})" for name, t in begins.items())
            found.append(
                Claim(
                    paper=f"Theorem 6.7, {'local' if local else 'joint'}, with its constants",
                    criterion="the bound is below the regret of uniform play at T = 10⁶, the most "
                    "that is played here",
                    measured=f"it is from T ≈ {shown} on",
                    holds=min(begins.values()) <= 1e6,
                    speaks_from=begins_shown(begins),
                )
            )
        kernel, dimension = _KERNELS["linear"], 2
        gains = {t: information_gain(kernel, t) for t in (1e4, 1e6, 1e8)}
        allowed = {t: 0.5 * dimension * math.log1p(t / dimension) for t in gains}
        return [
            *found,
            *self._privacy(),
            Claim(
                paper="(ours) Formula check: linear kernels have γ_T = O(d), up to a logarithm",
                criterion="γ_T of uniform play is at most (d/2) ln(1 + T/d) for T = 10⁴, 10⁶ and 10⁸, "
                "d = 2; true of all rows of norm at most 1, so that it tests the formula, not the paper",
                measured=", ".join(
                    f"{gain:.1f} of {allowed[t]:.1f} at 10^{math.log10(t):.0f}"
                    for t, gain in gains.items()
                ),
                holds=all(gain <= allowed[t] for t, gain in gains.items()),
                ours=True,
            ),
        ]

    def _privacy(self) -> list[Claim]:
        """The first half of the theorem, and the contexts that its proof leaves out."""
        rounds, late = 10**6, 10**8
        held = {trust: delivered(trust, rounds) for trust in (Trust.JOINT, Trust.LOCAL)}
        left_out = {
            t: {
                name: delivered_to_a_stranger(kernel, t).epsilon_at(DELTA)
                for name, kernel in _KERNELS.items()
            }
            for t in (rounds, late)
        }
        return [
            Claim(
                paper="Theorem 4.1: CAPRI is (ε, δ)-JDP, and in the local model (ε, δ)-LDP, where every "
                "context comes",
                criterion="at ε = 1, δ = 10⁻⁵ and T = 10⁶ the printed σ₀ guarantees at most ε at this δ",
                measured=", ".join(
                    f"{trust} {budget}, which is ε = {budget.epsilon_at(DELTA):.3f}"
                    for trust, budget in held.items()
                ),
                holds=all(budget.epsilon_at(DELTA) <= 1.0 for budget in held.values()),
                scale="formula, T = 10⁶",
            ),
            Claim(
                paper="Theorem 4.1: the same where κ is 0 for one context, as neighbours may have any",
                criterion="the same for a person in that context, in the last epoch, for each kernel, "
                "at T = 10⁶ and 10⁸: the theorem is for every T",
                measured="; ".join(
                    ", ".join(f"ε = {epsilon:.2f} ({name})" for name, epsilon in found.items())
                    + f" at T = {as_power_of_ten(t)}"
                    for t, found in left_out.items()
                ),
                holds=all(epsilon <= 1.0 for found in left_out.values() for epsilon in found.values()),
                differs="R and S at their expectation, κ equal for the other 19 contexts",
                scale="formula, T = 10⁶ and 10⁸",
            ),
        ]
