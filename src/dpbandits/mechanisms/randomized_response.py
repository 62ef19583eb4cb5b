r"""Randomized response (Warner 1965): one biased coin instead of a number.

A value v ∈ [−½, ½] (a centred reward) is answered by a coin that shows 1 with probability ½ + c·v. For
the two ends this is the classical scheme, the truth with probability p = (1 + c)/2; in between, v is
rounded at random to an end first. (coin − ½)/c is an unbiased estimate of v, within 1/(2c) of 0.

The ends are the worst pair: their coins have odds p/(1 − p) and the inverse, so one answer is exactly
ε-DP with ε = ln(p/(1 − p)) = 2 artanh c, that is p = e^ε/(1 + e^ε) and c = tanh(ε/2). Two coins are as
hard to tell apart as N(0, 1) and N(μ, 1) at the one threshold that matters when p = Φ(μ/2), so it is
exactly μ-GDP at c = 2Φ(μ/2) − 1.
"""

import math
from collections.abc import Callable

from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.privacy import curves
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP

# The generator's coins have a grain of 2⁻⁵³: lies rarer than 2⁻⁴⁰ would not occur with the stated
# probability.
_LARGEST = 1.0 - 2.0**-39
# Biases on this grid have probabilities ½ ± c/2 that are exact.
_GRID = 2.0**-52
# Costs closer than this (relative) are one cost computed in two ways.
_ROUNDING = 1e-13


def response_bias(budget: Budget) -> float:
    """The bias c = 2p − 1 with which one answer meets the budget; 1, the truth, for `NonPrivate`.

    Never above 1 − 2⁻³⁹ (ε = 27.7), which a larger budget is met by as well.

    >>> round(response_bias(PureDP(math.log(3.0))), 12)
    0.5
    """
    match budget:
        case NonPrivate():
            return 1.0
        case PureDP(epsilon=epsilon):
            bias = min(math.tanh(epsilon / 2.0), _LARGEST)
            while 2.0 * math.atanh(bias) > epsilon:  # rounded to the private side
                bias = math.nextafter(bias, 0.0)
            return _private_side(bias, lambda c: 2.0 * math.atanh(c), epsilon)
        case GaussianDP(mu=mu):
            return _private_side(min(math.erf(mu / math.sqrt(8.0)), _LARGEST), curves.response_mu, mu)
    raise BudgetNotAccepted(f"randomized response is calibrated to ε-DP or μ-GDP, not to {budget}")


def _private_side(bias: float, cost: Callable[[float], float], budget: float) -> float:
    """The bias, or the next smaller one whose coins, as `heads` rounds them, cost no more."""
    told = max(heads(0.5, bias) - 0.5, 0.5 - heads(-0.5, bias))
    if cost(2.0 * told) <= budget * (1.0 + _ROUNDING):
        return bias
    steps = math.floor(bias / _GRID)
    while steps > 0 and cost(steps * _GRID) > budget:
        steps -= 1
    if steps == 0:
        raise InvalidInput(f"a coin cannot be biased by as little as a budget of {budget:g} asks for")
    return steps * _GRID


def response_release(bias: float) -> PureDP:
    """The exact budget of one answer: 2 artanh c."""
    checks.open_unit(bias=bias)
    return PureDP(2.0 * math.atanh(bias))


@register_jitable(forceinline=True)
def heads(value: float, bias: float) -> float:
    """The probability of answering 1 about a value in [−½, ½]: the location of the draw."""
    return 0.5 + bias * value


@register_jitable(forceinline=True)
def debiased(answer: float, bias: float) -> float:
    """The unbiased estimate of the value, on its own scale around 0."""
    return (answer - 0.5) / bias
