"""Tickets: what names a round, so that its reward finds it however late it comes.

`Ticket.round` is the round's number with a keyed hash: no table of them is kept, and a client cannot
answer for somebody else's round.
"""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpbandits.errors import RoundError

_DIGITS = 16  # hexadecimal ones of the hash: 64 bits


class Ticket(NamedTuple):
    """A decision, and the name of its round, which may be sent through a client."""

    action: Any
    round: str


@dataclass(frozen=True)
class Tickets:
    """Those of many decisions at once: their actions as one array, the names of their rounds.

    >>> Tickets(np.array([2, 0]), ("0-a", "1-b"))[1].round
    '1-b'
    """

    actions: NDArray[Any]
    rounds: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, index: int) -> Ticket:
        action = self.actions[index]
        return Ticket(action.item() if action.ndim == 0 else action, self.rounds[index])

    def __iter__(self) -> Iterator[Ticket]:
        return (self[index] for index in range(len(self)))


def round_name(number: int, key: bytes) -> str:
    """A number with what shows that it was given out."""
    digest = hashlib.blake2b(str(number).encode(), key=key, digest_size=_DIGITS // 2)
    return f"{number}-{digest.hexdigest()}"


def round_number(name: str, key: bytes) -> int:
    """The number back, or a refusal."""
    number, _, _ = name.partition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 20):
        raise RoundError(f"no round is called {name!r:.60}")
    if not hmac.compare_digest(round_name(int(number), key).encode(), name.encode()):
        raise RoundError(f"no round is called {name!r:.60}: it was not given out by this learner")
    return int(number)
