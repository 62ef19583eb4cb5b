"""What the figures of this paper share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.privacy.budgets import ApproxDP

PAPER = "Shariff & Sheffet 2018"
PRIVACY = ApproxDP(1.0, 0.1)
Array = NDArray[np.float64]


def few_ticks() -> Any:
    """At most five: long numbers would touch."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)
