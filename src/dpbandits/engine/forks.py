"""Whether this process is a copy of the one in which something was made.

A learner in both would draw the same noise twice. Python tells us when it is forked; asking the
operating system which process this is would take longer than the rest of a round's bookkeeping.
"""

import os
import threading
import weakref
from typing import Any

_times = 0
_owners: "weakref.WeakSet[Any]" = weakref.WeakSet()


def times() -> int:
    """How often the process was forked on its way from the first to this one."""
    return _times


def own_lock(owner: Any) -> None:
    """Give an object a lock, `_lock`, that is free in a forked copy, whichever thread held it here.

    Otherwise the copy would wait for ever instead of refusing to work.
    """
    owner._lock = threading.RLock()
    _owners.add(owner)


def _forked() -> None:
    global _times
    _times += 1
    for owner in list(_owners):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_forked)
