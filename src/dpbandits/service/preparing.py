"""Experiments are made ready in a thread of their own: a large one takes its time, and nobody else's."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from dpbandits.errors import DPBanditsError
from dpbandits.service.refusals import Refusal
from dpbandits.service.running import AnyDesk, begin_desk
from dpbandits.service.terms import FIELDS, InvalidTerms, Terms

Declared = tuple[str | None, Mapping[str, Any]]  # the one that it follows, and its terms as sent
_WAIT = 10.0  # seconds that whoever begins one is kept waiting


class Prepared(NamedTuple):
    """An experiment before its first decision, compiled."""

    terms: Terms
    desk: AnyDesk


class Preparation:
    """Makes one experiment ready at a time; used from one event loop."""

    def __init__(self) -> None:
        self._declared: Declared = None, {}
        self._ready: asyncio.Future[Prepared | Exception] | None = None

    async def of(self, declared: Declared, read: Callable[[], Terms]) -> Prepared:
        """What is declared, ready to be opened. Where it takes long, one asks again with the same."""
        ready = self._ready
        if ready is None or (ready.done() and declared != self._declared):
            self._declared, ready = declared, self._begin(read)
            self._ready = ready
        elif declared != self._declared:
            raise Refusal("busy", detail="Another experiment is being made ready.", retry_after=5)
        await asyncio.wait([ready], timeout=_WAIT)
        if not ready.done():
            raise Refusal(
                "busy", detail="It is being made ready: repeat with the same terms.", retry_after=5
            )
        if self._ready is ready:
            self._ready = None
        found = ready.result()
        if isinstance(found, Exception):
            raise found
        return found

    def _begin(self, read: Callable[[], Terms]) -> "asyncio.Future[Prepared | Exception]":
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def work() -> None:
            found: Prepared | Exception
            try:
                found = prepared(read)
            except Exception as error:
                found = error
            with suppress(RuntimeError):  # the service has stopped in the meantime
                loop.call_soon_threadsafe(ready.set_result, found)

        # Not of a pool: it would be waited for when the service stops.
        threading.Thread(target=work, name="preparing", daemon=True).start()
        return ready


def prepared(read: Callable[[], Terms]) -> Prepared:
    """Read the terms, begin the experiment and compile it; refused without repeating what was sent."""
    try:
        terms = read()
        desk = begin_desk(terms)
    except InvalidTerms as error:
        known = f"An experiment has no such term; there are {', '.join(FIELDS)}."
        detail = f"The term `{error.field}` cannot be used." if error.field else known
        raise Refusal("invalid", detail=detail) from None
    except DPBanditsError:
        raise Refusal("invalid", detail="An experiment cannot begin with these terms.") from None
    desk.warm_up()
    return Prepared(terms, desk)
