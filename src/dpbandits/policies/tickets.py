"""Tickets: what names a round, so that its reward finds it however late it comes.

`Ticket.round` is the round's number with a keyed hash: no table of them is kept, and a client cannot
answer for somebody else's round.
"""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import RoundError

_DIGITS = 16  # hexadecimal ones of the hash: 64 bits


class Ticket(NamedTuple):
    """A decision, and the name of its round, which may be sent through a client."""

    action: Any
    round: str


@dataclass(frozen=True, repr=False)
class Tickets:
    """Those of many decisions at once: their actions as one array, the names of their rounds.

    >>> import numpy as np
    >>> sent = Tickets(np.array([2, 0, 1]), ("0-a", "1-b", "2-c"))
    >>> sent[1].round, sent[sent.actions > 0].rounds
    ('1-b', ('0-a', '2-c'))
    """

    actions: NDArray[Any]
    rounds: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        return f"<Tickets of {len(self):,} decisions>"

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Ticket: ...

    @overload
    def __getitem__(self, index: slice | Sequence[Any] | NDArray[Any]) -> "Tickets": ...

    def __getitem__(self, index: Any) -> "Ticket | Tickets":
        """One ticket; or those of a slice, of a mask or of a list of places."""
        if isinstance(index, int | np.integer):
            action = self.actions[index]
            return Ticket(action.item() if action.ndim == 0 else action, self.rounds[index])
        places = np.arange(len(self))[index]
        return Tickets(self.actions[places], tuple(self.rounds[place] for place in places))

    def __iter__(self) -> Iterator[Ticket]:
        return (self[index] for index in range(len(self)))


def round_name(number: int, key: bytes) -> str:
    """A number with what shows that it was given out."""
    digest = hashlib.blake2b(str(number).encode(), key=key, digest_size=_DIGITS // 2)
    return f"{number}-{digest.hexdigest()}"


def round_number(name: str, key: bytes) -> int:
    """The number back, or a refusal."""
    number, _, _ = name.partition("-")
    if not (name.isascii() and number.isdigit() and len(number) < 20):
        raise RoundError(f"no round is called {name!r:.60}")
    if not hmac.compare_digest(round_name(int(number), key).encode(), name.encode()):
        raise RoundError(f"no round is called {name!r:.60}: it was not given out by this learner")
    return int(number)
