"""What one transaction of the writer will hold: applied in memory, then written, then answered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dpbandits.errors import InvalidInput
from dpbandits.service.commands import Answer, Asked, Decide, Decided, Message, Reward
from dpbandits.service.desk import Desk, Event
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.recovery import tell_suspended
from dpbandits.service.refusals import Refusal
from dpbandits.service.running import Running

if TYPE_CHECKING:
    from dpbandits.service.writer import Writer

encode = msgspec.msgpack.Encoder().encode  # of a list of events


class Batch:
    """What one transaction will hold."""

    def __init__(self, writer: "Writer", db: Any, now: float, commands: Sequence[Asked]) -> None:
        self._writer, self._db, self._now = writer, db, now
        self._events: dict[int, list[Event]] = {}
        self._keys: dict[int, list[bytes]] = {}
        self._suspended: dict[int, Running] = {}
        self.due: Running | None = None  # what is to be folded before anything else is decided
        asked: dict[int, set[bytes]] = {}
        for one in commands:
            if isinstance(one, Decide):
                asked.setdefault(one.experiment, set()).add(one.key)
        # Those decided before; those of this batch are added as they are.
        self._spent = {
            experiment: writer.store.known_keys(db, experiment, keys)
            for experiment, keys in asked.items()
        }

    def answer(self, command: Asked) -> Answer:
        """Carry one out, in memory."""
        one = self._writer.by_id.get(command.experiment)
        try:
            if one is None:
                raise Refusal("no-such-experiment")
            one.refuse_unless_running()
            if one.id in self._suspended:
                raise Refusal("ticket-from-the-future")
            match command:
                case Decide():
                    return self._decide(one, command)
                case Reward(_, number, value):
                    return self._note(one, one.desk.reward(number, value))  # type: ignore[union-attr]
                case Message(_, message):
                    return self._receive(one, message)
        except Refusal as refusal:
            if refusal.code == "ticket-from-the-future" and one is not None and one.is_running:
                # Nobody can make up a ticket, so more was answered than this database knows.
                self._suspended[one.id] = one
            return refusal
        except InvalidInput:
            return Refusal("invalid-reward")

    def _decide(self, one: Running, command: Decide) -> Decided:
        desk = one.desk
        assert isinstance(desk, Desk)
        known = desk.known(command.key)
        if known is not None and not desk.is_for(known, command.token):
            # What was decided for somebody may tell of her: nobody else is answered it.
            raise Refusal(
                "invalid", detail="This `request` was used for another person: send a new one."
            )
        if known is not None:
            return Decided(known, True)
        spent = self._spent[one.id]
        if command.key in spent:
            raise Refusal("closed")
        opened, event = desk.decide(self._now, *command[1:])
        spent.add(command.key)
        self._keys.setdefault(one.id, []).append(command.key)
        self._note(one, event)
        if desk.is_fold_due():
            self.due = one
        return Decided(opened, False)

    def _receive(self, one: Running, message: bytes) -> bool:
        assert isinstance(one.desk, LocalDesk)
        self._note(one, one.desk.receive(message))
        if one.desk.is_fold_due():
            self.due = one
        return True

    def _note(self, one: Running, event: Event | None) -> bool:
        """Put an event into the log, unless there is nothing new; whether there was."""
        if event is not None:
            self._events.setdefault(one.id, []).append(event)
        return event is not None

    def write(self) -> list[tuple[Running, int]]:
        """Into the database; the new heads, for when it is committed."""
        store, heads = self._writer.store, []
        for experiment, events in self._events.items():
            one, keys = self._writer.by_id[experiment], self._keys.get(experiment, ())
            sealed = one.seal.close("log", one.head + 1, encode(events))
            place = one.id, one.epoch, one.head
            heads.append((one, store.extend(self._db, *place, sealed, keys, int(self._now))))
        for one in self._suspended.values():
            store.suspend(self._db, one.id, one.epoch)
        return heads

    def committed(self) -> None:
        """From now on they decide no more, in any process."""
        for one in self._suspended.values():
            one.state = "suspended"
            tell_suspended(one)
