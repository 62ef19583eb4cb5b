"""What all tests share: one profile for Hypothesis, one precision for reference values, real servers."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import mpmath
import pytest
from hypothesis import settings
from needed import missing

if TYPE_CHECKING:  # slow to import; most tests need neither
    from playwright.sync_api import Browser
    from postgres import Postgres

# Long enough for a busy machine, short enough to notice what has become slow. Tests whose first call
# compiles say `deadline=None` themselves.
settings.register_profile("dpbandits", deadline=timedelta(seconds=2), print_blob=True)
settings.load_profile("dpbandits")

mpmath.mp.dps = 60


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Postgres]":
    """A running PostgreSQL; every test takes a `new_database()`, and may restart or kill the server."""
    from postgres import Postgres, find_postgres

    programs = find_postgres()
    if programs is None:
        missing("PostgreSQL")
    cluster = Postgres(programs)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium. Not for a whole session: while Playwright runs, its thread cannot run `asyncio.run`."""
    from browser import find_chromium, launched

    program = find_chromium()
    if program is None:
        missing("Chromium")
    with launched(program) as found:
        yield found
