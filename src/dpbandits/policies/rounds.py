"""What a round is: opened by a decision, answered any time, closed in order when a later one is made.

`Rounds` is the state of a learner as a plain machine: no locks, no tickets, no generators of its own. It
sees only its arguments, so the audit can drive it on neighbouring streams, and a service can play a log
back.

**Closing.** Round t is closed at the start of a decision, in the order of decisions: when `in_flight`
rounds are open, or when it has been open for `patience` seconds by the times that decisions were given.
Then its reward is observed, or a missing one. What arrives later is too late. With one round in flight
and no clock a round is closed as soon as it is answered: no decision can come in between. The operator
may close all open rounds at any time that is public, such as the end of an experiment (`close_all`), or
those whose patience is over (`expire`).

**People who return.** Where people are distinguished, a round is learned from when it is *closed*, if
fewer than k of hers were and if she is in none of the batches that it would go into (`people.py`).
Otherwise it is not observed at all: stored as missing, it would pull means to the middle. Somebody
from whom enough was learned is given what leads by all that is released, where actions are public and
one leads. All of this is a function of who takes part when, which is not protected, and of public
values.

**A history.** Rows of an earlier log may be the first rounds (`learn_past`): decided by another system,
and all closed before the first decision here. Between two releases any number of rounds may be closed,
so for each slot they are one batch or leaf, or the first epochs, as if they had been in flight; and they
count, towards a horizon and for people who return. The argument below covers them: it never uses who
chose an action. Where actions are public it takes those of the history as given; where they are not,
`observe` counts rows, whatever their features. So neighbours differ in what one row holds (its reward;
its features too where people bring them) and agree in all others. In one way that is narrower than for
rounds decided here, and the guarantee's sentence says so: what the earlier system chose for *others*
because of her data is in their rows as it is. Rows that are declared public (`learn_public`) are
restated without noise before the first round: `public` begins as another function of public facts, and
noise and sensitivity of all that follows are as ever.

**Why it costs no privacy.** (1) Which rounds are closed before decision n is a function of n and of
public times and acts, never of what arrived. (2) `observe` changes `public` by a function of public
values alone (and of the action, where actions are public). (3) A datum is in exactly one batch, leaf,
row or epoch, found by public values. (4) A missing reward is stored as exactly 0 and counted. Fix the
results of all draws: on neighbouring streams the sequence of closings, releases and decisions is the
same by (1); by (2) and induction so are `public` and all decisions (those for everyone else in the
joint model); so the datum enters one release, by (3), whose location moves by at most its sensitivity.
The argument of each mechanism (`sums/`) then applies as it stands: it never uses that an observed
action is the last one.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandits.engine import bare, has_pauses, is_local, pause_if_due, steps_of, wait, wrapped
from dpbandits.engine.handing import Hands
from dpbandits.engine.loop import compiled_for
from dpbandits.engine.verbs import Steps
from dpbandits.policies.people import People
from dpbandits.problems import Problem
from dpbandits.problems.history import Row
from dpbandits.wording import counted

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy


class Past(NamedTuple):
    """How many rows of earlier logs a learner was started from."""

    history: int = 0  # its first rounds
    public_history: int = 0  # declared public

    def facts(self) -> Iterator[str]:
        """What is public by it."""
        if self.public_history:
            yield f"all of a public history of {counted(self.public_history, 'row')}"

    def unprotected(self) -> Iterator[str]:
        """What its rows may hold of somebody that is not in her own."""
        if self.history:
            yield (
                f"the rows of a history of {self.history:,} are taken as they are: what an earlier "
                "system chose for others because of her is not protected"
            )


@dataclass(slots=True)
class Round:
    """One that is decided and not closed."""

    number: int
    action: Any  # as it was chosen
    kept: tuple[Any, Any]  # context and action, as little of them as `observe` reads
    began: float
    person: bytes | None = None  # who, as `People.token` has her
    counts: bool = True  # whether it may be learned from
    answered: bool = False
    reward: Any = None


class Rounds:
    """The rounds of one learner, on one state."""

    def __init__(
        self,
        policy: "Policy",
        problem: Problem,
        public: Any,
        secret: Any,
        *,
        in_flight: int = 1,
        patience: float | None = None,
        compiled: bool = False,
        people: People | None = None,
    ) -> None:
        # What its own methods know of people who return they find out from the problem, once.
        self.asked, self.policy, self.problem = policy, policy.for_people(problem), problem
        self.public, self.secret, self.people = public, secret, people
        self.in_flight, self.patience = in_flight, patience
        self.closes_at_once = in_flight == 1 and patience is None  # when a round is answered
        self.open: deque[Round] = deque()
        self.decided = 0  # rounds opened so far
        self.observed = 0  # rounds closed and learned from
        self.closed_then = 0  # rounds closed at the last decision or `close_all`: public, at any time
        self.closings = 0  # calls of `close_all`, each of which releases like a decision
        self.past = Past()
        self.given = 0  # public rows that the state counts among its rounds
        self.now = 0.0  # the time of the last decision
        self._hands, steps, self._select = Hands(), steps_of(public), type(public).select
        if compiled:
            code = compiled_for(public)
            steps = Steps(partial(self._hands.decide, code.decide), code.learn)
            self._select = code.select
        self._decide, self._learn = steps
        self.is_local = is_local(type(public))
        self.leader: tuple[Any, Any] = (None, None)  # what it was made of, and the best action known
        self._pauses = has_pauses(public)

    @property
    def closed(self) -> int:
        """Rounds closed so far."""
        return self.decided - len(self.open)

    def decide(
        self,
        context: Any,
        noise: Any,
        explore: Any,
        now: float = 0.0,
        person: bytes | None = None,
    ) -> Round:
        """Close what is due, release what is due, choose."""
        self._close_due(now, noise)
        self._pause(noise)
        action = None if person is None else self._best_known(person, noise)
        counts = action is None
        if counts:
            chosen = self._decide(self.public, self.secret, context, noise, explore)
            action = chosen[0].copy() if type(chosen) is tuple else int(chosen)
        kept = context, action
        if not self.closes_at_once:
            kept = self.problem.kept(context, action)
        if counts and (person is not None or not self.closes_at_once):
            wait(self.public, wrapped(action), 1)
        opened = Round(self.decided, action, kept, self.now, person, counts)
        self.open.append(opened)
        self.decided += 1
        return opened

    def decide_again(self, context: Any, explore: Any) -> Round:
        """Choose for somebody else in the place of the one round that is open.

        Nothing is released or counted: to all that is learned it is as if she had come first.
        """
        last = self.open.pop()
        chosen = self._select(self.public, context, explore)
        action = chosen[0].copy() if type(chosen) is tuple else int(chosen)
        opened = Round(last.number, action, (context, action), last.began)
        self.open.append(opened)
        return opened

    def answer(self, opened: Round, reward: Any, noise: Any) -> Any:
        """Keep the reward of an open round until it is closed."""
        if self.closes_at_once and opened.person is None and type(opened.action) is int:
            # The same as below, in few words: it is what a learner in plain Python does all day.
            self.open.clear()
            self.observed += 1
            context, action = opened.kept
            drawn = noise if self.is_local else None
            return self._learn(self.public, self.secret, context, action, reward, drawn)
        opened.answered, opened.reward = True, reward
        return self._close(noise) if self.closes_at_once else None

    def learn_past(self, rows: Iterable[Row], people: Iterable[bytes | None], noise: Any) -> None:
        """Rows of an earlier log as rounds: decided, answered and closed before the first decision."""
        for (context, action, reward), person in zip(rows, people, strict=True):
            opened = Round(self.decided, action, (context, action), self.now, person)
            opened.answered, opened.reward = True, reward
            if person is not None or not self.closes_at_once:
                wait(self.public, wrapped(action), 1)
            self.open.append(opened)
            self.decided += 1
            self._close(noise)
        self.closed_then = self.closed

    def learn_public(self, rows: Iterable[Row]) -> None:
        """Rows that are declared public: what they add up to is restated without noise."""
        public, secret = self.asked.begin_public(self.problem)
        for context, action, reward in rows:
            self._learn(public, secret, context, wrapped(action), wrapped(reward), None)
        self.policy.take_public(self.public, self.secret, public, secret)
        self.given = rounds_counted(self.public) or 0

    def expire(self, now: float, noise: Any) -> None:
        """Close the rounds whose patience is over, between two decisions and without a release."""
        if self.patience is not None:
            self._close_due(now, noise, places=1)

    def close_all(self, noise: Any) -> None:
        """Close every open round and release what is due, between two decisions."""
        self.closings += 1
        while self.open:
            self._close(noise)
        self.closed_then = self.closed
        self._pause(noise)
        if not self.is_local:
            self.public.release(self.secret, noise)

    def forget_generators(self) -> None:
        """Keep none in memory that was replaced: what it drew follows from its state."""
        self._hands.empty()

    def forget(self) -> None:
        """Keep no raw data, and no generators, of a learner that has ended; how far it came stays."""
        self.forget_generators()
        self.secret = None
        for opened in self.open:
            opened.reward, opened.kept = None, (None, None)

    def _pause(self, noise: Any) -> None:
        if self._pauses:
            pause_if_due(self.public, self.secret, noise, self.observed)

    def _close_due(self, now: float, noise: Any, places: int = 0) -> None:
        """Close what is due at this time. Without a decision to follow, one more round may be open."""
        if now > self.now:  # time does not run backwards
            self.now = now
        while self.open and self._is_due(self.in_flight + places):
            self._close(noise)
        self.closed_then = self.decided - len(self.open)

    def _is_due(self, places: int) -> bool:
        if len(self.open) >= places:
            return True
        return self.patience is not None and self.now - self.open[0].began >= self.patience

    def _best_known(self, person: bytes, noise: Any) -> Any:
        """For somebody from whom enough was learned: what leads by all that is released, if it is known.

        Exploring with her would be in vain, and nothing it asks for would ever come back.
        """
        assert self.people is not None
        if self.is_local or self.people.counts(person):
            return None
        away = getattr(self.public, "away", None)
        key = self.observed, None if away is None else away.tobytes()
        if self.leader[0] != key:
            leader = self.asked.best_known(self.problem, self.public)
            # Not where nothing leads: some draw at every release, and one is made for each decision.
            if leader is not None:
                self.public.release(self.secret, noise)
                leader = self.asked.best_known(self.problem, self.public)
            self.leader = key, leader
        leader = self.leader[1]
        return leader.copy() if isinstance(leader, np.ndarray) else leader

    def _may_learn(self, person: bytes, action: Any) -> bool:
        """Whether this round of hers counts: she has few enough, and is in none of the open batches."""
        assert self.people is not None
        return self.people.take(person, self.policy.open_batches(self.public, bare(action)))

    def _close(self, noise: Any) -> Any:
        """Close the oldest; in a rehearsal of the local model, the message that it sends."""
        oldest = self.open.popleft()
        context, action = oldest.kept
        reward = oldest.reward if oldest.answered else self.problem.missing
        if type(action) is not int:
            action, reward = wrapped(action), wrapped(reward)
        self._pause(noise)
        if not oldest.counts:
            return None
        if oldest.person is not None or not self.closes_at_once:
            wait(self.public, action, -1)
        if oldest.person is not None and not self._may_learn(oldest.person, action):
            return None
        self.observed += 1
        # Only the local model draws when it learns. Handing a generator to compiled code takes as long
        # as all the rest.
        drawn = noise if self.is_local else None
        return self._learn(self.public, self.secret, context, action, reward, drawn)


def rounds_counted(public: Any) -> int | None:
    """How many rounds are closed by a state's own count; None if it has none.

    It says so itself, or the part of it that counts does; otherwise its field `round` is that number.
    """
    counts = counting_part(public, "observed")
    if counts is not None:
        return int(counts.observed())
    return int(public.round[0]) if "round" in public._fields else None


def counting_part(public: Any, method: str) -> Any:
    """The state, or the part of it, that has this method."""
    parts = (part for part in (public, *public) if hasattr(part, "_fields"))
    return next((part for part in parts if hasattr(part, method)), None)
