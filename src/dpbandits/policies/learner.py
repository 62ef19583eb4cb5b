"""A policy at work: it decides for people, and learns from what each of them did."""

import hashlib
import math
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Streams, forks
from dpbandits.engine.streams import Seed
from dpbandits.errors import (
    HorizonReached,
    InvalidInput,
    LooseBound,
    PrivacyError,
    RoundError,
    ShortenedFeatures,
    TooLate,
    UnusableFeatures,
)
from dpbandits.features.maps import SHARE_OF_SHORT, are_many, warn_of_loose, warn_of_shortened
from dpbandits.mechanisms.exact import ExactNoise
from dpbandits.policies.changes import Change, arms_known, change
from dpbandits.policies.people import People, refuse_mixed
from dpbandits.policies.released import Reading, Released
from dpbandits.policies.rounds import Past, Round, Rounds
from dpbandits.policies.tickets import Ticket, Tickets, round_name, round_number
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import Problem
from dpbandits.problems.arms import COMING_AND_GOING
from dpbandits.problems.history import History
from dpbandits.problems.problem import FarWithin, Shortened, UnusableContext

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy


class Learner:
    """Decides for people and learns from what each of them did.

    `decide` opens a round and gives a ticket; `update(ticket, reward)` or `skip(ticket)` answers it, in
    any order, until the round is closed: at the start of a later decision, when `in_flight` rounds are
    open or by a clock (`rounds.py`). Every round counts, with or without a reward. With one round in
    flight `select` and `update(action, reward)` do without tickets. Only what `released`
    tells is safe to publish, and the actions, unless people bring features: then each is for her alone.
    Nothing else here is, nor is it printed. It may be used from several threads.
    """

    _lock: AbstractContextManager[bool]

    def __init__(
        self,
        policy: "Policy",
        problem: Problem,
        public: Any,
        secret: Any,
        streams: Streams,
        *,
        seeded: bool,
        compiled: bool = False,
        in_flight: int = 1,
        patience: float | None = None,
        key: bytes | None = None,
        people: People | None = None,
        expected_people: int = 1_000_000,
        exact: bool = False,
    ) -> None:
        checks.integer(least=1, limit=checks.MOST_IN_FLIGHT, in_flight=in_flight)
        checks.one_of((True, False), compiled=compiled)
        if patience is not None:
            checks.scale(patience=patience)
            if in_flight == 1:
                raise InvalidInput(
                    "patience is for several rounds in flight: say how many at most, in_flight=10_000"
                )
        self.policy, self.problem = policy, problem
        self._guarantee = policy.guarantee(problem)
        self._changes: list[Change] = []
        self._seeded, self._exact = seeded, exact
        # The key of tickets; nothing else draws from this stream here.
        self._key = streams.chance.bytes(16) if key is None else key
        if people is None and problem.rounds_per_person is not None:
            people = self._register(problem.rounds_per_person, expected=expected_people)
        options: dict[str, Any] = {"in_flight": in_flight, "patience": patience, "compiled": compiled}
        self._rounds = Rounds(policy, problem, public, secret, people=people, **options)
        self.use(streams)
        self._stopped = ""  # the call that is under way, or was cut short changing the state
        self._changing = False  # whether it has begun to change it
        self._ended = ""  # why it has
        self._rests_on_caller = False  # see `rest_on`
        # Decisions by shortened features, and by ones far within their bound; None once that was said.
        self._shortened: int | None = 0
        self._short: int | None = 0 if self._guarantee.is_private else None  # without noise, no matter
        self._asks_who = problem.rounds_per_person is not None
        # Held again by a signal handler of the same thread, which `_stopped` then sends away.
        forks.own_lock(self)
        self._forks = forks.times()
        self._last = self._guarantee.horizon if self._guarantee.is_private else None

    @classmethod
    def begin(
        cls,
        policy: "Policy",
        problem: Problem,
        *,
        seed: Seed,
        history: History | None = None,
        public_history: History | None = None,
        **options: Any,
    ) -> "Learner":
        """A learner before its first round; `policy.start` is the way to one, with its checks."""
        policy.check(problem)
        streams, seeded = Streams.of(seed), seed is not None
        learner = cls(policy, problem, *policy.begin(problem), streams, seeded=seeded, **options)
        learner.learn_past(history, public_history)
        return learner

    def __repr__(self) -> str:
        noise = f"{self.noise} noise{' from a seed' if self._seeded else ''}"
        rows = self.past.history
        rounds = f"{self.rounds - rows} rounds" + (f" after {rows:,} of a history" if rows else "")
        return f"<Learner {self.policy!r} on {self.problem!r}, {rounds}, {noise}>"

    def __copy__(self) -> NoReturn:
        raise PrivacyError(
            "a learner cannot be copied: both copies would use the same noise; use save()"
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__copy__()

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, in one sentence; it names what was made public on the way."""
        if not (self._changes or any(self.past)):
            return self._guarantee
        facts = list(self._guarantee.public)
        if self._changes:
            times = f"{len(self._changes)} change{'s'[: len(self._changes) != 1]}"
            facts = [fact for fact in facts if fact != COMING_AND_GOING]
            facts.append(f"{COMING_AND_GOING} ({times})")
        return replace(
            self._guarantee,
            public=(*facts, *self.past.facts()),
            unprotected=tuple(self.past.unprotected()),
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        """The arms that came and went, each with the number of decisions made before."""
        return tuple(self._changes)

    @property
    def past(self) -> Past:
        """How many rows of earlier logs it was started from."""
        return self._rounds.past

    @property
    def rounds(self) -> int:
        """Rounds closed so far."""
        return self._rounds.closed

    @property
    def decided(self) -> int:
        """Decisions made so far; those that are no closed rounds are in flight."""
        return self._rounds.decided

    @property
    def seeded(self) -> bool:
        """Whether it draws from a seed, which whoever knows it can undo."""
        return self._seeded

    @property
    def noise(self) -> str:
        """How noise is drawn: "exact", from whole numbers on a grid, or "float"."""
        return "exact" if self._exact else "float"

    @property
    def in_flight(self) -> int:
        """How many rounds may be open at once."""
        return self._rounds.in_flight

    @property
    def _public(self) -> Any:
        return self._rounds.public

    @property
    def _secret(self) -> Any:
        return self._rounds.secret

    @property
    def spent(self) -> Budget | None:
        """What the decisions so far have cost the person they cost most; None for nothing at all.

        The whole budget where the policy cannot say less (`Policy.spent`).
        """
        return self._spent(self.policy.released(self.problem, self._public))

    def released(self) -> Released | None:
        """What may be read: estimates with intervals, who leads and how sure that is, what was spent.

        A table in print, JSON by `to_dict`. Made of released values only, so the guarantee covers it.
        None where the policy releases nothing but decisions (its own `released` says why), as a Thompson
        sampler that draws from raw sums.

        >>> import dpbandits as dpb
        >>> learner = dpb.LazyThompson(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3))
        >>> learner.released().mean
        array([nan, nan, nan])
        """
        with self._lock, self._call("released"):
            reading = self.policy.released(self.problem, self._public)
            if reading is None:
                return None
            if reading.what == "arm":
                reading = reading.first(arms_known(self))
            # Not `self.rounds`: one at a time, that tells whether the last person has answered.
            closed = self._rounds.closed_then
            spent, rows = self._spent(reading), self.past.public_history
            return Released.of(reading, self.guarantee, closed, self.decided, spent, rows)

    def _spent(self, reading: Reading | None) -> Budget | None:
        least = self.policy.spent_by_person(self.problem, self._public)
        unknown = least is None and not self.policy.says_what_is_spent() and self._guarantee.is_private
        anything = self.decided > 0 if reading is None else bool(np.isfinite(reading.mean).any())
        anything = anything and self._rounds.closed_then > 0  # or it was public
        return self._guarantee.budget if unknown and anything else least

    def decide(self, *offered: Any, person: Any = None, now: float | None = None) -> Ticket:
        """Choose an action for the next person; `offered` is her context, where there is one.

        `person` tells people apart who may return: a text, bytes or a whole number. Every decision is
        for somebody, but learned from are only so many rounds of one person as the problem declares
        (`rounds_per_person`), or one where it declares nothing. With `patience` every decision is told
        the time: `now`, in seconds of any public clock; an earlier one counts as the last.
        """
        context, notice = offered_context(self.problem, offered)
        moment = self._moment(now)
        with self._lock, self._call("decide"):
            self._refuse_past_the_horizon(1)
            opened = self._decide(context, moment, self._token(person))
        if notice is not None:
            self._warn([notice])
        action = opened.action if type(opened.action) is int else opened.action.copy()
        return Ticket(action, round_name(opened.number, self._key))

    def decide_many(
        self,
        contexts: Any,
        *,
        persons: Sequence[Any] | None = None,
        now: float | None = None,
    ) -> Tickets:
        """As many calls of `decide` as there are contexts; where there are none, say how many.

        Where the problem has a feature map, a frame with a row for each person will do.

        >>> import dpbandits as dpb
        >>> learner = dpb.LazyThompson(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3), in_flight=100)
        >>> learner.decide_many(100).actions.shape
        (100,)
        """
        moment = self._moment(now)
        given: list[tuple[Any, type[Warning] | None]]
        if isinstance(contexts, int | np.integer):
            checks.integer(least=1, limit=checks.MOST_IN_FLIGHT, contexts=contexts)
            given = [(self.problem.context(), None)] * int(contexts)
        else:
            brought = self.problem.each(contexts)
            given = [offered_context(self.problem, (one,)) for one in brought]
        named = [None] * len(given) if persons is None else checks.sequence("persons", persons)
        if len(named) != len(given):
            raise InvalidInput(f"expected {len(given)} persons, one for each decision, got {len(named)}")
        if len(given) > self._rounds.in_flight:
            raise InvalidInput(
                f"{len(given):,} decisions at once would close rounds of their own before any answer: "
                f"start with in_flight={len(given)} or more, not {self._rounds.in_flight}"
            )
        with self._lock, self._call("decide_many"):
            self._refuse_past_the_horizon(len(given))
            tokens = [self._token(person) for person in named]
            pairs = zip(given, tokens, strict=True)
            opened = [self._decide(context, moment, token) for (context, _), token in pairs]
        self._warn([notice for _, notice in given])
        names = tuple(round_name(one.number, self._key) for one in opened)
        return Tickets(_stacked([one.action for one in opened]), names)

    def select(self, *offered: Any, person: Any = None) -> Any:
        """What `decide` chooses, where one round is in flight: the next call is `update` or `skip`."""
        context, notice = offered_context(self.problem, offered)
        rounds = self._rounds
        with self._lock:
            if self._stopped or self._forks != forks.times():
                self._refuse_if_unfit()
            self._stopped = "select"
            try:
                if not rounds.closes_at_once:
                    self._refuse_without_tickets()
                if rounds.open:
                    raise RoundError(
                        "a round is open: update() or skip() it before the next select(), or start with "
                        "in_flight=… and use decide()"
                    )
                if self._last is not None:
                    self._refuse_past_the_horizon(1)
                token = None if person is None and not self._asks_who else self._token(person)
            except BaseException:
                self._stopped = ""  # nothing is changed yet
                raise
            action = rounds.decide(context, self._noise, self._explore, 0.0, token).action
            self._stopped = ""
        if notice is not None:
            self._warn([notice])
        return action if type(action) is int else action.copy()

    def update(self, ticket: Any, reward: Any) -> None:
        """Answer a round with the reward of its action. The first answer counts.

        `ticket` is that of `decide` or its name; where one round is in flight, the action will do.
        """
        rounds = self._rounds
        with self._lock:
            if self._stopped or self._forks != forks.times():
                self._refuse_if_unfit()
            self._stopped = "update"
            try:
                if rounds.closes_at_once and rounds.open and rounds.open[0].action is ticket:
                    opened = rounds.open[0]
                else:
                    opened = self._find(ticket)
                value = self.problem.reward(reward)
                if type(opened.action) is not int:
                    _check_size(opened, value)
            except BaseException:
                self._stopped = ""  # nothing is changed yet
                raise
            rounds.answer(opened, value, self._noise)
            self._stopped = ""

    def update_many(
        self, tickets: Tickets | Sequence[Any], rewards: Sequence[Any] | NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Answer many rounds; tells which of them were not too late. Nothing changes if one is wrong."""
        names = tickets.rounds if isinstance(tickets, Tickets) else checks.sequence("tickets", tickets)
        rewards = checks.sequence("rewards", rewards)
        if len(names) != len(rewards):
            raise InvalidInput(f"expected {len(names)} rewards, one for each ticket, got {len(rewards)}")
        with self._lock, self._call("update_many"):
            given: dict[int, tuple[Round, Any]] = {}
            in_time = np.zeros(len(names), np.bool_)
            for index, (name, reward) in enumerate(zip(names, rewards, strict=True)):
                try:
                    opened = self._find(name)
                except TooLate:
                    continue
                if opened.number in given:
                    raise RoundError(f"round {opened.number} is answered twice: the first reward counts")
                try:
                    given[opened.number] = opened, self.problem.reward(reward)
                    _check_size(*given[opened.number])
                except InvalidInput as error:
                    raise InvalidInput(
                        f"of round {opened.number}, number {index} here: {error}"
                    ) from None
                in_time[index] = True
            self._changing = True
            for opened, value in given.values():
                self._rounds.answer(opened, value, self._noise)
        return in_time

    def skip(self, ticket: Any = None) -> None:
        """Answer a round without a usable reward; where one round is in flight, that one.

        That is *unknown*, not *no*: it counts as ½ for arms and items, and as nothing where people bring
        features. No click is an answer: `update(ticket, 0.0)`.
        """
        with self._lock, self._call("skip"):
            opened = self._find(ticket)
            self._changing = True
            self._rounds.answer(opened, self.problem.missing, self._noise)

    def close(self) -> None:
        """Close all rounds in flight, answered or not, and release what is due: for the end of a test.

        Batches that are not full stay open, so not all rounds need be behind what `released` tells. When
        it is called must not depend on what was answered: at a time fixed beforehand, say. It releases
        like a decision, and counts as one where the guarantee ends at a horizon.
        """
        with self._lock, self._call("close"):
            self._refuse_past_the_horizon(1)
            self._changing = True
            self._rounds.close_all(self._noise)

    def expire(self, now: float) -> None:
        """Close the rounds that have been open for `patience` by this time, and release nothing yet.

        For a public clock where decisions may be rare: raw data of rounds that are over need not wait
        for the next one.
        """
        moment = self._moment(now)
        with self._lock, self._call("expire"):
            self._changing = True
            self._rounds.expire(moment, self._noise)

    def retire(self, arm: int) -> None:
        """Play an arm no more, from the next decision on. Its rounds in flight are still learned from.

        Which arms are in play is public: retire one for reasons that are, such as a released mean or an
        empty shelf, never for what you saw in raw rewards.
        """
        self._change("retire", arm)

    def revive(self, arm: int) -> None:
        """Play a retired arm again; what was learned about it is kept."""
        self._change("revive", arm)

    def add(self) -> int:
        """Put one more arm into play; its number. Room for it was declared: `Arms(5, capacity=20)`.

        >>> import dpbandits as dpb
        >>> learner = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)).start(dpb.Arms(2, capacity=3))
        >>> learner.add()
        2
        """
        return self._change("add", None)

    def save(self, path: str | Path) -> Path:
        """Write all that is needed to resume to a file only its owner may read, and end this learner.

        Rounds in flight are kept, and their tickets stay good. The file holds **raw, unprotected data**,
        and may be resumed once: ``dpbandits.load(path)``. If this object continued as well, data about
        the same people would be released twice. It forgets its generators and all raw data.

        What is learned after `load` is lost if the process dies before the next `save`: save often.
        """
        from dpbandits.policies.saving import save

        with self._lock:
            self._refuse_if_unfit()
            if self._rests_on_caller:
                raise PrivacyError(
                    "a learner that replays a log is not saved: loaded, it would no longer say what its "
                    "guarantee rests on"
                )
            self._stopped = "save"  # cut short, the file may be in place: only one may continue
            try:
                written = save(self, path)
            except Exception:
                self._stopped = ""  # nothing was put in place
                raise
            self._ended = f"it was saved; resume it with dpbandits.load({str(written)!r})"
            del self._streams, self._noise, self._explore  # what is to come follows from them
            self._rounds.forget()
        return written

    def snapshot(self) -> bytes:
        """All of this learner, its generators too, as bytes that `saving.restore` reads. Not for users.

        It does not end the learner: for a service that plays the same calls back after a crash, so that
        noise is never drawn twice on other data. It holds raw data, and all noise to come.
        """
        from dpbandits.policies.saving import snapshot

        with self._lock, self._call("snapshot"):
            return snapshot(self)

    def open_round(self, context: Any, now: float, token: bytes | None) -> Round:
        """`decide`, for a service that has checked the context and hashed the person. Not for users."""
        with self._lock, self._call("decide"):
            self._refuse_past_the_horizon(1)
            return self._decide(context, now, token)

    def select_again(self, *offered: Any) -> Any:
        """`select` for somebody else in the place of the open round. Not for users: a replay by
        rejection (`offline/replay.py`) asks again for every row that does not match.
        """
        context, notice = offered_context(self.problem, offered)
        with self._lock, self._call("select"):
            if not self._rounds.closes_at_once or self._asks_who or not self._rounds.open:
                raise RoundError("select_again() takes one round in flight, open and for nobody")
            self._changing = True
            action = self._rounds.decide_again(context, self._explore).action
        if notice is UnusableFeatures:  # other warnings are by rounds, and this one was counted
            warn_of_features(2)
        return action if type(action) is int else action.copy()

    def answer_round(self, opened: Round, value: Any) -> None:
        """`update`, for a service that has found the round and checked the reward. Not for users."""
        with self._lock, self._call("update"):
            self._changing = True
            self._rounds.answer(opened, value, self._noise)

    def has_rounds_left(self, token: bytes) -> bool:
        """Whether a person may still be learned from, as far as is known now. Not for users."""
        return self._rounds.people is None or self._rounds.people.counts(token)

    def open_rounds(self) -> Sequence[Round]:
        """Those in flight, the oldest first. Not for users: they hold raw data."""
        return self._rounds.open

    def renew(self) -> None:
        """Go on with fresh generators from the operating system.

        What was drawn before no longer follows from what is in memory then.
        """
        with self._lock, self._call("renew"):
            self._seeded = False
            self.use(Streams.of(None))

    def rest_on(self, fact: str) -> None:
        """Name one more thing that is public in the guarantee. Not for users: an adapter that replays a
        log knows what only it does. A save would not say it, so there is none.
        """
        self._rests_on_caller = True
        self._guarantee = replace(self._guarantee, public=(*self._guarantee.public, fact))

    def learn_past(self, history: History | None, public_history: History | None) -> None:
        """Start from earlier logs. Not for users, but by `start(…, history=…, public_history=…)`."""
        for name, given in (("history", history), ("public_history", public_history)):
            if given is not None and not isinstance(given, History):
                raise InvalidInput(
                    f"expected {name} as History(action=…, reward=…), got {checks.kind_of(given)}"
                )
        if history is None and public_history is None:
            return
        if history is not None and public_history is not None and history.has_same_rows(public_history):
            raise InvalidInput(
                "history and public_history are the same rows: what is public needs no protection, and "
                "what is protected must not be public"
            )
        if self._rounds.is_local:
            raise InvalidInput("in the local model nobody holds raw rows to start from")
        with self._lock, self._call("start"):
            if self.decided > 0 or sum(self.past) > 0:
                raise RoundError("a learner starts from earlier logs before its first round, and once")
            past = Past(len(history or ()), len(public_history or ()))
            rows = () if history is None else self.problem.past(history)
            tokens = self._tokens(history)
            public_rows = () if public_history is None else self.problem.past(public_history)
            if public_history is not None and public_history.person is not None:
                raise InvalidInput("what is public needs no person: leave her out of public_history")
            if self._last is not None and past.history >= self._last:
                raise HorizonReached(
                    f"the guarantee covers {self._last:,} rounds, and a history of {past.history:,} "
                    "leaves none to decide"
                )
            if public_history is not None:
                self._rounds.learn_public(public_rows)
            self._changing = True
            self._rounds.learn_past(rows, tokens, self._noise)
            self._rounds.past = past

    def _tokens(self, history: History | None) -> list[bytes | None]:
        if history is None:
            return []
        named = [None] * len(history) if history.person is None else history.person
        if self._asks_who and any(person is None for person in named):
            raise InvalidInput("rounds_per_person is declared: say who each row of the history is")
        refuse_mixed(named)
        tokens = [self._token(person) for person in named]
        somebody = next((person for person in named if person is not None), None)
        if somebody is not None and self._rounds.people is not None:
            self._rounds.people.take_only_kind_of(somebody)
        return tokens

    def lend(self, rounds: Rounds, noise: Any, explore: Any) -> None:
        """Go on with these rounds and generators. Not for users: an audit plays the same learner again
        and again.
        """
        self._rounds, self._noise, self._explore = rounds, noise, explore

    def use(self, streams: Streams) -> None:
        """Go on with these generators. Not for users: see `renew`."""
        self._streams = streams
        self._noise = ExactNoise(streams.noise) if self._exact else streams.noise
        self._explore = streams.explore
        self._rounds.forget_generators()

    def _decide(self, context: Any, moment: float, person: bytes | None) -> Round:
        self._changing = True
        return self._rounds.decide(context, self._noise, self._explore, moment, person)

    def _warn(self, notices: list[type[Warning] | None]) -> None:
        """After the round was opened: as an error, a warning would undo what must count."""
        if UnusableFeatures in notices:
            warn_of_features(3)
        if self._shortened is not None and ShortenedFeatures in notices:
            self._shortened += notices.count(ShortenedFeatures)
            if are_many(self._shortened, self.decided):
                self._shortened = None
                warn_of_shortened(3)
        if self._short is not None and LooseBound in notices:
            self._short += notices.count(LooseBound)
            if are_many(self._short, self.decided, SHARE_OF_SHORT):
                self._short = None
                warn_of_loose(3)

    def _change(self, act: str, arm: int | None) -> int:
        with self._lock, self._call(act):
            done = change(self, act, arms_known(self) if arm is None else arm)
            self._changes.append(done)
        return done.arm

    def _call(self, name: str) -> "_Call":
        """What to hold beside the lock: a signal handler of the same thread is then refused."""
        return _Call(self, name)

    def _register(self, rounds_per_person: int, **options: Any) -> People:
        """An empty one, whose key is made of that of tickets: with a seed it is the same again."""
        key = hashlib.blake2b(self._key, person=b"people", digest_size=32).digest()
        return People(rounds_per_person, key=key, **options)

    def _token(self, person: Any) -> bytes | None:
        """Who she is, under a key; one round of each is learned from unless more were declared."""
        if person is None:
            if self.problem.rounds_per_person is not None:
                raise InvalidInput("rounds_per_person is declared: say for whom, decide(…, person=…)")
            return None
        people = self._rounds.people or self._register(1)
        token = people.token(person)  # which may refuse her name
        self._rounds.people = people
        return token

    def _find(self, ticket: Any) -> Round:
        """The open round of a ticket, of its name, or of the action that the one open round chose."""
        if type(ticket) is Ticket and isinstance(ticket.round, str):
            return self._named(ticket.round)
        if isinstance(ticket, str):
            return self._named(ticket)
        rounds = self._rounds
        if not rounds.closes_at_once:
            self._refuse_without_tickets()
        if not rounds.open:
            raise RoundError("no round is open: call select() or decide() first")
        opened = rounds.open[0]
        if ticket is opened.action or ticket is None:
            return opened
        if not _same_action(ticket, opened.action):
            raise RoundError(f"the open round chose another action than {checks.shown(ticket)}")
        return opened

    def _named(self, name: str) -> Round:
        rounds, number = self._rounds, round_number(name, self._key)
        if number >= rounds.decided:
            raise RoundError(f"round {number} is not decided yet: its ticket is from another time")
        if number < rounds.closed:
            limit = f"{rounds.in_flight:,} rounds"
            if rounds.patience is not None:
                limit += f" or {rounds.patience:g} seconds"
            raise TooLate(
                f"round {number} has closed: rounds stay open for {limit}; this answer is too late"
            )
        opened = rounds.open[number - rounds.closed]
        if opened.answered:
            raise RoundError(f"round {number} was answered already: the first reward counts")
        return opened

    def _moment(self, now: float | None) -> float:
        if (now is None) != (self._rounds.patience is None):
            raise InvalidInput(
                "a learner with patience needs the time of every decision: decide(…, now=seconds)"
                if now is None
                else "now= is for a learner that was started with patience=seconds"
            )
        moment = 0.0 if now is None else checks.number("now", now)
        if not math.isfinite(moment):
            raise InvalidInput(f"expected now to be a time in seconds, got {checks.shown(now)}")
        return moment

    def _refuse_if_unfit(self) -> None:
        """A learner works in the process that made it, until it ends or a call is cut short."""
        if not self._stopped and self._forks == forks.times():
            return
        if self._forks != forks.times():
            raise PrivacyError("a learner does not survive a fork: both copies would use the same noise")
        if self._ended:
            raise RoundError(f"this learner has ended: {self._ended}")
        raise RoundError(
            f"a {self._stopped}() of this thread is under way, and a signal handler cannot call in "
            "between; or an earlier one was cut short and may have done half its work: load a save or "
            "start again"
        )

    def _refuse_past_the_horizon(self, decisions: int) -> None:
        if self._last is None:
            return
        if self._rounds.decided + self._rounds.closings + decisions > self._last:
            raise HorizonReached(
                f"the guarantee covers {self._last:,} rounds and they are used up; "
                "start a new learner with a longer horizon"
            )

    def _refuse_without_tickets(self) -> NoReturn:
        raise RoundError(
            "several rounds may be in flight here: decide() gives a ticket, and update() takes it"
        )


def offered_context(problem: Problem, offered: tuple[Any, ...]) -> tuple[Any, type[Warning] | None]:
    """A person's context; and, where it is not what was declared, the warning that is for."""
    try:
        context = problem.context(*offered)
    except UnusableContext as unusable:
        return unusable.instead, UnusableFeatures
    if type(context) is Shortened:
        return tuple(context), ShortenedFeatures
    if type(context) is FarWithin:
        return tuple(context), LooseBound
    return context, None


def warn_of_features(stacklevel: int) -> None:
    """Of those that cannot be used."""
    warnings.warn(
        "features with nan or infinity: the round counts, with an action at random, and nothing is "
        "learned from it",
        UnusableFeatures,
        stacklevel=stacklevel + 1,
    )


class _Call:
    """A call of a learner. Refused before it changes anything, it leaves no mark."""

    __slots__ = ("_learner", "_name")

    def __init__(self, learner: Learner, name: str) -> None:
        self._learner, self._name = learner, name

    def __enter__(self) -> None:
        self._learner._refuse_if_unfit()
        self._learner._stopped, self._learner._changing = self._name, False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not self._learner._changing:
            self._learner._stopped = ""


def _stacked(actions: list[Any]) -> NDArray[Any]:
    """As one array; of sets of different sizes as one of objects."""
    if len({np.shape(action) for action in actions}) == 1:
        return np.array(actions)
    stacked = np.empty(len(actions), object)
    stacked[:] = actions
    return stacked


def _same_action(one: Any, other: Any) -> bool:
    """Whether two are the same number or the same items; what cannot be compared is not."""
    try:
        return bool(np.array_equal(one, other))
    except Exception:  # of the object's own conversion or comparison
        return False


def _check_size(opened: Round, value: Any) -> None:
    """A reward for each item, where an action is a set of them."""
    if np.shape(value) != np.shape(opened.action):
        raise InvalidInput(
            f"expected a reward for each of the {np.size(opened.action)} items chosen, "
            f"got {np.size(value)}"
        )
