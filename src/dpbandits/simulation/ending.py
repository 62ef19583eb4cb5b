"""What a scheduler's SIGTERM does to work that takes long: it ends, and what is finished is kept."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import NoReturn

STATUS = 128 + signal.SIGTERM  # as shells report it


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within, SIGTERM raises SystemExit, which ends the process with status 143 unless it is caught.

    Only in the main thread, where Python runs handlers, and where the application has none of its own.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(*_: object) -> NoReturn:
    raise SystemExit(STATUS)
