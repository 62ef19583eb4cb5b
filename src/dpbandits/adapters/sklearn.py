"""scikit-learn: a `FeatureMap` that declares what a fitted `ColumnTransformer` found."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from dpbandits import checks
from dpbandits.errors import FittedOnData, InvalidInput
from dpbandits.extras import extra
from dpbandits.features import Category, Column, FeatureMap, Number

# How many standard deviations from the mean a number of a standardised column is told apart.
SPREAD = 3.0


def feature_map(
    transformer: Any,
    *,
    fitted_on_public_data: bool = False,
    intercept: bool = True,
    max_norm: float = 1.0,
) -> FeatureMap:
    """The map with the ranges and categories of a `ColumnTransformer` that was fitted on a frame.

    Those of `MinMaxScaler` and `MaxAbsScaler` are ranges as they are; of `StandardScaler` and
    `RobustScaler` three scales either side of the centre, beyond which numbers are cut off; of
    `OneHotEncoder` categories, and what it does not know is a row of zeros. Up to a shift and a factor
    for each column, which a linear model with an intercept makes up for, the features are those of the
    transformer, within `max_norm`. All other transformers are refused: what bounds their features, only
    you know.

    **What it was fitted on matters.** The map is public, as every declaration is. If it was fitted on
    people's data, it gives away their extremes and their rare values, and no guarantee covers that:
    there is a warning, unless you say that the data is public.
    """
    with extra("sklearn"):
        from sklearn.compose import ColumnTransformer
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    if not isinstance(transformer, ColumnTransformer):
        raise InvalidInput(f"expected a ColumnTransformer, got {checks.kind_of(transformer)}")
    checks.one_of((True, False), fitted_on_public_data=fitted_on_public_data)
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        raise InvalidInput("this ColumnTransformer is not fitted: call fit(frame) first") from None
    columns: list[Column] = []
    for _, part, selected in transformer.transformers_:
        if not (isinstance(part, str) and part == "drop"):
            columns += _columns(part, _names(transformer, selected))
    found = FeatureMap(columns, intercept=intercept, max_norm=max_norm)
    if not fitted_on_public_data:
        warnings.warn(
            "the ranges and categories of this map are what the transformer was fitted on: if those are "
            "people, it gives away their extremes and rare values, which no guarantee covers; fit it on "
            "public data, or declare a FeatureMap by public knowledge",
            FittedOnData,
            stacklevel=2,
        )
    return found


def _names(transformer: Any, selected: Any) -> list[str]:
    """The names of the columns that a part was given."""
    known = list(getattr(transformer, "feature_names_in_", ()))
    if not known:
        raise InvalidInput("expected a ColumnTransformer fitted on a frame, whose columns have names")
    if isinstance(selected, slice):
        return known[selected]
    listed = [selected] if isinstance(selected, str | int) else list(selected)
    return [name if isinstance(name, str) else known[int(name)] for name in listed]


def _columns(part: Any, names: list[str]) -> Iterable[Column]:
    kind = type(part).__name__
    if not names:
        return []
    if kind not in _KINDS:
        read = ", ".join(_KINDS)
        shown = repr(part) if isinstance(part, str) else kind
        raise InvalidInput(
            f"columns {', '.join(names)} pass through {shown}, whose bounds are not known; "
            f"read are: {read}"
        )
    return _KINDS[kind](part, names)


def _min_max(part: Any, names: list[str]) -> list[Column]:
    ends = zip(names, part.data_min_, part.data_max_, strict=True)
    return [Number(name, float(low), float(high)) for name, low, high in ends]


def _max_abs(part: Any, names: list[str]) -> list[Column]:
    return [
        Number(name, -float(end), float(end)) for name, end in zip(names, part.max_abs_, strict=True)
    ]


def _standard(part: Any, names: list[str]) -> list[Column]:
    return _centred(names, part.mean_, part.scale_)


def _robust(part: Any, names: list[str]) -> list[Column]:
    return _centred(names, part.center_, part.scale_)


def _centred(names: list[str], centres: Any, scales: Any) -> list[Column]:
    """Those that were told not to centre, or not to scale, have neither."""
    centres = [0.0] * len(names) if centres is None else centres
    scales = [1.0] * len(names) if scales is None else scales
    triples = zip(names, map(float, centres), map(float, scales), strict=True)
    return [Number(name, at - SPREAD * scale, at + SPREAD * scale) for name, at, scale in triples]


def _one_hot(part: Any, names: list[str]) -> list[Column]:
    if any(option is not None for option in (part.drop, part.min_frequency, part.max_categories)):
        raise InvalidInput("expected a OneHotEncoder that neither drops categories nor joins rare ones")
    pairs = zip(names, part.categories_, strict=True)
    # A missing value is no category here, but a row of zeros.
    return [
        Category(name, [value for value in values.tolist() if value is not None and value == value])
        for name, values in pairs
    ]


_KINDS: dict[str, Callable[[Any, list[str]], list[Column]]] = {
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "OneHotEncoder": _one_hot,
}
