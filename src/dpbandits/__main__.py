"""The command `dpbandits`, which is ``python -m dpbandits`` too."""

import sys

from dpbandits.errors import MissingExtra
from dpbandits.extras import extra


def main() -> None:
    """Run the command line, or say in one sentence that it was not installed."""
    try:
        with extra("cli"):
            from dpbandits.cli.main import main as run
    except MissingExtra as error:
        sys.exit(f"error: {error}")
    run()


if __name__ == "__main__":
    main()
