r"""Evidence that one arm is better than another, from released sums, at any time and for any rewards.

An arm's k released batches hold n rewards of mean q within [0, 1], and their sum is released as S, with
noise of log-moments ψ(l) in each batch: −ln(1 − l²b²) for Laplace(b), l²σ²/2 for Gaussian noise, 0
without any. (b and σ are taken 2⁻⁹ wider than they are: exact draws are 2⁻¹⁰ wider, on a grid.)
For a tilt l > 0, since e^(lx) is below its chord on [0, 1],

    exp(l S − n ln(1 + q(e^l − 1)) − k ψ(l))        and the same with −l in place of l

have a mean of at most 1 after every batch, given all before, however the batch's length was chosen from
what was released. So have their averages over a fixed list of tilts, M⁺(q) and M⁻(q): nonnegative
supermartingales that begin at 1, also as products of two arms'. M⁺_a(q) is large where S says that the
mean is above q, and falls in q; M⁻_a(q) where it is below, and grows in q. The evidence that a is better
than b is

    W(a, b) = min over q of  ln M⁺_a(q) + ln M⁻_b(q).

If in truth q_a ≤ q_b, then W ≤ ln(M⁺_a(q_b) M⁻_b(q_b)) ≤ ln(M⁺_a(q_a) M⁻_b(q_b)), which ever reaches c
with a probability of at most e^−c (Ville's inequality). Logarithms of sums of e^(convex) are convex, and
−ln(1 + q·…) is convex in q: so the minimum is found by halving, and from any point q and its slope there
is a lower bound for it. That bound is what is returned, so that W is never overstated.

**The tilts** fall by factors of √2 from where noise makes more of no use, at most 4, to .002; gaps of
less than .001 are not told apart. Under Laplace noise l = (t^−2 + b²)^−½ stays below 1/b.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.sums.batches import Batches

Array = NDArray[np.float64]
_STEEPEST, _FLATTEST = 4.0, 0.002
_WIDER = 1.0 + 2.0**-9
_HALVINGS = 60
_CLOSE = 0.01  # of evidence: what the search for the minimum may leave


class Tilts(NamedTuple):
    """One entry for each tilt l."""

    tilt: Array
    rise: Array  # e^l − 1
    fall: Array  # e^−l − 1
    price: Array  # ψ(l)

    def limits(self) -> Limits:
        """All of it follows from the budget."""
        return dict.fromkeys(self._fields, FROM_RECIPE)


def start_tilts(batches: Batches) -> Tilts:
    """Those that suit the noise of independent batches."""
    useful = (3.0 if batches.laplace else 6.0) / batches.scale if batches.scale > 0.0 else math.inf
    steepest = max(min(_STEEPEST, useful), 2.0 * _FLATTEST)
    count = math.ceil(2.0 * math.log2(steepest / _FLATTEST)) + 1
    tilt: Array = steepest * np.exp2(-0.5 * np.arange(count))
    wide = batches.scale * _WIDER
    if batches.laplace:
        price = np.log1p((tilt * wide) ** 2)  # −ln(1 − l²b²) for this l, without rounding
        tilt = np.asarray(1.0 / np.sqrt(tilt**-2.0 + wide**2))
    else:
        price = 0.5 * (tilt * wide) ** 2
    return Tilts(tilt, np.expm1(tilt), np.expm1(-tilt), price)


@register_jitable
def evidence_of_better(
    tilts: Tilts, batches: Batches, plays: NDArray[np.int64], a: int, b: int
) -> float:
    """A bound just below W(a, b); where that is not positive, some number that is not either."""
    low, high, found = 0.0, 1.0, -math.inf
    for _ in range(_HALVINGS):
        q = 0.5 * (low + high)
        above, falls = _log_e_value(tilts, batches, plays, a, q, True)
        below, grows = _log_e_value(tilts, batches, plays, b, q, False)
        value, slope = above + below, falls + grows
        if value <= 0.0:
            return value
        # Convex: on the side where it falls, it stays above its tangent.
        found = max(found, value - abs(slope) * (q - low if slope > 0.0 else high - q))
        if value - found <= _CLOSE:
            break
        if slope > 0.0:
            high = q
        else:
            low = q
    return found


@register_jitable
def _log_e_value(
    tilts: Tilts, batches: Batches, plays: NDArray[np.int64], arm: int, q: float, up: bool
) -> tuple[float, float]:
    """The logarithm of M⁺(q), or M⁻(q), and its slope in q."""
    n, draws = float(plays[arm]), float(batches.released[arm])
    total = float(batches.total[arm, 0]) + 0.5 * n
    if not up:
        total = -total
    most, mass, slope = -math.inf, 0.0, 0.0
    for j in range(tilts.tilt.size):
        change = tilts.rise[j] if up else tilts.fall[j]
        moment = 1.0 + q * change
        exponent = tilts.tilt[j] * total - n * math.log(moment) - draws * tilts.price[j]
        # The sum of exponentials, in units of the largest so far.
        if exponent > most:
            shrunk = math.exp(most - exponent)
            mass, slope, most = mass * shrunk + 1.0, slope * shrunk - n * change / moment, exponent
        else:
            share = math.exp(exponent - most)
            mass, slope = mass + share, slope - share * n * change / moment
    return most + math.log(mass / tilts.tilt.size), slope / mass
