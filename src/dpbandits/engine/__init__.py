"""One source per algorithm: verbs of named tuples, run plain, compiled, or in one compiled loop."""

from dpbandits.engine.flight import wait
from dpbandits.engine.sizes import length, static_size
from dpbandits.engine.state import (
    NoSecret,
    arguments,
    bare,
    beyond_limits,
    leaves,
    state_bytes,
    wrapped,
)
from dpbandits.engine.streams import Chance, Noise, Streams
from dpbandits.engine.verbs import (
    asks_pause,
    check_policy_verbs,
    check_verbs,
    has_pauses,
    is_local,
    knows_ahead,
    pause_if_due,
    pays_many,
    steps_of,
)

__all__ = [
    "Chance",
    "NoSecret",
    "Noise",
    "Streams",
    "arguments",
    "asks_pause",
    "bare",
    "beyond_limits",
    "check_policy_verbs",
    "check_verbs",
    "has_pauses",
    "is_local",
    "knows_ahead",
    "leaves",
    "length",
    "pause_if_due",
    "pays_many",
    "state_bytes",
    "static_size",
    "steps_of",
    "wait",
    "wrapped",
]
