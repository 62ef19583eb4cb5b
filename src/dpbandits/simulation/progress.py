"""A progress bar with rate and time left, for anything that takes over a second.

The bar is drawn by rich, which comes with the extra `cli`; without it rounds are counted in silence.
"""

import sys
import threading
import time
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0


class RoundsBar:
    """Counts rounds from many threads; shows itself on a terminal after one second."""

    def __init__(self, total: int, label: str = "simulating", *, show: bool = True) -> None:
        self.label, self.total, self.done = label, total, 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._shown: Progress | None = None
        self._says, self._stopped = show, False
        self._wanted = show and sys.stderr.isatty() and find_spec("rich") is not None

    def advance(self, rounds: int) -> None:
        """Count rounds that were played."""
        if self._stopped:
            raise KeyboardInterrupt
        with self._lock:
            self.done += rounds
            if not self._wanted:
                return
            passed = time.monotonic() - self._began
            if self._shown is None and passed > _PATIENCE:
                self._shown = _bar(self.label, self.total)
                self._shown.start()
            if self._shown is not None:
                rate = f"{self.done / passed / 1e6:.2f} M rounds/s"
                bar = self._shown.task_ids[0]
                self._shown.update(bar, completed=self.done, description=self.label, rate=rate)

    def stop(self) -> None:
        """Whoever plays on in another thread is interrupted, which Ctrl-C alone does not do."""
        self._stopped = True

    def say(self, text: str) -> None:
        """One line above the bar; also where there is no terminal and so no bar."""
        with self._lock:
            if self._shown is not None:
                self._shown.console.print(text, highlight=False, markup=False)
            elif self._says:
                print(text, file=sys.stderr, flush=True)

    def spare(self, rounds: int) -> None:
        """Rounds that need not be played: finished earlier."""
        with self._lock:
            self.total -= rounds
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], total=self.total)

    def __enter__(self) -> "RoundsBar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()


def _bar(label: str, total: int) -> "Progress":
    """The bar, with one task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", style="progress.data.speed"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(label, total=total, rate="")
    return bar
