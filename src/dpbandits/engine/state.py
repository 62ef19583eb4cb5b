"""Looking at a state: its arrays and numbers by name, whatever named tuples they are nested in.

**Limits.** A state that is read from a file or a broadcast must be one that play can lead to: whole
numbers in it are places in arrays, which compiled code does not check, and noise is as wide as it says.
So the class of a state may have a method `limits`, which gives for its arrays either `FROM_RECIPE`
(`begin` alone makes it: whatever comes must agree) or the least and the largest value allowed, as
numbers or arrays, which may depend on the other arrays. An array that is not mentioned must be finite.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Limits = dict[str, tuple[Any, Any] | None]
FROM_RECIPE = None
MOST = 2**53  # rounds, and whatever is counted: more than there will be, and sums of them fit 64 bits
COUNT = 0, MOST
FLAG = 0, 1
NOT_NEGATIVE = 0.0, sys.float_info.max
POSITIVE = sys.float_info.min, sys.float_info.max
ANYTHING = -math.inf, math.inf
NOTHING = math.inf, -math.inf


class NoSecret(NamedTuple):
    """The secret of a policy that keeps none, as in the local model."""


def leaves(state: Any, prefix: str = "", *, sent: bool = False) -> Iterator[tuple[str, Any]]:
    """Every array and number of a state with its dotted name.

    With `sent`, leaves marked `FROM_RECIPE` are left out: everybody can make those.
    """
    limits = limits_of(state) if sent else {}
    for name, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            yield from leaves(value, f"{prefix}{name}.", sent=sent)
        elif limits.get(name, ANYTHING) is not FROM_RECIPE:
            yield f"{prefix}{name}", value


def limits_of(state: Any) -> Limits:
    """What the class of a state says about its own arrays."""
    found: Limits = state.limits() if hasattr(state, "limits") else {}
    return found


def beyond_limits(state: Any, prefix: str = "") -> Iterator[str]:
    """The names of arrays whose values play cannot have led to."""
    limits = limits_of(state)
    for name, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            yield from beyond_limits(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            allowed = limits.get(name, (-sys.float_info.max, sys.float_info.max))
            # NaN is within no limits.
            if allowed is not None and not np.all((value >= allowed[0]) & (value <= allowed[1])):
                yield f"{prefix}{name}"


def places(values: NDArray[np.int64], size: int, used: int | None = None) -> tuple[int, NDArray[Any]]:
    """The limits of places in an array of `size`, of which the first `used` (all) must be different."""
    high, seen = np.full(values.shape, size - 1), set()
    for index, value in enumerate(values[:used].tolist()):
        if value in seen:
            high[index] = -1
        seen.add(value)
    return 0, high


def exactly(value: Any) -> tuple[Any, Any]:
    """The limits of what follows from other arrays."""
    return value, value


def state_bytes(*states: Any) -> list[bytes]:
    """The same, bit for bit."""
    found: list[bytes] = []
    for state in states:
        _collect(state, found)
    return found


def _collect(state: Any, found: list[bytes]) -> None:
    # Without names, and numbers as text: replays look at hundreds of thousands of states.
    for value in state:
        if type(value) is np.ndarray:
            found.append(value.tobytes())
        elif hasattr(value, "_fields"):
            _collect(value, found)
        else:
            found.append(repr(value).encode())


def classes(state: Any) -> Iterator[type]:
    """The class of a state and of every named tuple nested in it."""
    yield type(state)
    for value in state:
        if hasattr(value, "_fields"):
            yield from classes(value)


def words(array: NDArray[Any]) -> int:
    """How many words of eight bytes it takes, of two each: from where memory is given out, as ever."""
    return -(-array.nbytes // 16) * 2


def room(state: Any) -> int:
    """Words for all arrays of a state."""
    return sum(words(value) for _, value in leaves(state) if isinstance(value, np.ndarray))


def laid_out(state: Any, memory: NDArray[np.int64]) -> Any:
    """The same state, with its arrays in this memory one after the other: a copy of it sets it back."""
    parts = []
    for value in state:
        if hasattr(value, "_fields"):
            parts.append(laid_out(value, memory))
            memory = memory[room(value) :]
        elif isinstance(value, np.ndarray):
            bytes_ = memory[: words(value)].view(np.uint8)[: value.nbytes]
            parts.append(bytes_.view(value.dtype).reshape(value.shape))
            parts[-1][...] = value
            memory = memory[words(value) :]
        else:
            parts.append(value)
    return type(state)(*parts)


def wrapped(value: Any) -> Any:
    """A value as verbs are given it: an array in a tuple, since compiled verbs return no bare ones."""
    return (value,) if isinstance(value, np.ndarray) else value


def bare(value: Any) -> Any:
    """A value as users are given it: an array that verbs had in a tuple, a plain number otherwise."""
    return value[0] if isinstance(value, tuple) else value


def arguments(context: Any) -> tuple[Any, ...]:
    """What a learner's `select` is given where the verbs see this context."""
    if context is None:
        return ()
    return context if isinstance(context, tuple) else (context,)
