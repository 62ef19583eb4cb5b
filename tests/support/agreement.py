"""Whether two samples may be of one law: their means, their variances, their quantiles."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
# Of each of the three tests, where the laws are the same: so small since the first two are by the normal
# approximation, which is too narrow where a few runs in a thousand go very wrong.
ERROR = 1e-9


def disagreements(one: Array, other: Array) -> list[str]:
    """What differs by more than chance explains; empty where nothing does."""
    found = []
    middle = np.concatenate([one, other]).mean()
    if _differ(one, other):
        found.append(f"means {one.mean():g} and {other.mean():g}")
    if _differ((one - middle) ** 2, (other - middle) ** 2):
        found.append(f"variances {one.var():g} and {other.var():g}")
    if stats.ks_2samp(_rounded(one), _rounded(other), method="asymp").pvalue < ERROR:
        found.append("quantiles")
    return found


def _differ(one: Array, other: Array) -> bool:
    """Whether the means do. The spread is of both: a sample without the rare case has too little."""
    difference = abs(one.mean() - other.mean())
    if difference <= 1e-9 * max(abs(one.mean()), abs(other.mean()), 1.0):  # rounding of sums
        return False
    spread = np.concatenate([one, other]).std() * math.sqrt(1.0 / one.size + 1.0 / other.size)
    return bool(difference > stats.norm.isf(ERROR / 2.0) * spread)


def _rounded(values: Array) -> Array:
    """Sums of the same numbers in another order are equal."""
    return np.round(values, 9)
