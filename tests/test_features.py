"""Columns become features by declaration: within the bound, the same from every kind of table."""

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.errors import DPBanditsError, LooseBound, ShortenedFeatures, UnusableFeatures
from dpbandits.features import Category, CrossedFeatures, FeatureMap, Hashed, Number

AGE, COUNTRY, ITEM = Number("age", 18, 90), Category("country", ["de", "fr"]), Hashed("item", 8)
MAP = FeatureMap([AGE, COUNTRY, ITEM])
TABLE = {"age": [18, 54, 90], "country": ["de", "at", None], "item": [7, 7, 8]}
POLICY = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))


def started(problem: dpb.Problem, **options: Any) -> dpb.Learner:
    return POLICY.start(problem, compiled=False, seed=0, **options)


def test_a_row_by_hand() -> None:
    rows = MAP.rows(TABLE)
    bucket = ITEM.bucket("7")
    assert rows.shape == (3, MAP.dimension) == (3, 1 + 1 + 2 + 8)
    by_hand = np.zeros(12)
    by_hand[[0, 1, 2]] = 1.0, -1.0, 1.0
    by_hand[4 + bucket] = 1.0
    np.testing.assert_allclose(rows[0], by_hand / 2.0, atol=1e-11)  # four blocks, so 1/√4
    assert rows[1, 1] == 0.0 and rows[1, 2:4].tolist() == [0.0, 0.0]  # the middle; a country unlisted
    assert MAP.names[:4] == ("intercept", "age", "country=de", "country=fr")
    assert len(MAP.names) == MAP.dimension


TABLES: dict[str, Callable[[], Any]] = {
    "polars": lambda: pl.DataFrame(TABLE),
    "polars, lazy": lambda: pl.LazyFrame(TABLE),
    "polars, categories": lambda: pl.DataFrame(TABLE).with_columns(
        pl.col("country").cast(pl.Categorical)
    ),
    "polars, other numbers": lambda: pl.DataFrame(TABLE).cast({"item": pl.Float32}),
    "polars, texts": lambda: pl.DataFrame(TABLE).cast({"item": pl.String}),
    "pandas": lambda: pd.DataFrame(TABLE),
    "pandas, categories": lambda: pd.DataFrame(TABLE).astype({"country": "category"}),
    "pandas, nullable": lambda: pd.DataFrame(TABLE).astype({"age": "Int64", "country": "string"}),
    "a dictionary": lambda: TABLE,
    "arrays": lambda: {name: np.array(values) for name, values in TABLE.items()},
    "rows": lambda: [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)],
    "an array of objects": lambda: np.array([TABLE[name] for name in TABLE], object).T,
    "more columns": lambda: pl.DataFrame(TABLE | {"click": [0, 1, 0]}),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_kind_of_table_gives_the_same_rows(table: Callable[[], Any]) -> None:
    np.testing.assert_array_equal(MAP.rows(table()), MAP.rows(TABLE))


def test_rows_one_by_one_are_the_rows_of_the_table() -> None:
    frame = pd.DataFrame(TABLE)
    for index, row in enumerate(MAP.rows(frame)):
        np.testing.assert_array_equal(MAP.rows(frame.iloc[index])[0], row)
        np.testing.assert_array_equal(MAP.rows(pl.DataFrame(TABLE).row(index, named=True))[0], row)


@pytest.mark.parametrize("bound", [1.0, 0.3, 7.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_row_is_longer_than_the_bound_and_the_longest_reach_it(bound: float, intercept: bool) -> None:
    chance = np.random.default_rng(0)
    features = FeatureMap([AGE, COUNTRY, ITEM], intercept=intercept, max_norm=bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortenedFeatures)
        rows = features.rows(
            {
                "age": chance.choice([-1e300, -np.inf, 18, 30, 90, np.inf, 1e9], 500),
                "country": chance.choice(["de", "fr", "at"], 500),
                "item": chance.integers(0, 10**9, 500),
            }
        )
    lengths = np.linalg.norm(rows, axis=1)
    assert (lengths <= bound).all() and lengths.max() > bound * (1 - 1e-9)
    problem = dpb.LinearContexts.of(features)
    assert problem.context(rows)[0] is not None and type(problem.context(rows)) is tuple


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@given(
    ages=st.lists(st.one_of(st.none(), st.floats(), st.integers()), min_size=1, max_size=5),
    other=VALUES,
    third=VALUES,
    bound=st.floats(1e-3, 1e3),
)
def test_whatever_people_bring_is_within_the_bound(
    ages: list[Any], other: Any, third: Any, bound: float
) -> None:
    columns = [Number("age", -3, 7.5, missing=0), Category("b", ["x", 1], other=True), Hashed("c", 3)]
    features = FeatureMap(columns, max_norm=bound)
    rows = features.rows({"age": ages, "b": [other] * len(ages), "c": [third] * len(ages)})
    assert np.isfinite(rows).all() and (np.linalg.norm(rows, axis=1) <= bound).all()
    assert type(dpb.LinearContexts.of(features).context(rows)) is tuple  # none is shortened


def test_the_same_number_as_text_or_float_is_the_same_category() -> None:
    code = FeatureMap([Category("code", [3, "x", True], other=True)])
    rows = code.rows({"code": [3, 3.0, "3", np.int8(3), "x", True, "true", 1, None, float("nan")]})
    assert (rows[:, 1:] > 0).argmax(axis=1).tolist() == [0, 0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert code.names[1:] == ("code=3", "code=x", "code=true", "code=other")


def test_hashes_are_fixed_for_all_time_and_spread() -> None:
    assert [Hashed("item", 1000).bucket(str(value)) for value in range(4)] == HASHES
    counts = np.bincount([Hashed("item", 16).bucket(str(value)) for value in range(16_000)])
    # One fixed sample, no chance involved: counts of a good hash are within 6 standard deviations.
    assert abs(counts - 1000).max() < 6 * np.sqrt(1000)
    assert Hashed("other", 1000).bucket("0") != HASHES[0]


HASHES = [264, 731, 596, 163]


def test_a_missing_number_is_what_was_declared_or_refused() -> None:
    filled = FeatureMap([Number("age", 0, 10, missing=5)], intercept=False)
    assert filled.rows({"age": [None, 5.0, 10.0]})[:, 0].round(6).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(DPBanditsError, match="column 'age' has no number in row 1"):
        MAP.rows(TABLE | {"age": [18, None, 90]})


def test_a_person_without_a_number_is_served_at_random_and_counts() -> None:
    learner = started(dpb.LinearContexts.of(MAP, arms=3))
    with pytest.warns(UnusableFeatures):
        learner.select({"age": None, "country": "de", "item": 3})
    learner.skip()
    assert learner.rounds == 1


def test_counts_of_what_was_cut_off_are_for_the_operator() -> None:
    checked = MAP.check(TABLE | {"age": [17, None, 91]})
    assert checked.outside == {"age": 2, "country": 1, "item": 0}
    assert checked.missing == {"age": 1, "country": 1, "item": 0}
    assert "not to be published" in str(checked) and "age: 2 outside, 1 missing" in str(checked)


def test_maps_survive_json_in_their_problem() -> None:
    pairs = CrossedFeatures.of(MAP, FeatureMap([Number("price", 0, 9)]), {"price": [1, 2, 3]})
    for problem in (dpb.LinearContexts.of(MAP, arms=4, horizon=10), dpb.LinearContexts.of(pairs)):
        again = dpb.Problem.from_json(problem.to_json())
        assert again == problem and hash(again) == hash(problem)
        assert "how columns become features" in str(POLICY.guarantee(problem))


@pytest.mark.parametrize("table", ["frame", "dictionaries"])
def test_learners_take_tables_and_decide_as_by_their_rows(table: str) -> None:
    """Without arms: one row for each action that she may be shown."""
    problem = dpb.LinearContexts.of(MAP)
    one, other = started(problem), started(problem)
    offered: Any = pl.DataFrame(TABLE) if table == "frame" else pl.DataFrame(TABLE).to_dicts()
    for index in range(40):
        chosen = one.select(offered)
        assert chosen == other.select(MAP.rows(TABLE))
        one.update(chosen, index % 2)
        other.update(chosen, index % 2)


def test_with_arms_a_person_brings_one_row() -> None:
    problem = dpb.LinearContexts.of(MAP, arms=3)
    row = pl.DataFrame(TABLE)[:1]
    np.testing.assert_array_equal(problem.context(row)[0], MAP.rows(row))
    tickets = started(problem, in_flight=5).decide_many([row, {"age": 20, "country": "fr", "item": 1}])
    assert tickets.actions.shape == (2,)
    with pytest.raises(DPBanditsError, match="a vector of 12 features"):
        problem.context(pl.DataFrame(TABLE))


def test_a_frame_in_decide_many_is_one_person_a_row() -> None:
    problem, table = dpb.LinearContexts.of(MAP, arms=3), TABLE | {"age": [20, None, 900]}
    learners = [started(problem, in_flight=9) for _ in range(3)]
    with pytest.warns(UnusableFeatures):
        one = learners[0].decide_many(pl.DataFrame(table))
    with pytest.warns(UnusableFeatures):
        other = learners[1].decide_many(pl.DataFrame(table).to_dicts())
    with pytest.warns(UnusableFeatures):
        third = learners[2].decide_many(pd.DataFrame(table))
    assert one.actions.tolist() == other.actions.tolist() == third.actions.tolist()
    pairs = CrossedFeatures(MAP, [[1.0], [0.5]])
    assert len(dpb.LinearContexts.of(pairs).each(TABLE)) == 3
    # Columns must not be taken for people: as many rows as features.
    for wrong in (dpb.LinearContexts.of(MAP), dpb.LinearContexts(3, arms=2)):
        with pytest.raises(DPBanditsError, match="one context for each person"):
            started(wrong, in_flight=9).decide_many(pl.DataFrame({"a": [1.0, 2.0, 3.0]}))


def test_a_service_logs_features_and_reads_them_back() -> None:
    desk = pytest.importorskip("dpbandits.service.desk")
    for problem in (dpb.LinearContexts.of(MAP, arms=3), dpb.LinearContexts.of(MAP)):
        hers = {"age": 30, "country": "fr", "item": 7}
        given: Any = hers if problem.arms else [hers, hers | {"item": 8}]
        offered, context = desk.read_context(problem, given)
        again = desk._unpacked(problem, desk._packed(offered))
        np.testing.assert_array_equal(context[0], again[0])
        np.testing.assert_array_equal(context[0], problem.context(given)[0])
    # JSON has no nan: null is a missing number, and the round counts.
    offered, context = desk.read_context(problem, [{"age": None, "country": "fr", "item": 7}])
    assert np.isnan(offered).any() and not context[0].any()


def test_pairs_are_outer_products_and_within_the_product_of_bounds() -> None:
    action = FeatureMap([Number("price", 0, 9)], max_norm=0.5)
    pairs = CrossedFeatures.of(MAP, action, {"price": [0.0, 4.5, 9.0]})
    (features,) = dpb.LinearContexts.of(pairs).context({"age": 30, "country": "fr", "item": 2})
    hers = MAP.rows({"age": 30, "country": "fr", "item": 2})[0]
    for price, row in zip([0.0, 4.5, 9.0], features, strict=True):
        np.testing.assert_allclose(row, np.outer(action.rows({"price": price})[0], hers).ravel())
    assert pairs.max_norm == pytest.approx(0.5) and np.linalg.norm(features, axis=1).max() <= 0.5


# The warning.


def served(learner: dpb.Learner, contexts: list[Any], kind: type[Warning] = ShortenedFeatures) -> int:
    """How often it warned of shortened features, or of what else there is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for context in contexts:
            learner.update(learner.select(context), 1.0)
    return sum(issubclass(one.category, kind) for one in caught)


TINY, SHORT, LONG = [[0.4, 0.0], [0.0, 0.1]], [[0.6, 0.0]], [[6.0, 0.0]]


@pytest.mark.parametrize(
    ("contexts", "times"),
    [
        ([LONG] * 99, 0),
        ([LONG] * 500, 1),
        ([SHORT] * 500, 0),
        ([LONG, *[SHORT] * 9] * 150, 1),
        ([LONG, *[SHORT] * 19] * 150, 0),
    ],
    ids=["few", "all", "none", "a tenth", "a twentieth"],
)
def test_it_is_said_once_when_many_rows_are_shortened(contexts: list[Any], times: int) -> None:
    assert served(started(dpb.LinearContexts(2)), contexts) == times


def test_it_is_said_of_maps_too_in_many_rows_or_one_by_one() -> None:
    features = FeatureMap([Number("age", 18, 90)])
    assert served(started(dpb.LinearContexts.of(features)), [{"age": 900}] * 150) == 1
    with pytest.warns(ShortenedFeatures) as caught:
        features.rows({"age": [900] * 150})
    assert caught[0].filename == __file__
    features.rows({"age": [900] * 15})  # too few to tell


@pytest.mark.parametrize(
    ("contexts", "times"),
    [
        ([TINY] * 99, 0),
        ([TINY] * 500, 1),
        ([SHORT] * 500, 0),
        ([[[0.5, 0.0]]] * 500, 0),
        ([SHORT, *[TINY] * 9] * 50, 1),
        ([SHORT, *[TINY] * 4] * 50, 0),
        ([LONG, *[TINY] * 4] * 50, 0),
        ([[[0.0, 0.0]]] * 500, 0),
    ],
    ids=["few", "all", "none", "half", "nine of ten", "four of five", "some too long", "zeros"],
)
def test_it_is_said_once_when_nearly_all_rows_are_short(contexts: list[Any], times: int) -> None:
    assert served(started(dpb.LinearContexts(2)), contexts, LooseBound) == times
    problem = dpb.LinearContexts(2, arms=2)
    assert served(started(problem), [context[0] for context in contexts], LooseBound) == times


def test_without_noise_a_loose_bound_costs_nothing_and_is_not_said() -> None:
    learner = dpb.linear.LinUCB().start(dpb.LinearContexts(2), compiled=False, seed=0)
    assert served(learner, [TINY] * 150, LooseBound) == 0


def test_of_short_rows_it_is_said_of_maps_and_of_many_decisions_too() -> None:
    learner = started(dpb.LinearContexts(2), in_flight=150)
    with pytest.warns(LooseBound, match="smaller max_norm") as caught:
        learner.decide_many([TINY] * 150)
    assert [one.filename for one in caught] == [__file__]
    numbers = [Number(f"x{i}", -100, 100) for i in range(6)]
    ages = FeatureMap(numbers, max_norm=3.0)
    with pytest.warns(LooseBound, match="narrower ranges") as caught:
        ages.rows({f"x{i}": [1] * 150 for i in range(6)})
    assert [one.filename for one in caught] == [__file__]
    ages.rows({f"x{i}": [1] * 99 for i in range(6)})  # too few to tell
    ages.rows({f"x{i}": [90] * 150 for i in range(6)})


@pytest.mark.parametrize(("context", "kind"), [(LONG, ShortenedFeatures), (TINY, LooseBound)])
def test_as_an_error_the_warning_comes_when_the_round_is_open(context: Any, kind: type[Warning]) -> None:
    learner = started(dpb.LinearContexts(2))
    for _ in range(99):
        learner.update(learner.select(context), 1.0)
    with pytest.raises(kind):
        learner.select(context)  # warnings are errors in these tests
    assert learner.decided == 100
    learner.skip()
    learner.select(context)


def test_whether_it_was_said_that_rows_are_short_changes_no_decision() -> None:
    contexts = np.random.default_rng(0).normal(size=(300, 3, 2)) * 0.05
    chosen, released = [], []
    for said_before in (False, True):
        learner = started(dpb.LinearContexts(2))
        if said_before:
            learner._short = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            actions = []
            for context in contexts:
                actions.append(learner.select(context))
                learner.update(actions[-1], 1.0)
        assert len(caught) == 1 - said_before
        chosen.append(actions)
        released.append(str(learner.released()))
    assert chosen[0] == chosen[1] and released[0] == released[1]


def test_nothing_that_may_be_read_tells_whether_rows_were_shortened() -> None:
    """Two learners, one of which saw long rows of the same direction, read alike."""
    learners = [started(dpb.LinearContexts(2)) for _ in range(2)]
    for learner, context in zip(learners, (LONG, [[1.0, 0.0]]), strict=True):
        served(learner, [context] * 200)
    one, other = learners
    assert repr(one) == repr(other) and str(one.guarantee) == str(other.guarantee)
    assert str(one.released()) == str(other.released())


# Mistakes.

HUGE, LONE = 10**5000, "\ud800"


@pytest.mark.parametrize(
    "hers",
    [
        {"item": LONE},
        {"item": HUGE},
        {"country": LONE},
        {"country": HUGE},
        {"age": HUGE},
        {"age": Decimal("sNaN")},
        {"age": Decimal("1e999999")},
    ],
)
@pytest.mark.filterwarnings("ignore::dpbandits.errors.UnusableFeatures")
def test_whatever_a_person_brings_is_a_round(hers: dict[str, Any]) -> None:
    learner = started(dpb.LinearContexts.of(MAP, arms=2))
    learner.update(learner.select({"age": 20, "country": "de", "item": 7} | hers), 1.0)
    assert learner.rounds == 1


@pytest.mark.filterwarnings("ignore::dpbandits.errors.UnusableFeatures")
def test_what_a_person_leaves_out_is_missing() -> None:
    whole: dict[str, Any] = {"age": 20, "country": "de", "item": 7}
    for left_out in whole:
        hers = {name: value for name, value in whole.items() if name != left_out}
        for table in (hers, [hers], hers | {"others": [1, 2]}):
            found, _ = MAP.context(table)
            np.testing.assert_array_equal(found, MAP.context(whole | {left_out: None})[0])
        learner = started(dpb.LinearContexts.of(MAP, arms=2))
        learner.update(learner.select(hers), 1.0)
        assert learner.rounds == 1
    assert MAP.context({})[0].shape == (1, MAP.dimension)
    with pytest.raises(DPBanditsError, match="no number in row 0"):
        MAP.rows({"country": "de", "item": 7})


d: Any = dpb.features
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no columns": (lambda: d.FeatureMap([]), "expected columns such as Number"),
    "names for columns": (lambda: d.FeatureMap(["age"]), "expected columns such as Number"),
    "one text for columns": (lambda: d.FeatureMap("age"), "expected columns as a sequence"),
    "a column twice": (lambda: d.FeatureMap([AGE, AGE]), "column 'age' is declared twice"),
    "no name": (lambda: d.Number("", 0, 1), "expected column to be the name of a column"),
    "a range upside down": (lambda: d.Number("age", 90, 18), "expected low < high"),
    "an endless range": (
        lambda: d.Number("age", 0, float("inf")),
        "expected high to be a finite number",
    ),
    "nan for a range": (lambda: d.Number("age", float("nan"), 1), "expected low to be a finite number"),
    "text for a range": (lambda: d.Number("age", "0", 1), "expected low to be a number"),
    "missing outside": (
        lambda: d.Number("age", 0, 1, missing=2),
        "expected missing to be within 0 and 1",
    ),
    "no categories": (lambda: d.Category("c", []), "expected values to be a whole number >= 1"),
    "one text": (lambda: d.Category("c", "de"), "as a sequence"),
    "a category twice": (lambda: d.Category("c", ["1", 1]), "to differ"),
    "an odd category": (lambda: d.Category("c", [[1]]), "column 'c' is to hold texts or numbers"),
    "no buckets": (lambda: d.Hashed("c", 0), "expected buckets to be a whole number >= 1"),
    "too many features": (lambda: d.FeatureMap([d.Hashed("c", 1000)]), "dimension to be at most 1,000"),
    "no bound": (lambda: d.FeatureMap([AGE], max_norm=0), "max_norm"),
    "a wrong column": (lambda: MAP.rows(TABLE | {"age": 1, "aeg": 1}), "columns of one length"),
    "a misspelt column": (
        lambda: MAP.rows(pl.DataFrame(TABLE).rename({"age": "aeg"})),
        "no column is called 'age'; did you mean 'aeg'?",
    ),
    "a misspelt column of a dictionary": (
        lambda: FeatureMap([AGE]).rows({"aeg": [1, 2]}),
        "no column is called 'age'; did you mean 'aeg'?",
    ),
    "no range": (lambda: Number("age", 0, 5e-324), "low and high of column 'age' further apart"),
    "a misspelt lazy column": (
        lambda: MAP.rows(pl.LazyFrame(TABLE).rename({"age": "aeg"})),
        "no column is called 'age'; did you mean 'aeg'?",
    ),
    "texts for numbers": (
        lambda: MAP.rows(TABLE | {"age": ["a", "b", "c"]}),
        "column 'age' is declared to hold numbers, got str",
    ),
    "dates for numbers": (
        lambda: MAP.rows(TABLE | {"age": np.array(["2026-01-01"] * 3, "M8[D]")}),
        "column 'age' is declared to hold numbers, got datetime64[D]",
    ),
    "lists for categories": (
        lambda: MAP.rows(TABLE | {"country": [["de"], ["fr"], ["de"]]}),
        "column 'country' is to hold texts or numbers",
    ),
    "dates for categories": (
        lambda: MAP.rows(TABLE | {"country": np.array(["2026-01-01"] * 3, "M8[D]")}),
        "column 'country' is to hold texts or numbers",
    ),
    "nan": (lambda: MAP.rows(TABLE | {"age": [1.0, float("nan"), 2.0]}), "no number in row 1"),
    "no rows": (lambda: MAP.rows(pl.DataFrame(TABLE)[:0]), "a table with at least one row, got none"),
    "rows of two kinds": (lambda: MAP.rows([{"age": 1}, 3]), "expected a list of dictionaries"),
    "no table": (lambda: MAP.rows(3), "expected a table with columns age, country, item, got int"),
    "a flat array": (lambda: MAP.rows(np.zeros(3)), "expected an array of 3 columns, got shape (3,)"),
    "a matrix for a column": (lambda: MAP.rows(TABLE | {"age": np.zeros((3, 2))}), "one value a row"),
    "another dimension": (
        lambda: dpb.LinearContexts(5, features=MAP),
        "expected dim=12, as many features as the map makes, got 5",
    ),
    "another bound": (
        lambda: dpb.LinearContexts.of(MAP, max_norm=0.5),
        "expected max_norm of at least 1, that of the map, got 0.5",
    ),
    "rows for a map": (lambda: dpb.LinearContexts(2, features=d.Features), "to be a FeatureMap"),
    "a number for a map": (lambda: dpb.LinearContexts.of(d), "expected a FeatureMap"),
    "two people for pairs": (
        lambda: CrossedFeatures(MAP, [[1.0]]).context(TABLE),
        "expected the columns of one person, got 3 rows",
    ),
    "no actions": (lambda: CrossedFeatures(MAP, []), "expected actions as rows"),
    "actions that are nan": (lambda: CrossedFeatures(MAP, [[float("nan")]]), "finite numbers"),
}


@pytest.mark.parametrize(("act", "said"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_sentence(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        act()
    assert "\n" not in str(caught.value)
