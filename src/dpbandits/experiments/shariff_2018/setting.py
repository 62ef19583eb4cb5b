"""What the figures of this paper share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.privacy.budgets import ApproxDP

PAPER = "Shariff & Sheffet 2018"
PRIVACY = ApproxDP(1.0, 0.1)
Array = NDArray[np.float64]
# What the text leaves open, as it is read here.
READINGS = (
    "Our readings: features and rewards of private policies are rounded towards zero to multiples of "
    "2⁻¹³ before they enter a sum, so that sums are exact; β of the private variants has ln(2/α), as "
    "Proposition 4, and that of LinUCB without privacy ln(1/α): no share of α is needed for noise there."
)


def few_ticks() -> Any:
    """At most five: long numbers would touch."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)
