"""The time that decisions are given: it never runs back, whatever the machine's clock does."""

import time
from collections.abc import Callable


class Clock:
    """Seconds since 1970 by the wall when it was started, by a steady clock from then on.

    After a restart it begins no earlier than the last event. A wall clock that was set back makes rounds
    last longer, one that was set forward closes them early: both cost use, not privacy.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def not_before(self, moment: float) -> None:
        """Begin at this moment or later."""
        self._offset = max(self._offset, moment - self._steady())

    def now(self) -> float:
        """The time, to the millisecond."""
        return round(self._offset + self._steady(), 3)
