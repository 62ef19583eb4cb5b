"""Published figures and tables, each by one command, with the paper's claims checked.

To add a paper: one file with a tuple FIGURES, and its name below. A paper of many figures is a folder:
a file for each figure, what they share in setting.py, and FIGURES in its __init__.py.
"""

from dpbandits import checks
from dpbandits.experiments import (
    arms_leaderboard,
    capri,
    chandak,
    changing_arms,
    identification,
    kernel_leaderboard,
    linear_leaderboard,
    matroid_leaderboard,
    mishra_2015,
    obd,
    ou_2024,
    rounds,
    shariff_2018,
)
from dpbandits.experiments.figure import Claim, Figure, Result, Simulation, Verdict

__all__ = ["FIGURES", "Claim", "Figure", "Result", "Simulation", "Verdict", "figure_named"]

PAPERS = (
    ou_2024,
    mishra_2015,
    arms_leaderboard,
    shariff_2018,
    linear_leaderboard,
    chandak,
    matroid_leaderboard,
    capri,
    kernel_leaderboard,
    rounds,
    changing_arms,
    obd,
    identification,
)
FIGURES: dict[str, Figure] = {figure.name: figure for paper in PAPERS for figure in paper.FIGURES}


def figure_named(name: str) -> Figure:
    """The figure of this name; a wrong one suggests the nearest."""
    return FIGURES[checks.known("figure", name, FIGURES)]
