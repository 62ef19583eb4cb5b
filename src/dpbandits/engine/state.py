"""Looking at a state: its arrays and numbers by name, whatever named tuples they are nested in."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class NoSecret(NamedTuple):
    """The secret of a policy that keeps none, as in the local model."""


def leaves(state: Any, prefix: str = "", *, sent: bool = False) -> Iterator[tuple[str, Any]]:
    """Every array and number of a state with its dotted name.

    With `sent` without the parts marked `from_recipe`: those need not be told, everybody can make them.
    """
    for name, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            if not (sent and getattr(value, "from_recipe", False)):
                yield from leaves(value, f"{prefix}{name}.", sent=sent)
        else:
            yield f"{prefix}{name}", value


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
