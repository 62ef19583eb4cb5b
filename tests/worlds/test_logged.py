"""Worlds of logs: read from all sorts of tables, exact, and every wrong table is one sentence."""

import datetime
import math
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats

import dpbandits as dpb
from dpbandits.errors import InvalidInput, LooseBound, ShortenedFeatures
from dpbandits.features import Category, Hashed, Number
from dpbandits.worlds import LoggedArms, LoggedContexts
from dpbandits.worlds.arms import BernoulliWorld
from dpbandits.worlds.logged.arms import EmpiricalWorld

LOG: dict[str, Any] = {
    "item": ["b", "a", "a", "b", "a", "c"],
    "click": [0, 1, 0, 0, 1, 1],
    "stars": [1.0, 5.0, 2.5, 1.0, 5.0, 4.0],
    "p": [0.5, 0.25, 0.25, 0.5, 0.5, 1.0],
    "place": [1, 1, 2, 2, 1, 2],
    "hour": [0.0, 0.5, 0.0, 0.5, 0.0, 0.5],
    "price": [0.1, 0.2, 0.2, 0.1, 0.2, 0.3],
    "word": ["x", "y", "x", "y", "x", "y"],
}
COLUMNS: dict[str, Any] = {"action": "item", "reward": "click"}


def _written(folder: Path, suffix: str) -> Path:
    path = folder / f"log{suffix}"
    frame = pl.DataFrame(LOG)
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_csv(path)
    return path


class Arrow:
    """A table that only speaks Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pl.DataFrame(LOG).__arrow_c_stream__(requested_schema)


def test_every_kind_of_table_gives_the_same_world(tmp_path: Path) -> None:
    world = LoggedArms.read(LOG, **COLUMNS)
    assert world.actions == ("a", "b", "c") and world.arm_means() == (2 / 3, 0.0, 1.0)
    frame = pl.DataFrame(LOG)
    arrays = {name: np.array(values) for name, values in LOG.items()}
    flags = frame.with_columns(pl.col("click").cast(pl.Boolean), pl.col("item").cast(pl.Categorical))
    files = [_written(tmp_path, suffix) for suffix in (".parquet", ".csv")]
    files += [files[1].rename(tmp_path / "LOG.CSV"), _written(tmp_path, ".csv")]
    for source in (frame, frame.lazy(), arrays, flags, Arrow(), *files, str(tmp_path / "*.csv")):
        again = LoggedArms.read(source, **COLUMNS)
        assert (again.actions, again.rewards, again.weights) == (
            world.actions,
            world.rewards,
            world.weights,
        )
    assert LoggedArms.read(files[0], **COLUMNS).title == "log.parquet"


def test_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(LOG)
    assert LoggedArms.read(frame, **COLUMNS) == LoggedArms.read(LOG, **COLUMNS)
    frame.loc[2, "item"] = None
    with pytest.raises(
        InvalidInput, match="column 'item' is empty in 1 row of the table, first in row 3"
    ):
        LoggedArms.read(frame, **COLUMNS)


def test_numbers_in_csv_files_are_read_whatever_the_first_rows_are(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,r\n" + "2,0\n10,true\n" * 3000 + "2,0.25\n10,False\n")
    world = LoggedArms.read(path, action="item", reward="r")
    assert world.actions == ("2", "10")  # by their size
    assert world.arm_means() == (0.25 / 3001, 3000 / 3001)


def test_rewards_are_the_logs_own_with_its_mean() -> None:
    world = LoggedArms.read(LOG, action="item", reward="stars", reward_range=(1, 5))
    assert world.rewards == ((2.5, 5.0), (1.0,), (4.0,)) and world.weights == ((1, 2), (2,), (1,))
    assert world.arm_means() == pytest.approx(((12.5 / 3 - 1) / 4, 0.0, 0.75))
    state, chance = world.world(), np.random.default_rng(0)
    assert isinstance(state, EmpiricalWorld)
    paid = [state.pay(None, 0, chance) for _ in range(3000)]
    assert set(paid) == {0.375, 1.0} and paid.count(1.0) == pytest.approx(2000, abs=150)
    assert isinstance(LoggedArms.read(LOG, **COLUMNS).world(), BernoulliWorld)


def test_many_rewards_are_kept_in_parts_without_changing_the_mean() -> None:
    chance = np.random.default_rng(1)
    table = {"item": chance.integers(0, 3, 20_000), "paid": chance.gamma(1.0, 2.0, 20_000).clip(0, 50)}
    world = LoggedArms.read(table, action="item", reward="paid", reward_range=(0, 50))
    assert max(map(len, world.rewards)) <= 128
    for item, mean in zip(world.actions, world.arm_means(), strict=True):
        rows = table["paid"][table["item"] == item]
        assert 50 * mean == pytest.approx(rows.mean(), rel=1e-7)
    # The order of rows, and so of threads, changes nothing.
    order = chance.permutation(20_000)
    shuffled = {name: values[order] for name, values in table.items()}
    assert LoggedArms.read(shuffled, action="item", reward="paid", reward_range=(0, 50)) == world


def test_propensities_make_rates_everybodys() -> None:
    """Item a was shown to few of those who click; with 1/p they count as many as they are."""
    world = LoggedArms.read(LOG, **COLUMNS, propensity="p")
    assert world.arm_means()[0] == (4 + 2) / (4 + 4 + 2)
    assert world.weights[0] == (4.0, 6.0)


def test_positions() -> None:
    worlds = LoggedArms.read_positions(
        {name: values + values for name, values in LOG.items()}, **COLUMNS, position="place"
    )
    assert list(worlds) == [1, 2]
    assert worlds[1].actions == ("a", "b") and worlds[1].arm_means() == (1.0, 0.0)
    assert worlds[2] == LoggedArms.read(
        pl.concat([pl.DataFrame(LOG)] * 2), **COLUMNS, position="place", at="2"
    )
    assert worlds[2].in_words() == "3 actions of means 1 to 0 in the table, place 2"


def test_contexts_have_the_rates_of_their_rows() -> None:
    world = LoggedContexts.read(LOG, **COLUMNS, context=["hour"], prior_rows=0)
    assert world.features == ((0.0,), (0.5,)) and world.shares == (3.0, 3.0)
    # Nothing is known of c at hour 0: it pays as in all.
    assert world.rates == ((0.5, 0.0, 1.0), (1.0, 0.0, 1.0))
    assert world.problem(9) == dpb.LinearContexts(1, arms=3, horizon=9)
    assert world.uniform_regret() == pytest.approx(((1 - 0.5) + (1 - 2 / 3)) / 2)
    assert world.in_words() == "3 actions in 2 contexts of the table"


def test_features_of_actions_are_shown_to_everybody() -> None:
    world = LoggedContexts.read(LOG, **COLUMNS, action_features=["price"])
    assert world.per_action and world.features == ((0.2,), (0.1,), (0.3,))
    assert world.problem(None) == dpb.LinearContexts(1, reward_range=(0, 1))  # prices are above 0
    more = {**LOG, "price": [0.1, 0.2, 0.2, 0.4, 0.2, 0.3]}
    for context, said in (
        ((), "column 'price' of the table changes for action 'b'"),
        (("hour",), "no row of action 'c' in 1 context, so its features are not known there"),
    ):
        with pytest.raises(InvalidInput, match=said):
            LoggedContexts.read(more, **COLUMNS, context=context, action_features=["price"])


class Words:
    """What a map of features is to a world."""

    max_norm = 2.0

    def rows(self, frame: pl.DataFrame) -> Any:
        return np.array([[2.0 * (word == "x"), 2.0 * (word == "y")] for word in frame["word"]])


def test_a_map_makes_features_of_texts() -> None:
    world = LoggedContexts.read(LOG, **COLUMNS, context=["word"], features=Words())
    assert world.features == ((2.0, 0.0), (0.0, 2.0))
    assert world.problem(None) == dpb.LinearContexts(2, arms=3, max_norm=2.0)


def test_a_feature_map_makes_features() -> None:
    features = dpb.FeatureMap([Number("hour", 0, 1), Category("word", ["x", "y"])])
    log = {**LOG, "word": ["x", "y", "x", "y", "x", "z"]}
    with pytest.warns(ShortenedFeatures, match="'word' has values .* in 17 % of .* such as 'z'"):
        world = LoggedContexts.read(log, **COLUMNS, context=["hour", "word"], features=features)
    assert len(world.features) == 3 and world.problem(None).dimension == features.dimension
    assert world.features[0] == tuple(features.rows({"hour": 0.0, "word": "x"})[0])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["18-90"], "no row of 'hour' in the table is '18-90'; a range is written 18..90"),
        (["x", "y"], "no row of 'hour' in the table is 'x' or 'y'; the column has values such as 0"),
    ],
)
def test_a_category_that_never_occurs_is_refused(values: list[str], said: str) -> None:
    features = dpb.FeatureMap([Category("hour", values)])
    with pytest.raises(InvalidInput, match=re.escape(said)):
        LoggedContexts.read(LOG, **COLUMNS, context=["hour"], features=features)


@pytest.mark.parametrize(("long", "warned"), [(150, 0), (50, 1)])
def test_a_bound_that_is_loose_is_counted_by_rows(long: int, warned: int) -> None:
    """Of 1,000 rows; half of the two contexts is longer than half the bound in either case."""
    log = {"x": [0.3] * (1000 - long) + [0.9] * long, "item": ["a", "b"] * 500, "click": [1, 0] * 500}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world = LoggedContexts.read(log, action="item", reward="click", context=["x"])
        features = dpb.FeatureMap([Number("x", -1, 1)], intercept=False)
        by_map = LoggedContexts.read(
            log, action="item", reward="click", context=["x"], features=features
        )
    assert [one.category for one in caught] == [LooseBound] * 2 * warned
    assert world.max_norm == by_map.max_norm == 1.0  # it is said, and nothing else


@pytest.mark.parametrize(("old", "warned"), [(90, 0), (300, 1)])
def test_being_cut_off_is_counted_by_rows(old: int, warned: int) -> None:
    """Of 1,000 rows; half of the two contexts is beyond the range in either case."""
    log = {"age": [40] * (1000 - old) + [95] * old, "item": ["a", "b"] * 500, "click": [1, 0] * 500}
    features = dpb.FeatureMap([Number("age", 18, 90)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LoggedContexts.read(log, **COLUMNS, context=["age"], features=features)
    said = "column 'age' is beyond 18 to 90 in 30 % of the rows of the table, and cut off there"
    assert len(caught) == warned and all(str(one.message).startswith(said) for one in caught)


def test_how_much_of_the_spread_within_contexts_is_chance() -> None:
    """Nearly all of it where actions pay alike, little where one pays and the other does not."""
    chance = np.random.default_rng(0)
    item, hour = chance.integers(2, size=4000), chance.integers(100, size=4000) / 100
    for rates, low, high in (([0.3, 0.3], 0.7, 1.0), ([0.1, 0.9], 0.0, 0.05)):
        log = {"item": item, "hour": hour, "click": chance.random(4000) < np.array(rates)[item]}
        world = LoggedContexts.read(log, **COLUMNS, context=["hour"], prior_rows=0)
        assert low <= (world.spread_by_chance() or 0.0) <= high
        assert world.rows_per_cell() == pytest.approx(20, abs=2)
    alike = LoggedContexts(["a", "b"], [[0.5]], [1.0], [[0.5, 0.5]])
    assert alike.spread_by_chance() is None and alike.rows_per_cell() is None


def test_rates_are_drawn_to_their_mean() -> None:
    """Two rows of the average action, which pays 1/2, besides those of each."""
    world = LoggedArms.read(LOG, **COLUMNS, prior_rows=2)
    assert world.arm_means() == pytest.approx((3 / 5, 1 / 4, 2 / 3))
    many = {"item": [0, 0, 1, 1], "paid": [0.1, 0.101, 0.9, 0.2]}
    drawn = LoggedArms.read(many, action="item", reward="paid", prior_rows=4)
    assert drawn.arm_means() == pytest.approx(((0.201 + 1.301) / 6, (1.1 + 1.301) / 6))
    with pytest.raises(InvalidInput, match="expected prior_rows >= 0"):
        LoggedArms.read(LOG, **COLUMNS, prior_rows=-1)


def test_a_row_that_is_added_weighs_as_much_as_the_actions_own() -> None:
    """With propensities; c, whose rows weigh 1, is drawn no more than a, whose rows weigh more."""
    world = LoggedArms.read(LOG, **COLUMNS, propensity="p", prior_rows=3)
    overall = (6 + 0 + 1) / (10 + 4 + 1)
    assert world.arm_means() == pytest.approx(
        ((0.6 + overall) / 2, 3 * overall / (2 + 3), (1 + 3 * overall) / (1 + 3))
    )
    assert world.title == "the table, 3 rows of the average action added to each"


def test_rates_in_contexts_are_drawn_to_those_in_all() -> None:
    """Two rows at its action's rate, 2/3, 0 and 1, besides those of each; of a, two and one."""
    world = LoggedContexts.read(LOG, **COLUMNS, context=["hour"], prior_rows=2)
    assert world.prior_rows == 2
    assert np.array(world.rates) == pytest.approx(
        np.array([[(1 + 4 / 3) / 4, 0.0, 1.0], [(1 + 4 / 3) / 3, 0.0, 1.0]])
    )
    # In a single context, to the mean of all actions, as arms are.
    alone = LoggedContexts.read(LOG, **COLUMNS, action_features=["price"], prior_rows=2)
    assert alone.rates[0] == pytest.approx(LoggedArms.read(LOG, **COLUMNS, prior_rows=2).arm_means())
    assert LoggedContexts.read(LOG, **COLUMNS, action_features=["price"]).prior_rows == 0
    with pytest.raises(InvalidInput, match="expected prior_rows >= 0"):
        LoggedContexts.read(LOG, **COLUMNS, context=["hour"], prior_rows=-1)


@pytest.mark.parametrize("is_click", [True, False])
def test_the_log_itself_says_how_far_rates_are_drawn(is_click: bool) -> None:
    """Near what is best for rates of standard deviation 0.02: the variance of a reward over 0.02²."""
    chance = np.random.default_rng(0)
    contexts, rows = 300, 60_000
    context, item = chance.integers(contexts, size=rows), chance.integers(3, size=rows)
    true = np.clip(0.1 + 0.02 * chance.standard_normal((contexts, 3)), 0.0, 1.0)
    noise = chance.random(rows) < true[context, item]
    paid = noise if is_click else np.clip(true[context, item] + chance.uniform(-0.05, 0.05, rows), 0, 1)
    log = {"item": item, "click": paid.astype(float), "hour": context / contexts}
    best = (0.1 * 0.9 if is_click else 0.1**2 / 12) / 0.02**2

    def error(prior_rows: float | None) -> float:
        world = LoggedContexts.read(log, **COLUMNS, context=["hour"], prior_rows=prior_rows)
        return float(np.square(np.array(world.rates) - true).mean())

    found = LoggedContexts.read(log, **COLUMNS, context=["hour"])
    assert found.prior_rows == pytest.approx(best, rel=0.3)
    assert error(None) < 1.05 * min(error(0), error(best), error(1e9))
    assert (error(None) < 0.5 * error(0)) == is_click
    # Where contexts do not differ, rates are those in all; nor is a row for each pair a difference.
    same = {**log, "click": chance.random(rows) < 0.1}
    alike = LoggedContexts.read(same, **COLUMNS, context=["hour"])
    assert alike.prior_rows > 1000 and np.array(alike.rates).std(axis=0).max() < 0.02
    few = {"item": [0, 1], "click": [0, 1], "hour": [0.0, 0.5]}
    assert LoggedContexts.read(few, **COLUMNS, context=["hour"]).prior_rows == 2


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_missing_is_what_was_declared_for_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    ages = [30.0, None, 54.0, None] * 10
    frame = pl.DataFrame(
        {
            "item": ["a", "b"] * 20,
            "click": [1, 0] * 20,
            "age": ages if suffix == ".csv" else [math.nan if age is None else age for age in ages],
            "land": ["de", None, "", "fr"] * 10 if suffix == ".csv" else ["de", None, None, "fr"] * 10,
        }
    )
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    lands = Category("land", ["de", "fr"], other=True), Hashed("land", 4), Category("land", ["de", "fr"])
    for land in lands:
        features = dpb.FeatureMap([Number("age", 18, 90, missing=54), land])
        world = LoggedContexts.read(path, **COLUMNS, context=["age", "land"], features=features)
        given = {"age": [None, None, 30, 54], "land": [None, "fr", "de", None]}
        assert np.array(world.features) == pytest.approx(features.rows(given))
        rows = dpb.offline.read(path, **COLUMNS, features=features)
        assert rows.contexts is not None and rows.contexts[:4] == pytest.approx(
            features.rows({"age": [30, 54, 54, 54], "land": ["de", None, None, "fr"]})
        )
    refused = dpb.FeatureMap([Number("age", 18, 90), lands[0]])
    said = "'age' is (empty|nan or infinite) in 20 rows of log.*, first in row 2"
    with pytest.raises(InvalidInput, match=said):
        LoggedContexts.read(path, **COLUMNS, context=["age", "land"], features=refused)


def test_a_text_where_a_number_was_declared_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("row,item,click,age\n1,a,1,30\n2,b,0,n/a\n")
    for missing in (None, 40):
        features = dpb.FeatureMap([Number("age", 18, 90, missing=missing)])
        with pytest.raises(InvalidInput, match=r"'age' is not a number in 1 row .* row 2, 'n/a'"):
            LoggedContexts.read(path, **COLUMNS, context=["age"], features=features)


def test_the_spread_of_rates_is_compared_with_chance() -> None:
    def log(clicks: list[int]) -> LoggedArms:
        rewards = [int(row < count) for count in clicks for row in range(200)]
        table = {"item": np.repeat(np.arange(len(clicks)), 200), "click": rewards}
        return LoggedArms.read(table, **COLUMNS)

    table = scipy.stats.chi2_contingency([[10, 14, 30], [190, 186, 170]])
    assert log([10, 14, 30]).chance_of_spread() == pytest.approx(table.pvalue)
    assert log([10, 11, 12]).chance_of_spread() > 0.5  # type: ignore[operator]
    assert log([0, 0, 0]).chance_of_spread() is None
    assert LoggedArms.read(LOG, **COLUMNS, propensity="p").chance_of_spread() is None


def test_classified_examples_are_a_bandit_in_one_line() -> None:
    examples = {"x": [0.1, 0.1, 0.9, 0.9], "y": [0.0, 0.0, 0.4, 0.4], "kind": [3, 3, 3, 8]}
    world = LoggedContexts.from_labels(examples, label="kind", features=["x", "y"])
    assert world.actions == (3, 8)
    assert world.rates == ((1.0, 0.0), (0.5, 0.5)) and world.shares == (2.0, 2.0)
    policy = dpb.linear.LinUCB()
    trace = dpb.simulate(policy, world, 500, 2, seed=0, progress=False)
    assert np.all(trace.regret(policy.name())[:, -1] < 0.5 * 500 * world.uniform_regret())


def test_a_world_is_made_again_without_the_log(tmp_path: Path) -> None:
    """From the recipe in a trace."""
    for world, policy in (
        (LoggedArms.read(LOG, **COLUMNS), dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))),
        (LoggedContexts.read(LOG, **COLUMNS, context=["hour"]), dpb.linear.LinUCB()),
    ):
        trace = dpb.simulate(policy, world, 50, 2, seed=3, progress=False)
        kept = dpb.Trace.load(trace.save(tmp_path / "trace.parquet"))
        again = dpb.worlds.Environment.from_dict(kept.header["environment"])
        repeated = dpb.simulate(policy, again, 50, 2, seed=3, progress=False)
        assert again == world and repeated.table().equals(kept.table())


def test_in_flight_is_paid_by_its_own_context() -> None:
    """A world in which every context has its own right answer, and rewards come late."""
    world = LoggedContexts(("a", "b"), ((1.0, 0.0), (0.0, 1.0)), (1, 1), ((1.0, 0.0), (0.0, 1.0)))
    policy = dpb.linear.LinUCB()
    trace = dpb.simulate(policy, world, 2000, 2, seed=0, progress=False, in_flight=20)
    assert np.all(trace.regret(policy.name())[:, -1] < 100)


def _changed(**columns: Any) -> dict[str, Any]:
    return {**LOG, **columns}


NAN, FIVE = math.nan, [0, 1, 0, 0, 5, 1]
DAY = datetime.date(2026, 1, 1)
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    # Columns.
    (LOG, {"action": "itm"}, "no column of the table is called 'itm'; did you mean 'item'"),
    (LOG, {"reward": "item"}, "column 'item' cannot be both action and reward"),
    (LOG, {"reward": "word"}, "column 'word' of the table is String; expected numbers"),
    (LOG, {"action": "hour"}, "column 'hour' of the table is Float64; expected names or whole numbers"),
    (_changed(item=[DAY] * 6), {}, "column 'item' of the table is Date; expected names"),
    (_changed(click=[[1]] * 6), {}, r"column 'click' of the table is List\(Int64\); expected numbers"),
    (LOG, {"action": 3}, "expected the name of a column of the table, got 3"),
    # Values.
    (
        _changed(item=["a", None, "b", "b", "a", "c"]),
        {},
        "'item' is empty in 1 row of the table, first in row 2",
    ),
    (
        _changed(click=[0, None, 0, None, 1, 1]),
        {},
        "'click' is empty in 2 rows of the table, first in row 2",
    ),
    (_changed(click=[0, 1, NAN, 0, 1, 1]), {}, "'click' is nan or infinite in 1 row .* row 3"),
    (_changed(click=[0, 1, math.inf, 0, 1, 1]), {}, "'click' is nan or infinite in 1 row"),
    (
        _changed(click=FIVE),
        {},
        "outside the range 0 to 1 in 1 row of the table, first in row 5; declare",
    ),
    (LOG, {"reward": "stars", "reward_range": (1, 4)}, "outside the range 1 to 4 in 2 rows"),
    (LOG, {"reward_range": (1, 0)}, "expected reward_range as .low, high., low below high"),
    (LOG, {"reward_range": 5}, "expected reward_range as a sequence"),
    (LOG, {"reward_range": (0, NAN)}, "expected reward_range as .low, high., low below high"),
    (LOG, {"reward_range": (0, 1, 2)}, "expected reward_range as .low, high., got"),
    # Actions.
    (_changed(item=["a"] * 6), {}, "expected at least 2 actions in the table, got 1"),
    (LOG, {"actions": ["a", "b"]}, "the table has action 'c', which is not one of those declared"),
    (LOG, {"actions": ["a", "b", "c", "d"]}, "the table has no row of action 'd'"),
    # Propensities.
    (
        _changed(p=[0.0, 1, 1, 1, 1, 1]),
        {"propensity": "p"},
        "'p' is no probability above 0 and up to 1 in 1 row",
    ),
    (_changed(p=[0.5, 1, 1, 1, 1, 1.5]), {"propensity": "p"}, "'p' is no probability .* first in row 6"),
    (_changed(p=[0.5, -1, 1, 1, 1, 1.0]), {"propensity": "p"}, "'p' is no probability"),
    (_changed(p=[0.5, NAN, 1, 1, 1, 1.0]), {"propensity": "p"}, "'p' is nan or infinite"),
    (_changed(p=[0.5, None, 1, 1, 1, 1.0]), {"propensity": "p"}, "'p' is empty in 1 row"),
    (LOG, {"propensity": "word"}, "column 'word' of the table is String; expected numbers"),
    # Positions.
    (LOG, {"position": "place", "at": 7}, "column 'place' of the table is never 7; it has 1, 2"),
    (LOG, {"position": "place"}, "which position\\? column 'place' of the table has 1, 2; say at=1"),
    (LOG, {"at": 1}, "which column says the position"),
    (LOG, {"position": "plac", "at": 1}, "did you mean 'place'"),
    # Tables.
    ({}, {}, "the table has no columns"),
    ({name: [] for name in LOG}, {}, "the table has no rows"),
    ({"item": ["a", "b"], "click": [1]}, {}, "cannot read the table: "),
    (7, {}, "expected a log as the path of a .parquet or .csv file, a frame of polars or pandas"),
    (None, {}, "expected a log as the path"),
    ([1, 2], {}, "expected a log as the path"),
]


@pytest.mark.parametrize(("source", "options", "said"), WRONG)
def test_a_wrong_table_is_one_sentence(source: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        LoggedArms.read(source, **(COLUMNS | options))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


FILES: list[tuple[str, Callable[[Path], object], str]] = [
    ("log.parquet", lambda path: None, "there is no file"),
    ("log.txt", lambda path: path.write_text("item"), "expected a log to end in .parquet or .csv"),
    ("log.parquet", lambda path: path.mkdir(), r"is a folder; for all files in it write .*/\*.parquet"),
    ("log.parquet", lambda path: path.write_text("item,click\n"), "cannot read log.parquet: "),
    ("log.parquet", lambda path: path.touch(), "log.parquet is empty"),
    ("log.csv", lambda path: path.touch(), "log.csv is empty"),
    ("log.csv", lambda path: path.write_text("item,click\n"), "log.csv has no rows"),
    (
        "log.csv",
        lambda path: path.write_text("item,click\na,1\nb,yes\n"),
        "'click' is not a number in 1 row",
    ),
    (
        "log.csv",
        lambda path: path.write_text("item,click\na,1\nb,\n"),
        "'click' is empty in 1 row .* row 2",
    ),
    ("log.csv", lambda path: path.write_text("item,click\na,1\nb,1,3\n"), "cannot read log.csv: "),
    ("log.csv", lambda path: path.write_text("item,click\n,1\nb,1\n"), "'item' is empty in 1 row"),
    (
        "log.csv",
        lambda path: path.write_text("item;click\na;1\nb;0\n"),
        "log.csv has a single column, 'item;click': save it with commas between columns",
    ),
    (
        "log.csv",
        lambda path: path.write_text("item,click\na,1\nb,0\n", encoding="utf-16"),
        "log.csv is not in UTF-8",
    ),
    (
        "log.csv",
        lambda path: path.write_bytes(b"item,click\n\xff\xfe,1\nb,1\n"),
        "cannot read log.csv: ",
    ),
]


@pytest.mark.parametrize(("name", "write", "said"), FILES)
def test_a_wrong_file_is_one_sentence(
    name: str, write: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    write(tmp_path / name)
    with pytest.raises(InvalidInput, match=said) as refused:
        LoggedArms.read(tmp_path / name, **COLUMNS)
    assert "\n" not in str(refused.value)


def test_a_truncated_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    path = _written(tmp_path, ".parquet")
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InvalidInput, match=r"cannot read log\.parquet: "):
        LoggedArms.read(path, **COLUMNS)


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        (LOG, {}, "expected columns as context or action_features"),
        (LOG, {"context": "hour"}, "expected context as names of columns as a sequence"),
        (LOG, {"context": ["word"]}, "column 'word' of the table holds texts, such as 'x'; declare"),
        (LOG, {"context": ["stars"]}, "features of length up to 5, and 1 is the longest"),
        (LOG, {"context": ["hours"]}, "did you mean 'hour'"),
        (LOG, {"context": ["hour", "hour"]}, "column 'hour' cannot be both context and context"),
        (_changed(hour=[None, *LOG["hour"][1:]]), {"context": ["hour"]}, "'hour' is empty in 1 row"),
        (
            _changed(hour=[NAN, *LOG["hour"][1:]]),
            {"context": ["hour"]},
            "'hour' is nan or infinite in 1",
        ),
        (_changed(word=[None, *LOG["word"][1:]]), {"context": ["word"]}, "'word' is empty in 1 row"),
        (
            _changed(hour=[DAY] * 6),
            {"context": ["hour"]},
            "column 'hour' of the table is Date; expected numbers or names; make one of it first",
        ),
    ],
)
def test_wrong_contexts_are_one_sentence(source: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        LoggedContexts.read(source, **COLUMNS, **options)


def test_a_column_with_a_value_for_every_row_is_no_context() -> None:
    rows = 300_000
    log = {"item": ["a", "b"] * (rows // 2), "click": [0] * rows, "id": np.arange(rows) / rows}
    with pytest.raises(InvalidInput, match=r"column 'id' of the table has about 2.*round them"):
        LoggedContexts.read(log, **COLUMNS, context=["id"])


ARMS: dict[str, Any] = {"actions": ("a", "b"), "rewards": ((0, 1), (1,)), "weights": ((1, 1), (2,))}
CONTEXTS: dict[str, Any] = {
    "actions": ("a", "b"),
    "features": ((0.5,), (1.0,)),
    "shares": (1, 2),
    "rates": ((0.1, 0.2), (1.0, 0.0)),
}


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (LoggedArms, {"actions": ("a",)}, "at least 2 actions in the log, got 1"),
        (LoggedArms, {"actions": ("a", "a")}, "expected each action once"),
        (LoggedArms, {"rewards": ((0, 1),)}, "rewards and weights for each of the actions"),
        (LoggedArms, {"rewards": ((0, 1), ())}, "a weight for each reward of action 'b'"),
        (LoggedArms, {"rewards": ((0, 2), (1,))}, "rewards within 0 and 1 of action 'a'"),
        (LoggedArms, {"weights": ((0, 1), (1,))}, "expected weight of action 'a' > 0"),
        (LoggedArms, {"title": 3}, "expected title to be a text"),
        (LoggedArms, {"rows": 0}, "expected rows to be a whole number >= 1"),
        (LoggedContexts, {"shares": (1, 0)}, "expected shares as numbers above 0"),
        (LoggedContexts, {"rates": ((0.1, 0.2),)}, "expected rates in .0, 1., for each context"),
        (LoggedContexts, {"rates": ((0.1, 0.2), (2.0, 0.0))}, "expected rates in"),
        (LoggedContexts, {"features": ((0.5,),)}, "expected 2 rows of features"),
        (
            LoggedContexts,
            {"features": ((0.5,), (NAN,))},
            "expected features of norm at most max_norm = 1",
        ),
        (
            LoggedContexts,
            {"features": ((0.5,), (3.0,))},
            "expected features of norm at most max_norm = 1",
        ),
        (LoggedContexts, {"per_action": 1}, "expected per_action to be one of"),
    ],
)
def test_a_wrong_recipe_is_one_sentence(kind: Any, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        kind(**((ARMS if kind is LoggedArms else CONTEXTS) | change))


# Not `ru_maxrss`, which a new process has from the one that started it.
_PEAK = """
import sys
import warnings
from pathlib import Path
import polars as pl
from dpbandits.worlds import LoggedArms

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

whole, path = sys.argv[1] == "whole", sys.argv[2]
before = peak()
if whole:
    kept = pl.read_parquet(path) if path.endswith("parquet") else pl.read_csv(path, infer_schema=False)
else:
    LoggedArms.read(path, action="item", reward="click", propensity="p")
print((peak() - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is looked up in /proc")
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_large_log_is_read_in_pieces(tmp_path: Path, suffix: str) -> None:
    """In a process of its own, with much less memory than the table takes."""
    rows, path = 3_000_000, tmp_path / f"log{suffix}"
    names = pl.Series([f"the item with the long name {number}" for number in range(50)])
    chance = np.random.default_rng(0)
    table: dict[str, Any] = {
        "item": names.gather(chance.integers(0, 50, rows)),
        "click": chance.integers(0, 2, rows),
        "p": np.full(rows, 0.02),
        "much else": chance.random(rows).round(9),
        "more": chance.random(rows).round(9),
    }
    frame = pl.DataFrame(table)
    frame.write_parquet(path) if suffix == ".parquet" else frame.write_csv(path)
    whole, pieces = (
        float(subprocess.check_output([sys.executable, "-c", _PEAK, how, str(path)]))
        for how in ("whole", "pieces")
    )
    assert 0.0 < pieces < 0.75 * whole, (pieces, whole)
