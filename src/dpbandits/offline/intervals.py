"""Confidence intervals of a mean."""

import math

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits import checks

Array = NDArray[np.float64]
# Rows from which on a normal interval is near what it says: of 95 %, it covers a rate with 5, 10, 15 and
# 20 such rows expected in 87, 93, 92 and 95 % of logs (by the binomial law, 1,000 rows).
FEWEST = 20.0


def normal_interval(values: Array, confidence: float) -> tuple[float, float]:
    r"""Mean ± t s/√n, s² being the empirical variance and t the quantile of Student's law.

    It holds in the limit, for independent values. Where rewards are rare it is too short (`if_short`):
    without any it has no length.
    """
    checks.open_unit(confidence=confidence)
    mean = float(values.mean())
    if values.size < 2:
        return -math.inf, math.inf
    quantile = float(scipy.special.stdtrit(values.size - 1, 0.5 + 0.5 * confidence))
    half = quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean - half, mean + half


def if_short(telling: float) -> str:
    """What to say after a normal interval that few rows other than the commonest have made."""
    if telling >= FEWEST:
        return ""
    told = f"about {telling:.0f} rows have another reward than most"
    return f", too short: {told}, and it needs {FEWEST:g}"


def bernstein_interval(values: Array, confidence: float, span: float) -> tuple[float, float]:
    r"""Mean ± √(2 s² ln(4/δ)/n) + 7 b ln(4/δ)/(3(n − 1)), for independent values within a range of b.

    Maurer and Pontil (2009, Theorem 4), both sides: it holds for every n, and is longer.
    """
    checks.open_unit(confidence=confidence)
    mean = float(values.mean())
    if values.size < 2:
        return -math.inf, math.inf
    log = math.log(4.0 / (1.0 - confidence))
    half = math.sqrt(2.0 * float(values.var(ddof=1)) * log / values.size)
    half += 7.0 * span * log / (3.0 * (values.size - 1))
    return mean - half, mean + half
