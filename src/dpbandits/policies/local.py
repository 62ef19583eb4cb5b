"""The local model: people randomise their own answers, so the server never holds raw data.

    server = policy.start(problem)
    person = policy.person(problem, server.broadcast())      # on her own device
    action = person.select()
    server.receive(person.report(reward))

`Server` has no method that takes a context or a reward; `Person` sends one message and no more.
"""

import math
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from dpbandits import checks
from dpbandits.engine import Streams, check_policy_verbs, forks, leaves, pause_if_due
from dpbandits.engine.streams import Seed, learner_seed
from dpbandits.errors import HorizonReached, InvalidInput, PrivacyError, RoundError, UnusableFeatures
from dpbandits.mechanisms.exact import ExactNoise
from dpbandits.policies import messages
from dpbandits.policies.learner import offered_context, warn_of_features
from dpbandits.policies.policy import NoiseKind, Policy
from dpbandits.policies.released import Released
from dpbandits.privacy.budgets import PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import Problem

_TICKET = 32  # hexadecimal digits


class Server:
    """Tells everybody what is known so far, and learns from the messages that come back.

    Many people may work on the same broadcast at once, and their messages may come in any order. A
    message counts once: those that answer a broadcast more than `window` messages old are refused, and
    younger ones are remembered by a random number each carries. Nobody is authenticated here: who may
    send messages, and how many, is for the application to decide.

    All it holds is public, so there is nothing to save: `policy.start(problem, broadcast=kept)` resumes
    from any broadcast that was kept.
    """

    _lock: AbstractContextManager[bool]

    window: ClassVar[int] = 10_000

    def __init__(self, policy: "LocalPolicy", problem: Problem, streams: Streams) -> None:
        self.policy, self.problem = policy, problem
        self.guarantee: Guarantee = policy.guarantee(problem)
        self._public, self._secret = policy.begin(problem)
        self._streams = streams  # for pauses only
        check_policy_verbs(type(self._public))
        self._rounds = 0
        self._oldest = 0  # the oldest broadcast that may be answered
        self._tickets: set[str] = set()
        self._order: deque[str] = deque()
        self._busy = False  # a receive() is under way, or was cut short
        forks.own_lock(self)  # which a signal handler holds again, to be sent away
        self._last = self.guarantee.horizon if self.guarantee.is_private else None
        pause_if_due(self._public, self._secret, streams.noise, 0)

    def __repr__(self) -> str:
        return f"<Server {self.policy!r} on {self.problem!r}, {self.rounds} messages>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Only for what a server does not have: say who has it."""
            if name in ("select", "decide", "update", "skip"):
                raise AttributeError(
                    f"a server has no {name}(): people decide and answer on their own devices, "
                    "person = policy.person(problem, server.broadcast()), then person.select() and "
                    "server.receive(person.report(reward))"
                )
            raise AttributeError(f"'Server' object has no attribute {name!r}")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RoundError(
            "a server is not copied: policy.start(problem, broadcast=server.broadcast()) starts another"
        )

    @property
    def rounds(self) -> int:
        """Messages received so far."""
        return self._rounds

    def broadcast(self) -> bytes:
        """What a person needs to know to decide; it may be published."""
        with self._lock:
            self._refuse_if_unfit()
            self._refuse_past_the_horizon()
            state = messages.listed_state(self._public)
            return messages.pack("broadcast", self.policy, self.problem, self._rounds, public=state)

    def snapshot(self) -> bytes:
        """All of it, with what tells messages that were received: for a service. Nothing is secret.

        With its generators too: a pause may draw what people are told to play, and messages are read by
        what they were told.
        """
        from dpbandits.policies.saving import listed_streams

        with self._lock:
            self._refuse_if_unfit()
            return messages.pack(
                "snapshot",
                self.policy,
                self.problem,
                self._rounds,
                public=messages.listed_state(self._public),
                oldest=self._oldest,
                tickets=list(self._order),
                streams=listed_streams(self._streams),
            )

    def released(self) -> Released | None:
        """What may be read of the messages so far: estimates with intervals; see `Learner.released`."""
        with self._lock:
            self._refuse_if_unfit()
            reading = self.policy.released(self.problem, self._public)
            if reading is None:
                return None
            spent = self.guarantee.budget if self._rounds and self.guarantee.is_private else None
            return Released.of(reading, self.guarantee, self._rounds, self._rounds, spent)

    def receive(self, message: bytes) -> None:
        """Learn from one person's message; one that cannot be right is refused and changes nothing."""
        record = messages.unpack("message", self.policy, self.problem, message, "ticket", "content")
        content = self.policy.parse_message(self.problem, record["content"])
        ticket = _checked_ticket(record["ticket"])
        with self._lock:
            self._refuse_if_unfit()
            self._busy = True
            try:
                self._refuse_past_the_horizon()
                self._refuse_if_used(record["rounds"], ticket)
            except BaseException:
                self._busy = False  # nothing is changed yet
                raise
            self._tickets.add(ticket)
            self._order.append(ticket)
            if len(self._order) > self.window:
                self._tickets.remove(self._order.popleft())
            self._rounds += 1
            with np.errstate(all="ignore"):
                self._public.receive(content)
                pause_if_due(self._public, self._secret, self._streams.noise, self._rounds)
            self._busy = False

    def _resume(self, broadcast: bytes) -> None:
        record = messages.unpack("broadcast", self.policy, self.problem, broadcast, "public")
        messages.fill(self._public, record["public"])
        # Messages before it may have been counted: only those that answer it are new for sure.
        self._rounds = self._oldest = record["rounds"]

    def _restore(self, snapshot: bytes) -> None:
        from dpbandits.policies.saving import restored_streams

        fields = "public", "oldest", "tickets", "streams"
        record = messages.unpack("snapshot", self.policy, self.problem, snapshot, *fields)
        messages.fill(self._public, record["public"])
        checks.integer(least=0, oldest=record["oldest"])
        self._rounds, self._oldest = record["rounds"], record["oldest"]
        self._order.extend(map(_checked_ticket, checks.sequence("tickets", record["tickets"])))
        self._tickets.update(self._order)
        self._streams = restored_streams(record["streams"])

    def _refuse_if_unfit(self) -> None:
        if self._busy:
            raise RoundError(
                "a receive() of this thread is under way, and a signal handler cannot call in between; "
                "or an earlier one was cut short and may have done half its work: start again from a "
                "broadcast that was kept"
            )

    def _refuse_past_the_horizon(self) -> None:
        if self._last is not None and self._rounds >= self._last:
            raise HorizonReached(
                f"the guarantee covers {self._last:,} rounds and they are used up; "
                "start a new server with a longer horizon"
            )

    def _refuse_if_used(self, answers: int, ticket: str) -> None:
        if answers > self._rounds:
            raise RoundError(
                f"the message answers a broadcast after {answers:,} messages; "
                f"{self._rounds:,} came so far"
            )
        if ticket in self._tickets:
            raise RoundError("this message was received already: each counts once")
        if answers < self._oldest or answers <= self._rounds - self.window:
            raise RoundError(
                f"the message answers a broadcast after {answers:,} messages, too old to tell "
                f"whether it was received already; {self._rounds:,} came so far"
            )


class Person:
    """One person's side, on her own device: she decides, randomises her answer, and sends it.

    One round, one message: a second one would spend the budget again. Whether a message is sent must
    not depend on the reward; `skip` makes one that says nothing and looks like any other.
    """

    _lock: AbstractContextManager[bool]

    def __init__(
        self,
        policy: "LocalPolicy",
        problem: Problem,
        broadcast: bytes,
        streams: Streams,
        *,
        seeded: bool,
        exact: bool = False,
    ) -> None:
        self.policy, self.problem = policy, problem
        self.guarantee: Guarantee = policy.guarantee(problem)
        record = messages.unpack("broadcast", policy, problem, broadcast, "public")
        last = self.guarantee.horizon if self.guarantee.is_private else None
        if last is not None and record["rounds"] >= last:
            raise HorizonReached(f"the guarantee covers {last:,} rounds and they are used up")
        self._public, _ = policy.begin(problem)
        messages.fill(self._public, record["public"])
        self._answers: int = record["rounds"]
        self._streams, self._seeded = streams, seeded
        self._noise = ExactNoise(streams.noise) if exact else streams.noise
        self._open: tuple[Any, Any] | None = None
        self._begun = self._sent = False
        self._busy = False  # a call is under way: a signal handler may not send a message of its own
        self._forks = forks.times()
        forks.own_lock(self)

    def __repr__(self) -> str:
        return f"<Person of {self.policy!r} on {self.problem!r}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError("a person cannot be copied: both copies would use the same noise")

    def select(self, *offered: Any) -> Any:
        """Her action; `offered` is her context, where there is one. Neither is sent anywhere."""
        context, notice = offered_context(self.problem, offered)
        with self._lock, self._alone():
            if self._begun:
                raise RoundError("this person has her action: report() its reward, or skip()")
            self._begun = True
            action = self._public.select(context, self._streams.explore)
            if isinstance(action, np.integer):
                action = int(action)
            elif isinstance(action, np.ndarray):
                action = action.copy()
            self._open = (context, action)
        if notice is UnusableFeatures:
            warn_of_features(2)
        return action

    def report(self, reward: Any) -> bytes:
        """The message about her reward: the only thing that leaves her device."""
        return self._message(reward, missing=False)

    def skip(self) -> bytes:
        """The message of a person without a usable reward, which says nothing about her."""
        return self._message(self.problem.missing, missing=True)

    def _message(self, reward: Any, *, missing: bool) -> bytes:
        with self._lock, self._alone():
            if self._open is None:
                raise RoundError("this person has no action yet: call select() first")
            value = reward if missing else self.problem.reward(reward)
            self._sent = True  # before the draw: cut short or not, there is no second one
            context, action = self._open
            content = self._public.report(context, action, value, self._noise)
            # Unseeded, not from her own generators: what is sent must tell nothing about their state.
            size = _TICKET // 2
            ticket = self._streams.chance.bytes(size).hex() if self._seeded else secrets.token_hex(size)
            return messages.pack(
                "message",
                self.policy,
                self.problem,
                self._answers,
                ticket=ticket,
                content=messages.listed(content),
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call at a time, and no error or warning from arithmetic: it would tell about her data.

        What a server made up may overflow for some people and not for others.
        """
        if self._busy:
            raise RoundError(
                "a call of this person is under way, and a signal handler cannot call in between"
            )
        self._busy = True
        try:
            self._refuse_if_unfit()
            with np.errstate(all="ignore"):
                yield
        finally:
            self._busy = False

    def _refuse_if_unfit(self) -> None:
        if self._forks != forks.times():
            raise PrivacyError("a person does not survive a fork: both copies would use the same noise")
        if self._sent:
            raise PrivacyError("this person has sent her message: a second would spend her budget again")


@dataclass(frozen=True, kw_only=True)
class LocalPolicy(Policy):
    """A policy of the local model: `start` gives the server, `person` each person's side.

    Its verbs are `select` and `report`, which a person runs, and `receive`, which the server runs. The
    kind and the scale of the noise in `report` are numbers of the state, never arrays: a broadcast
    cannot change those.
    """

    abstract: ClassVar[bool] = True

    def multiplier(self, problem: Any) -> float:
        """For k messages, each with noise of its own: k under ε-DP, √k otherwise."""
        k = problem.rounds_per_person or 1
        return float(k) if isinstance(self.privacy, PureDP) else math.sqrt(k)

    def parse_message(self, problem: Any, content: Any) -> Any:
        """What `report` sent, from its JSON; whatever it could not have sent is refused."""
        raise NotImplementedError

    # Not a Learner, on purpose: nobody may hand a reward to the server.
    def start(
        self,
        problem: Problem,
        *,
        seed: Seed = None,
        broadcast: bytes | None = None,
        history: None = None,
        public_history: None = None,
    ) -> Server:
        """A server on this problem, from the beginning or from where a broadcast left off.

        Not from a history: see the sentence that refuses one.
        """
        self.check(problem)
        if history is not None or public_history is not None:
            raise InvalidInput("in the local model nobody holds raw rows to start from")
        server = Server(self, problem, Streams.of(learner_seed(seed)))
        if broadcast is not None:
            server._resume(broadcast)
        return server

    def restore(self, problem: Problem, snapshot: bytes) -> Server:
        """The server of a snapshot. Not for users: `start(…, broadcast=…)` resumes from less."""
        server = self.start(problem)
        server._restore(snapshot)
        return server

    def person(
        self,
        problem: Problem,
        broadcast: bytes,
        *,
        seed: Seed = None,
        noise: NoiseKind | None = None,
    ) -> Person:
        """One person's side; without a seed, on the operating system's randomness.

        A seed is for tests: whoever knows it can undo the noise. `noise` as for `Policy.start`.
        """
        exact, streams = self._draws_exactly(problem, noise, seed), Streams.of(learner_seed(seed))
        return Person(self, problem, broadcast, streams, seeded=seed is not None, exact=exact)

    def check(self, problem: Problem) -> None:
        """As for every policy; and the server must have nothing to hide."""
        super().check(problem)
        if any(True for _ in leaves(self.begin(problem)[1])):
            raise InvalidInput(f"{type(self).__name__} keeps a secret on the server: not a local policy")


def _checked_ticket(ticket: Any) -> str:
    if not (
        isinstance(ticket, str) and len(ticket) == _TICKET and set(ticket) <= set("0123456789abcdef")
    ):
        raise InvalidInput(f"expected the ticket of a message to be {_TICKET} hexadecimal digits")
    return ticket
