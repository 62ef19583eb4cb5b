"""One source per algorithm: verbs over named tuples, run plain, compiled, or in one compiled loop."""

from dpbandits.engine.sizes import known_axes, length
from dpbandits.engine.state import NoSecret, bare, leaves, state_bytes, wrapped
from dpbandits.engine.streams import Chance, Noise, Streams
from dpbandits.engine.verbs import (
    clear,
    implementation,
    is_local,
    is_paused,
    join,
    steps_of,
    verb,
)

__all__ = [
    "Chance",
    "NoSecret",
    "Noise",
    "Streams",
    "bare",
    "clear",
    "implementation",
    "is_local",
    "is_paused",
    "join",
    "known_axes",
    "leaves",
    "length",
    "state_bytes",
    "steps_of",
    "verb",
    "wrapped",
]
