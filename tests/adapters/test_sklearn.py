"""Feature maps from scikit-learn's own transformers."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import dpbandits as dpb
from dpbandits.adapters.sklearn import feature_map
from dpbandits.errors import DPBanditsError, FittedOnData, ShortenedFeatures

CHANCE = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": CHANCE.uniform(18, 90, 200),
        "income": CHANCE.normal(30, 2, 200),
        "country": CHANCE.choice(["de", "fr", "it"], 200),
        "plan": CHANCE.integers(1, 4, 200),
    }
)


def fitted(*parts: Any, frame: Any = FRAME, **options: Any) -> ColumnTransformer:
    return ColumnTransformer(list(parts), sparse_threshold=0.0, **options).fit(frame)


CATEGORIES = ("c", OneHotEncoder(handle_unknown="ignore"), ["country", "plan"])


@pytest.mark.parametrize("scaler", [MinMaxScaler(), MaxAbsScaler(), StandardScaler(), RobustScaler()])
def test_features_are_those_of_the_transformer_up_to_a_linear_map(scaler: Any) -> None:
    transformer = fitted(("n", scaler, ["age", "income"]), CATEGORIES)
    features = feature_map(transformer, fitted_on_public_data=True)
    inside = FRAME
    if isinstance(scaler, StandardScaler | RobustScaler):  # beyond three scales numbers are cut off
        inside = FRAME[(np.abs(transformer.transform(FRAME)[:, :2]) <= 3).all(axis=1)]
    rows, theirs = features.rows(inside), transformer.transform(inside)
    assert rows.shape == (len(inside), 1 + theirs.shape[1])
    for one, other in ((rows, theirs), (theirs, rows)):
        np.testing.assert_allclose(LinearRegression().fit(one, other).predict(one), other, atol=1e-9)
    assert (np.linalg.norm(rows, axis=1) <= 1.0).all()
    # One-hot columns are the same but for the factor.
    np.testing.assert_array_equal(rows[:, 3:] > 0, theirs[:, 2:] > 0)


def test_unknown_categories_are_zeros_as_there() -> None:
    transformer = fitted(CATEGORIES)
    unknown = pd.DataFrame({"age": [1.0], "income": [1.0], "country": ["at"], "plan": [9]})
    assert not np.asarray(transformer.transform(unknown)).any()
    assert not feature_map(transformer, fitted_on_public_data=True).rows(unknown)[:, 1:].any()


def test_the_warning_says_what_it_was_fitted_on() -> None:
    transformer = fitted(("n", MinMaxScaler(), ["age"]))
    with pytest.warns(FittedOnData, match="gives away their extremes") as caught:
        features = feature_map(transformer)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert feature_map(transformer, fitted_on_public_data=True) == features
    # And so it does: the oldest person's age is in the recipe.
    assert repr(float(FRAME["age"].max())) in features.to_json()


def test_numbers_by_place_and_slices() -> None:
    one = fitted(("n", MinMaxScaler(), [0]), ("c", OneHotEncoder(), slice(2, 3)))
    other = fitted(("n", MinMaxScaler(), ["age"]), ("c", OneHotEncoder(), ["country"]))
    maps = [feature_map(each, fitted_on_public_data=True) for each in (one, other)]
    assert maps[0] == maps[1]


def test_a_learner_takes_frames_by_it() -> None:
    features = feature_map(
        fitted(("n", MinMaxScaler(), ["age"]), CATEGORIES), fitted_on_public_data=True
    )
    problem = dpb.LinearContexts.of(features, arms=2)
    learner = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0)).start(problem, compiled=False)
    assert learner.select(FRAME.iloc[:1]) in (0, 1)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a scaler": (lambda: feature_map(MinMaxScaler()), "expected a ColumnTransformer, got MinMaxScaler"),
    "not fitted": (
        lambda: feature_map(ColumnTransformer([("n", MinMaxScaler(), ["age"])])),
        "not fitted: call fit(frame) first",
    ),
    "passed through": (
        lambda: feature_map(fitted(("n", "passthrough", ["age"]))),
        "columns age pass through",
    ),
    "the rest passed through": (
        lambda: feature_map(fitted(("n", MinMaxScaler(), ["age"]), remainder="passthrough")),
        "columns income, country, plan pass through",
    ),
    "another transformer": (
        lambda: feature_map(fitted(("n", QuantileTransformer(n_quantiles=9), ["age"]))),
        "columns age pass through QuantileTransformer, whose bounds are not known",
    ),
    "an array": (
        lambda: feature_map(fitted(("n", MinMaxScaler(), [0]), frame=FRAME[["age"]].to_numpy())),
        "fitted on a frame, whose columns have names",
    ),
    "dropped categories": (
        lambda: feature_map(fitted(("c", OneHotEncoder(drop="first"), ["country"]))),
        "neither drops categories nor joins rare ones",
    ),
    "rare categories": (
        lambda: feature_map(fitted(("c", OneHotEncoder(min_frequency=150), ["country"]))),
        "neither drops categories nor joins rare ones",
    ),
    "a constant": (
        lambda: feature_map(fitted(("n", MinMaxScaler(), ["age"]), frame=FRAME.assign(age=3.0))),
        "expected low < high for column 'age'",
    ),
    "nothing": (lambda: feature_map(fitted(("n", "drop", ["age"]))), "expected columns such as Number"),
}


@pytest.mark.parametrize(("act", "said"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_sentence(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_numbers_beyond_three_scales_are_cut_off_and_that_is_said() -> None:
    features = feature_map(fitted(("n", StandardScaler(), ["age"])), fitted_on_public_data=True)
    with pytest.warns(ShortenedFeatures):
        features.rows(FRAME.assign(age=1000.0))
