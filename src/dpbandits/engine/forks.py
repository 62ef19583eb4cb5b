"""Whether this process is a copy of the one in which something was made.

A learner in both would draw the same noise twice. Python tells us when it is forked; asking the
operating system which process this is would take longer than the rest of a round's bookkeeping.
"""

import os

_times = 0


def times() -> int:
    """How often the process was forked on its way from the first to this one."""
    return _times


def _count() -> None:
    global _times
    _times += 1


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_count)
