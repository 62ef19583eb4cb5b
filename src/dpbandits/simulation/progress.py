"""A progress bar with rate and time left, for anything that takes over a second."""

import sys
import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_PATIENCE = 1.0


class _Rate(ProgressColumn):
    """Rounds per second, readable."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed or 0.0
        return Text(f"{rate / 1e6:.2f} M rounds/s", style="progress.data.speed")


class RoundsBar:
    """Counts rounds from many threads; shows itself on a terminal after one second."""

    def __init__(self, total: int, label: str = "simulating", *, show: bool = True) -> None:
        self.label, self.total, self.done = label, total, 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._shown: Progress | None = None
        self._says = show
        self._wanted = show and Console(stderr=True).is_terminal

    def advance(self, rounds: int) -> None:
        """Count rounds that were played."""
        with self._lock:
            self.done += rounds
            if not self._wanted:
                return
            if self._shown is None and time.monotonic() - self._began > _PATIENCE:
                columns = (BarColumn(), TaskProgressColumn(), _Rate(), TimeRemainingColumn())
                self._shown = Progress(
                    TextColumn("{task.description}"),
                    *columns,
                    console=Console(stderr=True),
                    transient=True,
                )
                self._shown.add_task(self.label, total=self.total)
                self._shown.start()
            if self._shown is not None:
                self._shown.update(self._shown.task_ids[0], completed=self.done, description=self.label)

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
