"""What the writer is asked to do, and what it answers."""

from typing import Any, NamedTuple

from dpbandits.service.desk import Desk, Opened
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.terms import Terms


class Decide(NamedTuple):
    """Decide for somebody."""

    experiment: int
    key: bytes
    token: bytes
    offered: Any
    context: Any


class Decided(NamedTuple):
    """What was decided, and whether it was before."""

    opened: Opened
    repeated: bool


class Reward(NamedTuple):
    """Note what somebody did."""

    experiment: int
    number: int
    value: Any


class Message(NamedTuple):
    """Learn from a message of the local model."""

    experiment: int
    message: bytes


class Open(NamedTuple):
    """Begin an experiment; its desk where it was made ready before."""

    terms: Terms
    follows: str | None = None
    desk: Desk | LocalDesk | None = None


class Stop(NamedTuple):
    """End an experiment."""

    name: str


class Change(NamedTuple):
    """Let an action come or go."""

    name: str
    act: str
    label: str


Asked = Decide | Reward | Message  # by callers, many in one transaction
Act = Open | Stop | Change  # of the operator, each in its own
Command = Asked | Act
Answer = Any  # or a Refusal
