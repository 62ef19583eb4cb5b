"""Pictures: where things are drawn."""

import math
import re

import pytest

from dpbandits.service.pictures import COLOURS, Axis, coloured, stacked
from dpbandits.service.views import Moment


def moment(decided: int, *shares: int) -> Moment:
    return Moment(at=decided, decided=decided, shares=shares or None, mean=None, low=None, high=None)


def test_an_axis_holds_all_values_and_ends_at_round_numbers() -> None:
    assert Axis.around([0.2, 0.7, math.nan]) == Axis(0.0, 1.0)
    assert Axis.around([-0.031, 0.01]) == Axis(-0.05, 0.05)
    assert Axis.around([150.0]) == Axis(0.0, 200.0)
    assert Axis.around([]) == Axis.around([math.nan, 0.0]) == Axis(0.0, 1.0)
    assert [tick.text for tick in Axis(-0.05, 0.05).ticks()] == ["−0.05", "0", "0.05"]
    assert [tick.place for tick in Axis(0.0, 1.0).ticks()] == ["2.00%", "50.00%", "98.00%"]


def test_a_strip_is_on_its_axis() -> None:
    strip = Axis(0.0, 1.0).strip(0.25, 0.5, 1.5)
    assert strip == ("26.00%", "50.00%", "98.00%", "72.00%")


def test_the_most_frequent_have_colours_of_their_own() -> None:
    assert coloured([0] * COLOURS) == list(range(COLOURS))
    colours = coloured([5, 1, 9, 9, 9, 9, 9, 9, 0])
    assert [place for place, colour in enumerate(colours) if colour == COLOURS] == [1, 8]
    assert sorted(set(colours)) == list(range(COLOURS + 1))


def test_layers_are_steps_that_fill_the_picture() -> None:
    layers = stacked([moment(10, 10, 0), moment(20, 15, 5), moment(40, 15, 25)], [0, 1])
    assert layers == [
        (0, "M0.0,100.0V0.0H250.0V50.0H500.0V100.0H1000.0V100.0H500.0V100.0H250.0V100.0H0.0Z"),
        (1, "M0.0,0.0V0.0H250.0V0.0H500.0V0.0H1000.0V100.0H500.0V50.0H250.0V0.0H0.0Z"),
    ]


def test_many_moments_are_few_columns_and_new_actions_begin_with_nothing() -> None:
    history = [moment(number, number, 0) for number in range(1, 500)]
    history += [moment(number, 500, 0, number - 500) for number in range(501, 1001)]
    (first, path), (third, other) = stacked(history, [0, 1, 2])
    assert (first, third) == (0, 2)
    assert path.count("H") <= 2 * 61 and other.endswith("Z") and "H1000.0" in other
    corners = [float(value) for value in re.findall(r"[VH](-?[\d.]+)", path + other)]
    assert min(corners) >= 0.0 and max(corners) == 1000.0


@pytest.mark.parametrize("silent", [[], [moment(0, 0, 0)], [moment(5)]])
def test_nothing_decided_is_nothing_drawn(silent: list[Moment]) -> None:
    assert stacked(silent, [0, 1]) == []
