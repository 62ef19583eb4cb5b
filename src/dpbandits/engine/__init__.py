"""One source per algorithm: verbs of named tuples, run plain, compiled, or in one compiled loop."""

from dpbandits.engine.sizes import known_axes, length
from dpbandits.engine.state import NoSecret, bare, leaves, state_bytes, wrapped
from dpbandits.engine.streams import Chance, Noise, Streams
from dpbandits.engine.verbs import (
    asks_pause,
    check_policy_verbs,
    check_verbs,
    decide,
    is_local,
    learn,
    pause_if_due,
)

__all__ = [
    "Chance",
    "NoSecret",
    "Noise",
    "Streams",
    "asks_pause",
    "bare",
    "check_policy_verbs",
    "check_verbs",
    "decide",
    "is_local",
    "known_axes",
    "learn",
    "leaves",
    "length",
    "pause_if_due",
    "state_bytes",
    "wrapped",
]
