"""Checks and recipes: the small things everything else stands on."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import checks
from dpbandits.errors import InvalidInput, UnknownName
from dpbandits.recipes import Recipe


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True, [1.0]])
def test_positive_names_what_is_wrong(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"expected epsilon .*, got"):
        checks.positive(epsilon=value)
    checks.positive(epsilon=1e-300)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.not_negative, 0.0, -1e-9),
        (checks.open_unit, 0.5, 1.0),
        (checks.open_unit, 1e-300, 0.0),
        (checks.above_one, 1.5, 1.0),
        (checks.unit, 1.0, 1.0001),
    ],
)
def test_ranges(check: Any, good: float, bad: Any) -> None:
    check(x=good)
    with pytest.raises(InvalidInput, match="expected x"):
        check(x=bad)


def test_whole_numbers_and_options() -> None:
    checks.integer(least=2, arms=2)
    for bad in (1, 2.0, True, "2"):
        with pytest.raises(InvalidInput, match="expected arms to be a whole number >= 2"):
            checks.integer(least=2, arms=bad)
    with pytest.raises(InvalidInput, match="expected mode to be one of 'a', 'b', got 'c'"):
        checks.one_of("ab", mode="c")


def test_unknown_names() -> None:
    assert checks.known("fruit", "apple", ["apple", "pear"]) == "apple"
    with pytest.raises(UnknownName, match="did you mean 'apple'"):
        checks.known("fruit", "aple", ["apple", "pear"])


@pytest.mark.parametrize(
    "recipe",
    [
        dpb.Arms(3, horizon=7),
        dpb.worlds.BernoulliArms([0.5, 0.25]),
        dpb.worlds.TruncatedExponentialArms((1.0, 2.0)),
        dpb.arms.ModifiedThompson(privacy=dpb.ApproxDP(1.0, 1e-6), prepulls=3),
    ],
)
def test_recipes_survive_json_and_are_keys(recipe: Recipe) -> None:
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe and {recipe: 1}[again] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a recipe"),
        ("[]", "with a 'kind'"),
        ('{"kind": 3}', "with a 'kind'"),
        ('{"kind": "Arm", "arms": 3}', "did you mean 'Arms'"),
        ('{"kind": "Arms", "arm": 3}', "did you mean 'arms'"),
        ('{"kind": "Arms", "arms": 1}', "expected arms"),
        ('{"kind": "os.system", "command": "true"}', "no recipe is called 'os.system'"),
    ],
)
def test_records_that_are_no_recipes(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Recipe.from_json(text)


def test_a_recipe_of_another_sort_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected a Policy, got the record of a Arms"):
        dpb.Policy.from_dict(dpb.Arms(3).to_dict())


def test_no_class_takes_over_the_records_of_this_package() -> None:
    with pytest.raises(InvalidInput, match=r"has the name of dpbandits\.problems\.arms\.Arms"):

        @dataclass(frozen=True)
        class Arms(Recipe):
            arms: int

    assert type(Recipe.from_dict(dpb.Arms(3).to_dict())) is dpb.Arms


def test_of_two_classes_of_one_name_from_outside_neither_is_taken() -> None:
    def made() -> type[Recipe]:
        @dataclass(frozen=True)
        class ThrownAway(Recipe):
            pass

        return ThrownAway

    for _ in range(2):  # made again in the same place, it is the same class anew
        assert made() is type(Recipe.from_dict({"kind": "ThrownAway"}))

    @dataclass(frozen=True)
    class ThrownAway(Recipe):
        pass

    with pytest.raises(InvalidInput, match="several recipes are called 'ThrownAway'"):
        Recipe.from_dict({"kind": "ThrownAway"})


def test_numpy_numbers_become_plain_and_missing_fields_are_named() -> None:
    half: Any = np.float32(0.5)
    assert Recipe.from_json(dpb.PureDP(half).to_json()) == dpb.PureDP(0.5)
    with pytest.raises(InvalidInput, match=r"record of a PureDP is incomplete: .*epsilon"):
        Recipe.from_json('{"kind": "PureDP"}')
    with pytest.raises(InvalidInput, match="expected epsilon"):
        dpb.PureDP(10**400)


def test_command_line_names() -> None:
    assert dpb.arms.ModifiedThompson.name() == "modified-thompson"

    class PrivateKLUCB(Recipe):
        abstract = True

    assert PrivateKLUCB.name() == "private-klucb"
