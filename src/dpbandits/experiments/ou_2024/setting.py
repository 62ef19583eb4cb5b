"""What the figures of this paper share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpbandits.experiments.figure import Figure, Scale
from dpbandits.policies.arms import GaussianThompson
from dpbandits.privacy.budgets import GaussianDP
from dpbandits.problems import Arms
from dpbandits.reports.figures import legend_beside, light_axes, line_style
from dpbandits.simulation import Trace

PAPER = "Ou, Avella Medina & Cummings 2024"
HORIZON = 1000  # of the two figures of formulas
DELTAS = np.geomspace(1e-10, 1e-2, 81)


CHOOSING = "choosing"  # simulations with seeds of their own, on which (b, c) is chosen


class FormulaFigure(Figure):
    """A figure of formulas, of which nothing is simulated."""

    def describe_scale(self, scale: Scale) -> str:
        """Formulas have one scale."""
        return f"formula, T = {HORIZON}"


def true_budget(arms: int) -> GaussianDP:
    """What Algorithm 1 really guarantees, as the policy itself states it."""
    budget = GaussianThompson().guarantee(Arms(arms, horizon=HORIZON)).budget
    assert isinstance(budget, GaussianDP)
    return budget


def least_regret(trace: Trace) -> str:
    """The label with the least regret at the end, on average."""
    return min(trace.policies, key=lambda label: float(trace.regret(label)[:, -1].mean()))


def plot_epsilon(
    axes: Any, epsilon: Callable[[float], float], label: str, index: int, stroke: str = "-"
) -> None:
    """One curve of ε(δ)."""
    style = line_style(index) | {"linestyle": stroke}
    axes.plot(DELTAS, [epsilon(delta) for delta in DELTAS], label=label, **style)


def privacy_axes(axes: Any, title: str) -> None:
    """δ on a log axis, and the legend beside."""
    axes.set_xscale("log")
    axes.set_xlabel("δ")
    axes.set_ylabel("ε")
    axes.set_title(title)
    light_axes(axes)
    legend_beside(axes, fontsize="small")
