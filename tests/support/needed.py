"""Programs that some tests need and that pip does not install."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def program(name: str) -> str:
    """Where it is; of Python's own programs, the one beside the interpreter."""
    beside = Path(sys.executable).parent / name
    return shutil.which(beside) or shutil.which(name) or missing(name)


def missing(what: str) -> NoReturn:
    """Skip the test that asked for it, or fail where everything must run."""
    text = f"{what} is not installed; `make system-packages` and `make test` install what is needed"
    if os.environ.get("DPBANDITS_REQUIRE_SERVICES") == "1":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
