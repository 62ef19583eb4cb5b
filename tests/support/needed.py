"""Programs that some tests need and that pip does not install."""

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test that asked for it, or fail where everything must run."""
    text = f"{what} is not installed; `make system-packages` installs it on Debian"
    if os.environ.get("DPBANDITS_REQUIRE_SERVICES") == "1":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
