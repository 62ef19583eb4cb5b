"""What the `dpbandits` command starts: here Ctrl-C is caught while everything else is imported."""

import os
import sys
from typing import NoReturn

_STOPPED = 130


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment in one sentence."""
    try:
        from dpbandits.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        _leave()
    except SystemExit as end:
        if end.code == _STOPPED:
            _leave()
        raise


def _leave() -> NoReturn:
    """Exit at once: a thread that compiles cannot be interrupted, and Python would wait for it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_STOPPED)
