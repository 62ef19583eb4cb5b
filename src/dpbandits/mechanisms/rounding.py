r"""Rounding what is sent or shown, so that its last bits tell nothing.

The sum of a secret and noise in double precision is not as blurred as the sum of two real numbers:
which last bits it can have depends on the secret (Mironov 2012). A result near 0 around a secret of 1 is
always a multiple of 2⁻⁵³, one around a secret of 0 hardly ever. Where only decisions are seen that does
no harm; a person of the local model sends the number itself. So she rounds it to a multiple of a power
of two between 2⁻¹³ and 2⁻¹² of the noise's scale. To real numbers that is post-processing, which costs
nothing. In double precision a result crosses over to a neighbouring multiple if it is within 2⁻⁵² of
itself of the border, which changes no probability by more than about 2⁻³⁵ of itself while the scale is
not below the secret. The rounding adds less than 10⁻⁸ of it to the noise's variance.

A learner's record (`policies/released.py`) shows what was made of noisy sums, rounded likewise. A sum
may be many times its noise: at R times, a border moves by at most R·2⁻⁵² of the noise's scale, which
changes no probability by more than R·2⁻³⁸ of itself for each number shown: 4·10⁻⁶ for a million.
"""

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

# Adding and taking away 1.5·2⁵² leaves the nearest whole number.
_SHIFT = 1.5 * 2.0**52


def rounding_step(scale: float) -> float:
    """The power of two to round noise of this scale to; 0 for no noise, which is not rounded.

    >>> rounding_step(1.0), rounding_step(0.0)
    (0.000244140625, 0.0)
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 13) if scale > 0.0 else 0.0


@register_jitable(forceinline=True)
def rounded(value: float, step: float) -> float:
    """The nearest multiple of the step; the value itself where that is 0."""
    shift = _SHIFT * step
    return (value + shift) - shift


def rounded_to(values: Any, scales: Any) -> NDArray[np.float64]:
    """Every value to the nearest multiple of the step of its own scale; as it is where that is 0.

    >>> rounded_to(np.array([0.1, 0.1]), np.array([1.0, 0.0])).tolist()
    [0.10009765625, 0.1]
    """
    noisy = np.isfinite(scales) & (scales > 0.0)
    steps = np.ldexp(1.0, np.frexp(np.where(noisy, scales, 1.0))[1] - 13)
    return np.asarray(np.where(noisy, np.rint(np.divide(values, steps)) * steps, values))
