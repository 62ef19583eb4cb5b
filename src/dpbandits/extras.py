"""Packages that only some users need: each comes with an extra, and is imported where it is used."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from dpbandits.errors import MissingExtra

PACKAGES = {
    "cli": "typer",
    "plot": "matplotlib",
    "tables": "polars",
    "serve": "fastapi",
    "postgres": "psycopg",
    "client": "httpx",
    "dask": "distributed",
    "river": "river",
    "gymnasium": "gymnasium",
    "mabwiser": "mabwiser",
    "sklearn": "sklearn",
    "cuda": "numba_cuda",
}


def check_installed(*names: str) -> None:
    """Refuse, before any work, what would fail after it for want of an extra."""
    for name in names:
        if find_spec(PACKAGES[name]) is None:
            raise MissingExtra(extra=name, package=PACKAGES[name])


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports within come with this extra; where they fail, one sentence says what to install.

    >>> with extra("plot"):
    ...     import no_such_package
    Traceback (most recent call last):
    dpbandits.errors.MissingExtra: this needs no_such_package: pip install 'dpbandits[plot]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(extra=name, package=error.name or name) from error
