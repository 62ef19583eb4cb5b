"""Off-policy estimates: by hand, unbiased, covered by their intervals, refused where they must be."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import dpbandits as dpb
from dpbandits.errors import DPBanditsError
from dpbandits.features import FeatureMap, Number
from dpbandits.offline import Rows, doubly_robust, ips, read, ridge_model, snips
from dpbandits.offline.estimates import effective_rows, telling_rows
from dpbandits.offline.intervals import bernstein_interval, normal_interval

LABELS = ("a", "b", "c")
Array = NDArray[np.float64]


def means(contexts: Array) -> Array:
    """Expected rewards of the three actions: linear in the context."""
    (x,) = contexts.T
    return np.stack([0.2 + 0.6 * x, 0.8 - 0.6 * x, np.full_like(x, 0.4)], axis=1)


def world(size: int, seed: int, *, contexts: bool = True) -> tuple[Rows, Array, float]:
    """A log whose propensities depend on the context, other decisions, and what they truly earn."""
    chance = np.random.default_rng([seed, 11])
    x = chance.random((size, 1))
    logging = np.concatenate([0.2 + 0.3 * x, 0.5 - 0.3 * x, np.full((size, 1), 0.3)], axis=1)
    actions = (chance.random((size, 1)) > logging.cumsum(axis=1)).sum(axis=1)
    rewards = (chance.random(size) < means(x)[np.arange(size), actions]).astype(float)
    rows = Rows(
        actions=actions,
        rewards=rewards,
        labels=LABELS,
        propensities=logging[np.arange(size), actions],
        contexts=x if contexts else None,
    )
    target = np.concatenate([0.1 + 0.7 * x, 0.8 - 0.7 * x, np.full((size, 1), 0.1)], axis=1)
    grid = (np.arange(10_000)[:, None] + 0.5) / 10_000
    weights = np.concatenate([0.1 + 0.7 * grid, 0.8 - 0.7 * grid, np.full_like(grid, 0.1)], axis=1)
    return rows, target, float((weights * means(grid)).sum(axis=1).mean())


def repeated(values: list[float], times: int = 30) -> Any:
    return np.array(values * times)


def test_four_rows_by_hand() -> None:
    rows = Rows(
        actions=np.array([0, 1, 0, 2] * 30),
        rewards=repeated([1.0, 0.0, 1.0, 1.0]),
        labels=LABELS,
        propensities=repeated([0.5, 0.25, 0.5, 0.25]),
    )
    decisions = np.tile([0.5, 0.25, 0.25], (120, 1))
    # All weights are 1.
    assert ips(rows, decisions).value == snips(rows, decisions).value == 0.75
    first = np.zeros(120)
    # Weights 2, 0, 2, 0.
    assert ips(rows, first).value == 1.0 and snips(rows, first).value == 1.0
    assert ips(rows, first).effective == 60.0 and ips(rows, first).mean_weight == 1.0
    model = np.tile([0.5, 0.0, 0.0], (120, 1))
    assert doubly_robust(rows, first, model=model).value == pytest.approx(0.5 + np.mean([1, 0, 1, 0]))
    assert effective_rows(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)


def test_the_intervals_by_hand() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    low, high = normal_interval(values, 0.95)
    assert (low, high) == pytest.approx((0.6 - 0.680087, 0.6 + 0.680087), abs=1e-5)  # t = 2.776445
    low, high = bernstein_interval(values, 0.9, 2.0)
    log = np.log(40.0)
    assert high - low == pytest.approx(2 * (np.sqrt(2 * 0.3 * log / 5) + 7 * 2 * log / 12))


METHODS: dict[str, Callable[..., Any]] = {"IPS": ips, "SNIPS": snips, "DR": doubly_robust}


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_truth_and_halved_ones_do_not(method: str) -> None:
    """500 logs of 400 rows, each 95 %: fewer are covered than the 1e-6 quantile with that chance only,
    by the binomial law. Controls: halved intervals (67 %), and those of an estimate without weights.
    """
    covered, halved, naive = 0, 0, 0
    for seed in range(500):
        rows, target, truth = world(400, seed)
        found = METHODS[method](rows, target)
        off, half = abs(found.value - truth), (found.high - found.low) / 2
        covered += off <= half
        halved += off <= half / 2
        naive += abs(rows.rewards.mean() - truth) <= half
    least = int(binom.ppf(1e-6, 500, 0.95))
    assert covered >= least > max(halved, naive)


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_right_on_average(method: str) -> None:
    """Over 400 logs, within five standard errors (chance below 1e-6). Control: the log's own mean."""
    pairs = [(world(300, seed), seed) for seed in range(400)]
    found = np.array([METHODS[method](rows, target).value for (rows, target, _), _ in pairs])
    plain = np.array([rows.rewards.mean() for (rows, _, _), _ in pairs])
    truth = pairs[0][0][2]
    error = found.std() / 20
    assert abs(found.mean() - truth) < 5 * error < abs(plain.mean() - truth)


def test_bernstein_intervals_cover_where_normal_ones_do_not() -> None:
    """Rewards of 0.3 %: in most logs of 300 rows there is none, and a normal interval has no length."""
    chance, covered, normal = np.random.default_rng(5), 0, 0
    for _ in range(300):
        rows = Rows(
            actions=chance.integers(2, size=300),
            rewards=(chance.random(300) < 0.003).astype(float),
            labels=("a", "b"),
            propensities=np.full(300, 0.5),
        )
        for interval in ("normal", "bernstein"):
            found = ips(rows, np.zeros(300), interval=interval, least_propensity=0.5)
            inside = found.low <= 0.003 <= found.high
            covered += inside * (interval == "bernstein")
            normal += inside * (interval == "normal")
    assert covered >= int(binom.ppf(1e-6, 300, 0.95)) > normal


def test_bernstein_is_not_misled_by_a_rare_action_that_the_log_did_not_draw() -> None:
    """Four rows of ten have a propensity of 1e-3, and all rewards are theirs. A log of 100 rows mostly
    has none of them: the largest weight that it shows is 10/9, whose interval is too short. What needs
    no declared bound is refused: the mean weight is 0.6.
    """
    chance, covered, by_the_log = np.random.default_rng(6), 0, 0
    for _ in range(300):
        is_rare = chance.random(100) < 0.4
        shown = np.where(is_rare, 1e-3, 0.9)  # the propensity of action 1, which is decided for
        actions = (chance.random(100) < shown).astype(int)
        rows = Rows(
            actions=actions,
            rewards=(is_rare & (actions == 1)).astype(float),
            labels=("a", "b"),
            propensities=np.where(actions == 1, shown, 1.0 - shown),
        )
        weights = actions / shown
        found = bernstein_interval(weights * rows.rewards, 0.95, 1e3)
        misled = bernstein_interval(weights * rows.rewards, 0.95, 1.0 / shown[actions == 1].min())
        covered += found[0] <= 0.4 <= found[1]
        by_the_log += misled[0] <= 0.4 <= misled[1]
        with pytest.raises(DPBanditsError, match=r"weights of mean|overlaps too little"):
            snips(rows, np.ones(100))
    assert covered >= int(binom.ppf(1e-6, 300, 0.95)) > by_the_log


@pytest.mark.parametrize(("rate", "says"), [(0.005, True), (0.2, False)])
def test_an_interval_that_few_rewards_made_says_that_it_is_too_short(rate: float, says: bool) -> None:
    chance = np.random.default_rng(7)
    rows = Rows(
        actions=chance.integers(2, size=400),
        rewards=(chance.random(400) < rate).astype(float),
        labels=("a", "b"),
        propensities=np.full(400, 0.5),
    )
    paid = int(rows.rewards[rows.actions == 0].sum())
    for found in (ips(rows, np.zeros(400)), snips(rows, np.zeros(400))):
        assert found.telling == pytest.approx(paid)
        assert ("too short: about" in str(found)) is says
    bound = ips(rows, np.zeros(400), interval="bernstein", least_propensity=0.5)
    assert "too short" not in str(bound)
    assert telling_rows(np.array([1.0, 1.0, 0.0, 3.0]), np.array([1.0, 1.0, 2.5, 0.0])) == 2.0
    assert telling_rows(np.ones(3), np.ones(3)) == 0.0


def test_a_model_lessens_the_variance_and_is_made_of_other_rows() -> None:
    rows, target, _ = world(2000, 0)
    one, other = doubly_robust(rows, target), ips(rows, target)
    assert one.high - one.low < other.high - other.low
    model = ridge_model(rows)
    assert rows.contexts is not None
    assert np.abs(model - means(rows.contexts)).mean() < 0.1
    # The reward of a row changes the model of other folds only.
    rewards = rows.rewards.copy()
    rewards[3] = 1.0 - rewards[3]
    again = ridge_model(replace(rows, rewards=rewards))
    fold = np.arange(2000) % 5
    assert (again[fold == 3] == model[fold == 3]).all() and (again != model).any()


def test_the_ridge_model_is_scikit_learns() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows, _, _ = world(300, 1)
    model, fold = ridge_model(rows, penalty=2.0, folds=3), np.arange(300) % 3
    mine = (fold != 0) & (rows.actions == 1)
    assert rows.contexts is not None
    inputs = np.concatenate([np.ones((300, 1)), rows.contexts], axis=1)
    mean = rows.rewards[fold != 0].mean()
    theirs = linear_model.Ridge(alpha=2.0, fit_intercept=False).fit(
        inputs[mine], rows.rewards[mine] - mean
    )
    np.testing.assert_allclose(model[fold == 0, 1], mean + theirs.predict(inputs[fold == 0]), atol=1e-9)


def test_an_estimate_is_a_sentence() -> None:
    rows, target, _ = world(400, 0)
    assert re.fullmatch(
        r"SNIPS 0\.\d+, 95 % normal interval 0\.\d+ to 0\.\d+; 400 rows, effective sample size "
        r"\d+ \(raw data, not private\)",
        str(snips(rows, target)),
    )


# Reading, and mistakes.

LOG = {"item": ["x", "y"] * 50, "click": [1, 0] * 50, "p": [0.5] * 100, "age": list(range(100))}


@pytest.mark.parametrize("kind", ["dict", "polars", "csv", "parquet"])
def test_logs_are_read_from_files_and_frames(kind: str, tmp_path: Path) -> None:
    frame, source = pl.DataFrame(LOG), tmp_path / f"log.{kind}"
    given: Any = {"dict": LOG, "polars": frame}.get(kind, source)
    if kind == "csv":
        frame.write_csv(source)
    if kind == "parquet":
        frame.write_parquet(source)
    features = FeatureMap([Number("age", 0, 99)])
    rows = read(
        given, action="item", reward="click", propensity="p", features=features, labels=["y", "x"]
    )
    np.testing.assert_array_equal(rows.contexts, features.rows(LOG))
    assert rows.labels == ("y", "x") and rows.actions[:2].tolist() == [1, 0]
    assert rows.rewards.sum() == 50 and ips(rows, np.ones(100)).value == 1.0


def test_labels_are_found_by_their_text(tmp_path: Path) -> None:
    pl.DataFrame(LOG | {"item": [10, 9] * 50}).write_csv(tmp_path / "log.csv")
    rows = read(tmp_path / "log.csv", action="item", reward="click", labels=[9, 10, 11])
    assert rows.labels == (9, 10, 11) and rows.actions[:2].tolist() == [1, 0]
    assert read(tmp_path / "log.csv", action="item", reward="click").labels == ("9", "10")


def logged(**changes: Any) -> Rows:
    return read(LOG | changes, action="item", reward="click", propensity="p")


ROWS = logged()
d: Any = dpb.offline
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a misspelt column": (lambda: read(LOG, action="itme", reward="click"), "did you mean 'item'?"),
    "texts for rewards": (lambda: logged(click=["a"] * 100), "expected numbers"),
    "nan for a reward": (lambda: logged(click=[float("nan")] * 100), "is nan or infinite"),
    "a reward beyond": (lambda: logged(click=[2.0] * 100), "outside the range 0 to 1"),
    "a propensity of 0": (lambda: logged(p=[0.0] * 100), "no probability above 0 and up to 1"),
    "a propensity above 1": (lambda: logged(p=[1.5] * 100), "no probability above 0 and up to 1"),
    "no rows": (
        lambda: read({"item": [], "click": []}, action="item", reward="click"),
        "has no rows",
    ),
    "no such file": (lambda: read("no.csv", action="a", reward="b"), "there is no file no.csv"),
    "an unknown action": (
        lambda: read(LOG, action="item", reward="click", labels=["x", "z"]),
        "column 'item' has 'y', which is not among the labels",
    ),
    "labels alike": (
        lambda: read(LOG, action="item", reward="click", labels=[1, "1"]),
        "expected labels that differ as texts",
    ),
    "one text for labels": (
        lambda: d.read(LOG, action="item", reward="click", labels="xy"),
        "expected labels as a sequence",
    ),
    "one action": (lambda: logged(item=["x"] * 100), "labels of at least two different actions"),
    "names for a map": (
        lambda: d.read(LOG, action="item", reward="click", features=["age"]),
        "expected features to be a FeatureMap",
    ),
    "actions beyond": (lambda: replace(ROWS, actions=np.full(100, 2)), "numbers of labels, 0 to 1"),
    "no actions": (lambda: replace(ROWS, actions=np.zeros(0, int)), "at least one row, got none"),
    "names as actions": (lambda: replace(ROWS, actions=d.read), "actions as numbers of labels"),
    "too few rewards": (lambda: replace(ROWS, rewards=np.zeros(9)), "expected 100 rewards, one a row"),
    "rewards that are nan": (lambda: replace(ROWS, rewards=np.full(100, np.nan)), "rewards within 0"),
    "chances of 0": (lambda: replace(ROWS, propensities=np.zeros(100)), "propensities above 0"),
    "contexts of others": (lambda: replace(ROWS, contexts=np.zeros((9, 2))), "expected 100 contexts"),
    "contexts that are nan": (
        lambda: replace(ROWS, contexts=np.full((100, 1), np.nan)),
        "rows of finite numbers",
    ),
    "a number for a map": (lambda: replace(ROWS, features=d), "expected features to be a FeatureMap"),
    "no propensities": (
        lambda: ips(replace(ROWS, propensities=None), np.ones(100)),
        "off-policy estimates need the chance with which each logged action was chosen",
    ),
    "too thin": (
        lambda: snips(replace(ROWS, propensities=np.where(np.arange(100) > 2, 1.0, 1e-3)), np.ones(100)),
        "the log overlaps too little with these decisions: 100 rows have an effective",
    ),
    "no overlap": (
        lambda: ips(replace(ROWS, actions=np.zeros(100, int)), np.ones(100)),
        "100 rows have an effective sample size of 0.0, and an estimate needs 50",
    ),
    "wrong propensities": (
        lambda: ips(replace(ROWS, propensities=np.full(100, 0.1)), np.full((100, 2), 0.5)),
        "weights of mean 5 where it should be 1",
    ),
    "some decisions missing": (
        lambda: ips(replace(ROWS, propensities=np.full(100, 0.75)), np.full((100, 2), 0.5)),
        "weights of mean 0.67 where it should be 1",
    ),
    "no least propensity": (
        lambda: ips(ROWS, np.ones(100), interval="bernstein"),
        "a Bernstein interval needs the least chance with which the log could choose",
    ),
    "a least propensity that is not": (
        lambda: ips(ROWS, np.ones(100), interval="bernstein", least_propensity=0.9),
        "expected least_propensity above 0 and at most 0.5, which the log has, got 0.9",
    ),
    "decisions of others": (lambda: ips(ROWS, np.ones(99)), "got shape (99,)"),
    "unknown decisions": (lambda: ips(ROWS, np.full(100, 2)), "places in rows.labels, 0 to 1"),
    "half decisions": (lambda: ips(ROWS, np.full(100, 0.5)), "places in rows.labels, 0 to 1"),
    "names as decisions": (
        lambda: ips(ROWS, ["x"] * 100),
        "numbers of actions, their places in rows.labels",
    ),
    "no probabilities": (lambda: ips(ROWS, np.ones((100, 2))), "add up to 1"),
    "negative ones": (lambda: ips(ROWS, np.tile([-1.0, 2.0], (100, 1))), "to be at least 0"),
    "another interval": (
        lambda: ips(ROWS, np.ones(100), interval="exact"),
        "interval to be one of 'normal', 'bernstein'",
    ),
    "confidence of 1": (lambda: ips(ROWS, np.ones(100), confidence=1), "confidence strictly between"),
    "a small model": (
        lambda: doubly_robust(ROWS, np.ones(100), model=np.zeros((100, 3))),
        "finite rewards of shape (100, 2), got (100, 3)",
    ),
    "one fold": (lambda: ridge_model(ROWS, folds=1), "folds to be a whole number >= 2"),
    "no penalty": (lambda: ridge_model(ROWS, penalty=0.0), "expected penalty within"),
    "a frame for rows": (lambda: d.ips(LOG, [1]), "expected rows as offline.read(…) gives them"),
}


@pytest.mark.parametrize(("act", "said"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_sentence(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        act()
    assert "\n" not in str(caught.value)
