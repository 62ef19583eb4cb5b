"""Theorem 6.7 with its constants."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.capri.setting import (
    DELTA,
    KERNELS,
    LINEAR,
    PAPER,
    functions_shown,
    information_gain,
    world,
)
from dpbandits.experiments.evidence import speaks_from
from dpbandits.experiments.figure import Claim, Figure, Scale
from dpbandits.policies.kernel.shared.confidence import printed_constants
from dpbandits.privacy.budgets import ApproxDP
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


def bound_speaks_from(kernel: Kernel, *, local: bool = False) -> float:
    """From which T on Theorem 6.7 is below the regret of uniform play, at ε = 1."""
    bound = partial(regret_bound, kernel, privacy=_PRIVACY, local=local)
    return speaks_from(bound, uniform_regret(kernel))


class CapriBound(Figure):
    """Theorem 6.7."""

    name: ClassVar[str] = "capri-bound"
    title: ClassVar[str] = "Theorem 6.7 with its constants, as a share of uniform play, ε = 1"
    paper: ClassVar[str] = f"{PAPER}, Theorem 6.7"
    notes: ClassVar[tuple[str, ...]] = (
        "δ = 10⁻⁵, B = τ = 1, F = 1 (it is at least that) and γ_T of playing all pairs equally often "
        "(the largest is at least that): the printed bound is above these curves. A bound above the "
        "regret of uniform play says nothing yet.",
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
            shown = ", ".join(f"10^{math.log10(t):.1f} ({name})" for name, t in begins.items())
            found.append(
                Claim(
                    paper=f"Theorem 6.7, {'local' if local else 'joint'}, with its constants",
                    criterion="the bound is below the regret of uniform play at T = 10⁶, the most "
                    "that is played here",
                    measured=f"it is from T ≈ {shown} on",
                    holds=min(begins.values()) <= 1e6,
                    speaks_from=f"T ≈ 10^{math.log10(min(begins.values())):.1f}",
                )
            )
        kernel, dimension = _KERNELS["linear"], 2
        gains = {t: information_gain(kernel, t) for t in (1e4, 1e6, 1e8)}
        allowed = {t: 0.5 * dimension * math.log1p(t / dimension) for t in gains}
        return [
            *found,
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
