"""The picture of a replay: one recorded run, and the same run with one person replaced."""

from pathlib import Path
from typing import Any

from dpbandits.reports.figures import COLOURS, new_figure, save_figure

_BLUE, _ORANGE, _GREEN = COLOURS[:3]
_GREY = "#5a6572"


def draw_replay(path: Path) -> None:
    """Two streams of people above each other, what is released between them, and what that costs."""
    figure, (axes,) = new_figure(width=9.0, height=4.6)
    axes.set(xlim=(0, 11.6), ylim=(-0.5, 6.0))
    axes.axis("off")
    _stream(axes, 4.6, "recorded", ["1", "0", "1", "1", "0", "1"], changed=None)
    _stream(axes, 0.4, "replayed", ["1", "0", "0", "1", "0", "1"], changed=2)
    for end, (above, below) in ((5.0, ("sum 2", "sum 1")), (9.0, ("sum 2", "sum 2"))):
        _release(axes, end, above, below)
    axes.text(6.9, 2.75, "the same result\nis forced", ha="center", va="center", color=_GREY)
    axes.text(
        10.3,
        2.9,
        "cost of the run\n|2 − 1|/scale\n+ |2 − 2|/scale\n≤ ε",
        ha="left",
        va="center",
        color=_GREEN,
    )
    save_figure(figure, path)


def _stream(axes: Any, height: float, label: str, rewards: list[str], changed: int | None) -> None:
    """People in the order of their rounds; the batch of three that each belongs to."""
    axes.text(0.0, height + 0.25, label, va="center", fontweight="bold", color=_GREY)
    for place, reward in enumerate(rewards):
        left = 1.7 + place + (1.0 if place >= 3 else 0.0)
        colour = _ORANGE if place == changed else _BLUE
        axes.add_patch(_box(left, height, colour))
        axes.text(left + 0.35, height + 0.25, reward, ha="center", va="center", color="white")
    if changed is not None:
        axes.text(1.7 + changed + 0.35, height - 0.45, "another answer", ha="center", color=_ORANGE)


def _release(axes: Any, end: float, above: str, below: str) -> None:
    """A draw whose result is forced to be the same in both runs."""
    x = end - 0.05
    axes.text(
        x,
        2.75,
        "released\n2.4" if below != above else "released\n1.8",
        ha="center",
        va="center",
        color=_GREEN,
    )
    for height, towards, located in ((4.5, 3.25, above), (1.0, 2.25, below)):
        axes.annotate("", (x, towards), (x, height), arrowprops={"arrowstyle": "->", "color": _GREY})
        axes.text(
            x + 0.12,
            (height + towards) / 2,
            f"{located}\n+ noise",
            va="center",
            fontsize="small",
            color=_GREY,
        )


def _box(left: float, height: float, colour: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch((left, height), 0.7, 0.5, boxstyle="round,pad=0.04", color=colour)
