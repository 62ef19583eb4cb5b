"""Sizes that the compiler knows.

A loop over a size that is known when it is compiled is written out, which makes the algebra of small
matrices twice as fast. Compiled code knows beforehand how many dimensions an array has, not how
long they are. So a state may carry an array of d dimensions beside its vectors of d entries, in a field
called `axes`.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.state import leaves

# Beyond this, loops written out are no faster and take long to compile.
_FEW = 8


def static_size(size: int) -> NDArray[np.float64]:
    """An array whose `length` is `size`: with that many dimensions where they are few."""
    return np.zeros((1,) * size if 1 < size <= _FEW else size)


@register_jitable(forceinline=True)
def length(axes: Any) -> int:
    """The size that `static_size` was given; also that of any vector."""
    size: int = axes.ndim if axes.ndim > 1 else axes.size
    return size


def known_size(state: Any) -> int | None:
    """The size that code for this state knows, and is compiled anew for; None where it knows none."""
    axes = (value for name, value in leaves(state) if name.rpartition(".")[2] == "axes")
    return next((value.ndim for value in axes if value.ndim > 1), None)
