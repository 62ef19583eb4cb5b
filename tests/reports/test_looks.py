"""What holds for every picture: looks, bands, legends, formats, light and dark."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from browser import opened
from numpy.typing import NDArray
from playwright.sync_api import Browser

import dpbandits as dpb
from dpbandits.errors import InvalidInput
from dpbandits.policies import FAMILIES, Policy, policy_kinds
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.reports.dots import Panel, dot_chart
from dpbandits.reports.figures import band, draw_curves, new_figure, regret_figure, save_figure
from dpbandits.reports.html import Page
from dpbandits.reports.styles import _TWIN_OF, line_style, policy_style, styles

ROUNDS = np.arange(1, 101)


def runs(level: float, count: int = 5) -> NDArray[np.float64]:
    return level * np.linspace(0.9, 1.1, count)[:, None] * np.sqrt(ROUNDS)


def seen(colour: str, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """A colour as somebody sees it, in linear light, then by perceived brightness."""
    light = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]) ** 2.2
    return np.asarray(np.clip(matrix @ light, 0.0, 1.0) ** (1 / 2.2))


# Machado, Oliveira & Fernandes 2009, at full severity.
SIGHTS = {
    "all colours": np.eye(3),
    "without red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "without green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def alike(first: dict[str, str], second: dict[str, str]) -> bool:
    """Whether somebody cannot tell two looks apart: one marker, and colours too near for some eyes."""
    if first["marker"] != second["marker"]:
        return False
    colours = first["color"], second["color"]
    return any(
        float(np.abs(seen(colours[0], m) - seen(colours[1], m)).max()) < 0.12 for m in SIGHTS.values()
    )


def test_any_two_policies_of_a_family_are_told_apart_whatever_colours_one_sees() -> None:
    for family in FAMILIES:
        names = [getattr(family, kind).name() for kind in family.__all__]
        for one, other in itertools.combinations(names, 2):
            if _TWIN_OF.get(one) != other and _TWIN_OF.get(other) != one:
                assert not alike(policy_style(one), policy_style(other)), (one, other)
    # The detector finds what cannot be told apart: a red and a green of one brightness.
    assert alike({"marker": "o", "color": "#b05a00"}, {"marker": "o", "color": "#807300"})


def test_a_policy_looks_the_same_in_every_panel_and_picture() -> None:
    curves = {"lazy-ucb": runs(1.0), "tree-ucb": runs(2.0), "noise-aware-imed": runs(3.0)}
    figure, (left, right) = new_figure(2, sharey=True)
    draw_curves(left, ROUNDS, curves)
    draw_curves(
        right,
        ROUNDS,
        {"Another name": runs(1.0)},
        policies={"Another name": dpb.arms.LazyUCB(privacy=dpb.PureDP(1.0))},
    )
    alone = regret_figure(ROUNDS, {"tree-ucb, 1-DP": runs(2.0), "lazy-ucb, 1-DP": runs(1.0)})
    lines = {
        (place, str(line.get_label())): (line.get_color(), line.get_marker(), line.get_linestyle())
        for place, axes in enumerate((left, right, alone.axes[0]))
        for line in axes.get_lines()
    }
    assert lines[0, "lazy-ucb"] == lines[1, "Another name"] == lines[2, "lazy-ucb, 1-DP"]
    assert lines[0, "tree-ucb"] == lines[2, "tree-ucb, 1-DP"] != lines[0, "lazy-ucb"]
    assert len(figure.legends) == 1 and left.get_ylim() == right.get_ylim()


def test_twins_are_their_policies_dashed() -> None:
    for name, kind in policy_kinds().items():
        budget = next(
            (
                held
                for held in (dpb.PureDP(1.0), dpb.GaussianDP(1.0), dpb.ApproxDP(1.0, 1e-6))
                if isinstance(held, kind.accepts)
            ),
            None,
        )
        if budget is None or kind.takes_no_budget():
            continue
        policy: Policy = kind(privacy=budget)
        twin = policy.twin()
        if twin is None or not isinstance(twin.privacy, NonPrivate):
            continue
        found = styles(["mine", "without"], {"mine": policy, "without": twin})
        assert found["mine"]["color"] == found["without"]["color"], name
        assert (found["mine"]["linestyle"], found["without"]["linestyle"]) == ("-", "--"), name


def test_hollow_markers_are_of_those_without_a_budget_only() -> None:
    drawn = styles(["capri, one", "capri, two", "capri, three", "capri, four", "kernel-thompson"])
    assert "none" not in {look.get("fillstyle", "full") for look in drawn.values()}


def test_labels_that_are_no_policies_are_told_apart_by_place() -> None:
    dims = [f"d = {dim}" for dim in range(9)]
    assert list(styles(dims).values()) == [line_style(index) for index in range(9)]
    options = [f"modified-thompson:prepulls={n}" for n in (1, 2, 3)]
    assert list(styles(options).values()) == [line_style(index) for index in range(3)]
    mixed = styles([*options, "lazy-ucb"])
    assert mixed["lazy-ucb"] == policy_style("lazy-ucb")
    assert len({(one["color"], one.get("fillstyle")) for one in mixed.values()}) == 4


def test_bands_do_not_widen_with_the_number_of_runs() -> None:
    """Of normal runs. A right band fails with probability below 10⁻⁶: its width has a standard error of
    .09 of it at 100 runs and of .02 at 2,000, so that what is allowed is over five of them.
    """
    rng = np.random.default_rng(20)
    few, many = (rng.standard_normal((count, 1)) for count in (100, 2000))
    widths = [float(high[0] - low[0]) for low, high in map(band, (few, many))]
    assert abs(widths[1] / widths[0] - 1.0) < 0.63 and widths[1] == pytest.approx(2.563, abs=0.5)
    # From the best to the worst run, as it was once drawn, it does: by a third and more.
    assert np.ptp(many) / np.ptp(few) > 1.2


@pytest.mark.parametrize("count", [3, 28])
def test_no_legend_lies_over_a_curve(count: int) -> None:
    names = list(policy_kinds())[:count]
    figure = regret_figure(ROUNDS, {name: runs(1.0 + place) for place, name in enumerate(names)})
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    (axes,) = figure.axes
    legend = axes.get_legend() or figure.legends[0]
    assert len(legend.get_texts()) == count
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
    # Where matplotlib would put it, it does.
    inside = axes.legend(loc="upper left")
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    assert inside.get_window_extent().overlaps(axes.get_window_extent())


def test_one_legend_is_drawn_however_often_panels_are_added() -> None:
    figure, panels = new_figure(3)
    for axes in panels:
        draw_curves(axes, ROUNDS, {"lazy-ucb": runs(1.0), "tree-ucb": runs(2.0)})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["lazy-ucb", "tree-ucb"]
    assert figure.get_figheight() < 4.5


def test_leaderboards_have_a_row_for_each_policy_the_best_on_top() -> None:
    got = {"tree-ucb": np.array([90.0, 110.0]), "lazy-ucb": np.array([9.0, 11.0])}
    figure = dot_chart(
        [[Panel("one", got, 5.0), Panel("two", got)]], "regret", columns=2, bold={"lazy-ucb"}
    )
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["lazy-ucb", "tree-ucb"]
    assert left.get_ylim() == right.get_ylim() and left.get_ylim()[0] > left.get_ylim()[1]
    drawn = [np.asarray(line.get_xdata(), float) for line in left.get_lines()]
    assert [5.0, 5.0] in [list(one) for one in drawn] and 10.0 in [
        one[0] for one in drawn if one.size == 1
    ]
    assert "95 %" in figure.get_supxlabel() and "dotted" in figure.get_supxlabel()


def test_pictures_come_in_three_formats_with_the_same_bytes_each_time(tmp_path: Path) -> None:
    for suffix in (".svg", ".png", ".pdf"):
        made = [
            save_figure(
                regret_figure(ROUNDS, {"lazy-ucb": runs(1.0)}), tmp_path / f"{n}{suffix}"
            ).read_bytes()
            for n in (1, 2)
        ]
        assert made[0] == made[1] and len(made[0]) > 5000, suffix
    with pytest.raises(InvalidInput, match="expected a picture to end in"):
        save_figure(regret_figure(ROUNDS, {"lazy-ucb": runs(1.0)}), tmp_path / "x.bmp")


@pytest.mark.slow
def test_reports_are_readable_by_day_and_by_night(tmp_path: Path, browser: Browser) -> None:
    """Letters of page and picture turn light where the page turns dark."""
    page = (
        Page("A page").picture(regret_figure(ROUNDS, {"lazy-ucb": runs(1.0)})).write(tmp_path / "a.html")
    )
    found = {}
    for dark in (False, True):
        with opened(browser, page.as_uri(), dark=dark) as shown:
            found[dark] = shown.evaluate(
                """() => {
                const [body, svg, paper] = ["body", "svg", '[id^="patch_1"] path'].map(
                    one => getComputedStyle(document.querySelector(one)));
                return [body.backgroundColor, body.color, svg.fill, paper.fill]; }"""
            )
    assert found[False] == [
        "rgb(255, 255, 255)",
        "rgb(29, 36, 48)",
        "rgb(0, 0, 0)",
        "rgb(255, 255, 255)",
    ]
    assert found[True] == [
        "rgb(18, 22, 29)",
        "rgb(230, 233, 238)",
        "rgb(230, 233, 238)",
        "rgb(18, 22, 29)",
    ]
