"""Whether two samples may be of one law: their means, their variances, their quantiles."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
ERROR = 1e-7  # of each of the three tests, where the laws are the same


def disagreements(one: Array, other: Array) -> list[str]:
    """What differs by more than chance explains; empty where nothing does."""
    found = []
    limit = float(stats.norm.isf(ERROR / 2.0))
    if _apart(one.mean(), _error_of_mean(one), other.mean(), _error_of_mean(other)) > limit:
        found.append(f"means {one.mean():g} and {other.mean():g}")
    if _apart(one.var(), _error_of_variance(one), other.var(), _error_of_variance(other)) > limit:
        found.append(f"variances {one.var():g} and {other.var():g}")
    if stats.ks_2samp(one, other, method="asymp").pvalue < ERROR:
        found.append("quantiles")
    return found


def _apart(one: float, error: float, other: float, other_error: float) -> float:
    """In standard errors, rounding of sums left out."""
    difference = abs(one - other)
    if difference <= 1e-9 * max(abs(one), abs(other), 1.0):
        return 0.0
    return difference / max(math.hypot(error, other_error), 1e-300)


def _error_of_mean(values: Array) -> float:
    return float(values.std() / math.sqrt(values.size))


def _error_of_variance(values: Array) -> float:
    squares = (values - values.mean()) ** 2
    return float(squares.std() / math.sqrt(values.size))
