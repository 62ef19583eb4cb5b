"""An experiment at work: a learner and its open rounds, as a machine that sees only its arguments.

Commands go in, events come out. An event has all that the command depended on (the time, the person's
token, the features as they came) and the action that was chosen. So a snapshot and the events after it
lead to the same state, bit for bit, and to the same noise: `replay` plays an event again, and refuses to
go on if it chooses another action than the one that was answered.

**Why a crash costs no privacy.** Noise is drawn from generators whose states are in the snapshot. What
was answered before the crash is in the log, and is drawn again from the same generator on the same data:
that is the same release, not a second one. What was drawn and not yet in the log was never answered,
and nobody has seen it; it is drawn again only on what is decided next. At a fold the generators are
replaced by fresh ones from the operating system, in the same transaction that replaces the snapshot.

**Public moments.** Rounds close before a decision or at a fold, by the count of decisions and by the
clock; a fold is due after a number of decisions or of seconds. Neither depends on rewards: two streams
that differ in rewards alone have the same closings and the same folds.
"""

import logging
import math
from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.compiler import noticing
from dpbandits.errors import HorizonReached, InvalidInput, ServiceError
from dpbandits.features import is_table
from dpbandits.policies import TrustedPolicy
from dpbandits.policies.learner import Learner, offered_context
from dpbandits.policies.people import People
from dpbandits.policies.released import Released
from dpbandits.policies.saving import restore
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import LinearContexts
from dpbandits.service.refusals import Refusal
from dpbandits.service.terms import Terms, actions_of, check_label

Event = Sequence[Any]
log = logging.getLogger("dpbandits.service")

_FOLD_AFTER = (
    1000  # decisions; a snapshot holds the open rounds, so as many as are open if those are more
)
_BYTES_A_DECISION = 256  # of the register of people, so that writing it costs no more than the log does


class Kind(IntEnum):
    """What an event is, by its first number."""

    DECIDE = 0
    REWARD = 1
    CHANGE = 2
    MESSAGE = 3


class Opened(NamedTuple):
    """A round that was decided and is still open, as its caller is told."""

    number: int
    action: Any  # a number, or a list of them
    expires: float | None
    counted: bool  # whether the person may still be learned from, as far as is known now


class Desk:
    """An experiment whose learner is trusted with raw data."""

    def __init__(self, terms: Terms, learner: Learner, labels: list[str], shares: list[int]) -> None:
        self.terms, self.learner, self.labels, self.shares = terms, learner, labels, shares
        self._keys: deque[bytes] = deque()  # of the open rounds, in their order
        self._known: dict[bytes, Opened] = {}
        self._decided_at_fold = learner.decided

    @classmethod
    def begin(cls, terms: Terms) -> "Desk":
        """Before the first decision; never from a seed."""
        assert isinstance(terms.policy, TrustedPolicy)
        learner = terms.policy.start(
            terms.problem,
            in_flight=terms.in_flight,
            patience=terms.patience,
            expected_people=terms.expected_people,
        )
        actions = getattr(terms.problem, "slots", actions_of(terms.problem)) or 0
        shares = [0] * actions if terms.shows_actions else []
        return cls(terms, learner, list(terms.labels), shares)

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> "Desk":
        """What `snapshot` gave."""
        held = msgspec.msgpack.decode(data)
        learner = restore(held["learner"])
        if learner.policy != terms.policy or learner.problem != terms.problem or learner.seeded:
            raise ServiceError(f"the snapshot of {terms.name} is of another experiment")
        desk = cls(terms, learner, held["labels"], held["shares"])
        rounds = learner.open_rounds()
        for key, counted, opened in zip(held["keys"], held["counted"], rounds, strict=True):
            desk._remember(key, desk._opened(opened, counted))
        return desk

    def snapshot(self) -> bytes:
        """All of it, with the states of its generators: raw data, to be sealed."""
        return msgspec.msgpack.encode(
            {
                "learner": self.learner.snapshot(),
                "keys": list(self._keys),
                "counted": [self._known[key].counted for key in self._keys],
                "labels": self.labels,
                "shares": self.shares,
            }
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is promised; it names the arms that came and went."""
        return self.learner.guarantee

    @property
    def noise(self) -> str:
        """How its noise is drawn."""
        return self.learner.noise

    @property
    def decided(self) -> int:
        """Decisions so far."""
        return self.learner.decided

    @property
    def closed(self) -> int:
        """Rounds closed so far. Public, for a desk closes none because a reward came."""
        return self.learner.rounds

    @property
    def state(self) -> tuple[Any, Any]:
        """What its policy holds, public and secret."""
        return self.learner._rounds.public, self.learner._rounds.secret

    @property
    def people(self) -> People | None:
        """Who was learned from, where people are told apart."""
        return self.learner._rounds.people

    @property
    def now(self) -> float:
        """The time of the last decision or closing."""
        return self.learner._rounds.now

    @property
    def retired(self) -> tuple[str, ...]:
        """The labels of the arms out of play."""
        away: dict[int, bool] = {}
        for one in self.learner.changes:
            away[one.arm] = one.act == "retire"
        return tuple(str(self.label(arm)) for arm in sorted(away) if away[arm])

    def released(self) -> Released | None:
        """What may be read of it."""
        return self.learner.released()

    def label(self, action: int) -> str | int:
        """An action as the caller knows it; arms that were added have labels too."""
        return self.labels[action] if action < len(self.labels) else action

    def is_fold_due(self) -> bool:
        """Whether so many decisions were made since the last fold that the log is to be folded."""
        people = self.people
        room = 0 if people is None else people.nbytes // _BYTES_A_DECISION
        since = self.decided - self._decided_at_fold
        return since >= max(_FOLD_AFTER, len(self._keys), room)

    def is_fold_cheap(self) -> bool:
        """Whether a snapshot, with the open rounds in it, is not much more than the log in its place."""
        return 10 * (self.decided - self._decided_at_fold) >= len(self._keys)

    def is_idle(self, now: float) -> bool:
        """Whether nothing was decided since the last fold, and nothing is open that time has closed."""
        if self.decided != self._decided_at_fold:
            return False
        oldest = self._known[self._keys[0]].expires if self._keys else None
        return oldest is None or oldest > now

    def known(self, key: bytes) -> Opened | None:
        """What was answered to this request, while its round is open."""
        return self._known.get(key)

    def is_for(self, answer: Opened, token: bytes) -> bool:
        """Whether an open round is this person's; where nobody is told apart, always."""
        return (self.learner.open_rounds()[answer.number - self.closed].person or b"") == token

    def decide(
        self, now: float, key: bytes, token: bytes, offered: Any, context: Any
    ) -> tuple[Opened, Event]:
        """Close what is due, and decide. Refused past the horizon, with nothing changed."""
        counted = not token or self.learner.has_rounds_left(token)
        try:
            opened = self.learner.open_round(context, now, token or None)
        except HorizonReached:
            raise Refusal("horizon-reached") from None
        self._forget_closed(1)
        answer = self._opened(opened, counted)
        self._remember(key, answer)
        if self.shares:
            for action in answer.action if isinstance(answer.action, list) else (answer.action,):
                self.shares[action] += 1
        return answer, (Kind.DECIDE, now, key, token, _packed(offered), answer.action)

    def reward(self, number: int, value: Any) -> Event | None:
        """Keep the reward of an open round; None if this very reward has been kept already."""
        if number >= self.decided:
            raise Refusal("ticket-from-the-future")
        place = number - self.closed
        if place < 0:
            raise Refusal(
                "closed",
                detail="The reward came too late and is dropped: there is nothing to do. If that is "
                "frequent, declare a longer `patience` or a larger `in_flight` next time.",
            )
        opened, problem = self.learner.open_rounds()[place], self.terms.problem
        checked = problem.missing if value is None else problem.reward(value)
        if isinstance(opened.action, np.ndarray):
            if value is None:
                checked = np.full(opened.action.shape, math.nan)
            elif np.shape(checked) != opened.action.shape:
                raise Refusal("invalid-reward")
        if opened.answered:
            if np.array_equal(opened.reward, checked, equal_nan=True):
                return None
            raise Refusal("rewarded-differently")
        self.learner.answer_round(opened, checked)
        return (Kind.REWARD, number, value)

    def change(self, act: str, label: str) -> Event:
        """Let an arm come or go: a public act."""
        try:
            if act == "add":
                check_label(label)
                if label in self.labels or not self.labels:
                    raise InvalidInput("the label is in use, or the actions have none")
                self.learner.add()
                self.labels.append(label)
            elif act == "retire":
                self.learner.retire(self._arm(label))
            else:
                self.learner.revive(self._arm(label))
        except InvalidInput as error:
            # These sentences name the arm by its number, and do not repeat the label.
            raise Refusal("cannot-change", detail=f"{error}.") from None
        return (Kind.CHANGE, act, label)

    def expire(self, now: float) -> None:
        """Close what the clock has closed."""
        if self.terms.patience is not None:
            self.learner.expire(now)
            self._forget_closed(0)

    def fold(self, now: float) -> bytes:
        """Close what the clock has closed, take fresh generators; what to write in place of the log."""
        self.expire(now)
        self.learner.renew()
        self._decided_at_fold = self.decided
        return self.snapshot()

    def replay(self, event: Event) -> float:
        """Play an event again; its time. It must choose what was answered."""
        match event:
            case [Kind.DECIDE, now, key, token, packed, action]:
                context = _unpacked(self.terms.problem, packed)
                answer, _ = self.decide(now, key, token, None, context)
                if answer.action != action:
                    raise ServiceError(
                        f"{self.terms.name} would now answer otherwise than it did in round "
                        f"{answer.number:,}: the log was changed, or the machine computes differently"
                    )
                return float(now)
            case [Kind.REWARD, number, value]:
                self.reward(number, value)
            case [Kind.CHANGE, act, label]:
                self.change(act, label)
            case _:
                raise ServiceError(f"the log of {self.terms.name} holds an event of another version")
        return 0.0

    def warm_up(self) -> None:
        """Play a learner that is thrown away, so that the first decision need not wait for compilers."""
        if not self.terms.policy.compiles:
            return
        again, policy = Desk.begin(self.terms), self.terms.policy
        told = list[str]()

        def tell() -> None:
            if not told:
                told.append(f"compiling {policy.name()}, once on this machine …")
                log.warning(told[0])

        with noticing(tell):
            again._play_a_little()

    def _play_a_little(self) -> None:
        context, reward = self.terms.problem.testing.extreme_people(self.terms.problem)[0]
        for number in range(3):
            self.decide(float(number), bytes([number]), b"", None, context)
        for opened in list(self.learner.open_rounds()):
            self.learner.answer_round(opened, reward)
        self.learner.close()

    def _arm(self, label: str) -> int:
        if label not in self.labels:
            raise InvalidInput("no action has this label")
        return self.labels.index(label)

    def _opened(self, opened: Any, counted: bool) -> Opened:
        action = opened.action if isinstance(opened.action, int) else opened.action.tolist()
        patience = self.terms.patience
        expires = None if patience is None else opened.began + patience
        return Opened(opened.number, action, expires, counted)

    def _remember(self, key: bytes, answer: Opened) -> None:
        self._keys.append(key)
        self._known[key] = answer

    def _forget_closed(self, coming: int) -> None:
        """The keys of rounds that are no longer open; one that is about to be added is not yet here."""
        while len(self._keys) > len(self.learner.open_rounds()) - coming:
            del self._known[self._keys.popleft()]


def _packed(offered: Any) -> Any:
    """A context as it came, in exact bytes."""
    if isinstance(offered, np.ndarray):
        return [list(offered.shape), offered.tobytes()]
    return offered


def _numbers(given: list[Any]) -> NDArray[np.float64]:
    try:
        return checks.array("numbers", given)
    except InvalidInput:
        return checks.array("numbers", _with_nan(given))


def _with_nan(given: Any) -> Any:
    """JSON has no nan: null stands for a feature that is missing, and the round counts all the same.

    So it does with a number that no array holds: whether a round takes place must not depend on data.
    """
    if isinstance(given, list):
        return [_with_nan(one) for one in given]
    if type(given) is int and abs(given) >= 2**63:
        return float(given) if abs(given) < 2**1023 else math.inf
    return math.nan if given is None else given


def _unpacked(problem: Any, packed: Any) -> Any:
    """The context that was decided by."""
    if isinstance(packed, Sequence) and not isinstance(packed, bytes | str):
        shape, data = packed
        packed = np.frombuffer(data).reshape(shape).copy()
    return offered_context(problem, () if packed is None else (packed,))[0]


def read_context(problem: Any, given: Any) -> tuple[Any, Any]:
    """What a request brought, in the form that is logged, and the context made of it."""
    if given is None:
        return None, offered_context(problem, ())[0]
    offered = given
    if isinstance(problem, LinearContexts) and problem.features is not None and is_table(given):
        offered, _ = problem.read(given)  # what is logged are features, not columns
    elif isinstance(given, list):
        offered = _numbers(given)
    return offered, offered_context(problem, (offered,))[0]
