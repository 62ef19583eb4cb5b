"""An experiment of the local model at work: people randomise their own answers, and messages come in.

All that is here is made of messages that are private by themselves, so nothing needs to be sealed for
their sake; it is sealed like everything else because that is simpler. Replaying a message draws nothing
that protects anybody.
"""

from typing import Any

import msgspec

from dpbandits.errors import HorizonReached, InvalidInput, RoundError, ServiceError
from dpbandits.policies import LocalPolicy
from dpbandits.policies.local import Server
from dpbandits.policies.released import Released
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.service.desk import Event, Kind
from dpbandits.service.refusals import Refusal
from dpbandits.service.terms import Terms

_FOLD_AFTER = 1000  # messages


class LocalDesk:
    """A `Server` of a local policy, with what makes it durable."""

    retired: tuple[str, ...] = ()
    people = None
    now = 0.0

    def __init__(self, terms: Terms, server: Server) -> None:
        self.terms, self.server = terms, server
        self.labels, self.shares = list(terms.labels), list[int]()
        self._received_at_fold = server.rounds

    @classmethod
    def begin(cls, terms: Terms) -> "LocalDesk":
        """Before the first message."""
        assert isinstance(terms.policy, LocalPolicy)
        return cls(terms, terms.policy.start(terms.problem))

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> "LocalDesk":
        """What `snapshot` gave."""
        assert isinstance(terms.policy, LocalPolicy)
        return cls(terms, terms.policy.restore(terms.problem, msgspec.msgpack.decode(data)["server"]))

    def snapshot(self) -> bytes:
        """All of it."""
        return msgspec.msgpack.encode({"server": self.server.snapshot()})

    @property
    def guarantee(self) -> Guarantee:
        """What every person is promised."""
        return self.server.guarantee

    @property
    def noise(self) -> str:
        """How each person draws hers."""
        return "float" if self.terms.policy.refuses_exact_noise(self.terms.problem) else "exact"

    @property
    def state(self) -> tuple[Any, Any]:
        """What its policy holds: all of it is made of messages."""
        return self.server._public, self.server._secret

    @property
    def decided(self) -> int:
        """Messages so far: how many decisions people made on their own, nobody knows."""
        return self.server.rounds

    @property
    def closed(self) -> int:
        """Likewise."""
        return self.server.rounds

    def is_fold_cheap(self) -> bool:
        """Always: nothing is open."""
        return True

    def is_idle(self, now: float) -> bool:
        """Whether nothing came since the last fold."""
        return self.decided == self._received_at_fold

    def is_fold_due(self) -> bool:
        """Whether so many messages came since the last fold that the log is to be folded."""
        return self.decided - self._received_at_fold >= _FOLD_AFTER

    def released(self) -> Released | None:
        """What may be read of it."""
        return self.server.released()

    def label(self, action: int) -> str | int:
        """An action as the caller knows it."""
        return self.terms.label(action)

    def broadcast(self) -> bytes:
        """What a person needs to decide."""
        try:
            return self.server.broadcast()
        except HorizonReached:
            raise Refusal("horizon-reached") from None

    def receive(self, message: bytes) -> Event:
        """Learn from a message; it counts once."""
        try:
            self.server.receive(message)
        except HorizonReached:
            raise Refusal("horizon-reached") from None
        except InvalidInput:
            raise Refusal("invalid") from None
        except RoundError:
            raise Refusal("closed") from None
        return (Kind.MESSAGE, message)

    def expire(self, now: float) -> None:
        """Nothing here waits for a clock."""

    def fold(self, now: float) -> bytes:
        """What to write in place of the log."""
        self._received_at_fold = self.decided
        return self.snapshot()

    def replay(self, event: Event) -> float:
        """Take a message again."""
        match event:
            case [Kind.MESSAGE, message]:
                self.server.receive(message)
            case _:
                raise ServiceError(f"the log of {self.terms.name} holds an event of another version")
        return 0.0

    def warm_up(self) -> None:
        """Nothing is compiled on the server's side."""
