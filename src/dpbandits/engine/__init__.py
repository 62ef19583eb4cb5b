"""One source per algorithm: verbs over named tuples, run plain, compiled, or in one compiled loop."""

from dpbandits.engine.state import leaves, state_bytes
from dpbandits.engine.streams import Chance, Noise, Streams
from dpbandits.engine.verbs import implementation, is_paused, verb

__all__ = ["Chance", "Noise", "Streams", "implementation", "is_paused", "leaves", "state_bytes", "verb"]
