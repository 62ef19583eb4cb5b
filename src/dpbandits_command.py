"""What the `dpbandits` command starts: here Ctrl-C is caught while everything else is imported."""

import _thread
import os
import sys
import threading
from typing import Any, NoReturn

_STOPPED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment in one sentence."""
    sys.unraisablehook = _interrupt_again
    try:
        from dpbandits.errors import MissingExtra
        from dpbandits.extras import extra

        try:
            with extra("cli"):
                from dpbandits.cli.main import main as run
        except MissingExtra as error:
            sys.exit(f"error: {error}")
        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        _leave()
    except SystemExit as end:
        if end.code == _STOPPED:
            _leave()
        raise


def _interrupt_again(ignored: Any) -> None:
    """A Ctrl-C that fell into a destructor, where Python drops it; compilation has many of them."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        # From elsewhere and a moment later: raised in here, it would be dropped as well.
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(ignored)


def _leave() -> NoReturn:
    """Exit at once: a thread that compiles cannot be interrupted, and Python would wait for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_STOPPED)
