"""The replay audit through a desk: with windows, a clock, people who return, folds and crashes.

A run is recorded at the desk: every draw of its learner, from the generators that the desk itself
restores and renews. On a neighbouring stream, in which all that one person brought is another's (her
rewards, when they come, and her contexts), the same desk is driven with the results of all draws
forced. Everything that can be seen must then be the same, and what the draws cost whose locations
moved is at most the budget (`audit/replay.py`). What is drawn again after a crash is the same release
if it is the same draw; otherwise it is another one, and paid for.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from desks import Kept, sent_context, sent_reward

from dpbandits.audit.recording import (
    Draw,
    ForcedNoise,
    Mismatch,
    RecordingExplore,
    RecordingNoise,
    Steer,
)
from dpbandits.audit.replay import Replay, _differ, draws_cost
from dpbandits.audit.watching import WatchedRounds, bits
from dpbandits.engine import state_bytes
from dpbandits.policies import Learner
from dpbandits.policies.rounds import Round
from dpbandits.privacy.calibration import limit_of
from dpbandits.privacy.guarantees import Trust
from dpbandits.service.desk import Desk
from dpbandits.service.refusals import Refusal
from dpbandits.service.terms import Terms


@dataclass(frozen=True)
class Visit:
    """A decision for somebody: what is public of it, and what is hers."""

    now: float
    token: bytes
    context: Any
    reward: Any
    delay: int | None  # so many decisions later her reward comes; None: never


class Moment(NamedTuple):
    """What one step of the desk drew and showed."""

    number: int  # of the decision; −1 for a fold or the end
    draws: list[Draw]
    explored: list[str]
    seen: list[bytes]
    action: bytes
    is_new: bool = True  # not a draw that was made before a crash


class Recorder:
    """Draws from the desk's own generators, and steers the results."""

    def __init__(self, steer: Steer) -> None:
        self._steer = steer
        self._pushed: dict[int, tuple[int, bool]] = {}  # before each decision, to steer it alike again
        self._last = RecordingNoise(np.random.default_rng(0), steer)

    def noise(self, learner: Learner, number: int) -> RecordingNoise:
        """That of one step."""
        found = RecordingNoise(learner._streams.noise, self._steer, exact=learner.noise == "exact")
        state = self._last._pushed, self._last.repeated
        found._pushed, found.repeated = self._pushed.setdefault(number, state) if number >= 0 else state
        self._last = found
        return found

    def decided(self, repeated: bool) -> None:
        """Whether it was the first action again."""
        self._last.repeated = repeated


class Forcer:
    """Gives back what was recorded, step by step."""

    def __init__(self, record: list[Moment]) -> None:
        self._record = iter(record)

    def noise(self, learner: Learner, number: int) -> ForcedNoise:
        """That of one step."""
        before = next(self._record, None)
        if before is None or before.number != number:
            raise Mismatch("the desk does something else, or at another time")
        return ForcedNoise(before.draws, exact=learner.noise == "exact")

    def decided(self, repeated: bool) -> None:
        """Nothing is steered here."""


class Watched:
    """A desk that is played on visits, with a look at everything it shows."""

    def __init__(self, terms: Terms, kind: type[Desk], source: Recorder | Forcer, seed: int) -> None:
        self.kept, self._source, self._seed = Kept(terms, kind), source, seed
        self.moments: list[Moment] = []
        self._first: dict[int, Moment] = {}
        self.kept.restored = self._attach
        self._attach(self.kept.desk)

    def _attach(self, desk: Desk) -> None:
        learner: Any = desk.learner
        rounds, open_round = WatchedRounds.over(learner._rounds), learner.open_round
        learner.lend(rounds, learner._noise, learner._explore)

        def opened(context: Any, now: float, token: bytes | None) -> Round:
            number, rounds.seen = learner.decided, []
            noise = self._source.noise(learner, number)
            explore = RecordingExplore(self._seed, 2, number)
            learner.lend(rounds, noise, explore)
            found: Round = open_round(context, now, token)
            seen = [*rounds.seen, *state_bytes(rounds.public)]
            self._note(Moment(number, noise.draws, explore.calls, seen, b"".join(bits(found.action))))
            return found

        learner.open_round = opened

    def _note(self, moment: Moment) -> None:
        before = self._first.setdefault(moment.number, moment) if moment.number >= 0 else moment
        if before is not moment:
            moment = moment._replace(is_new=not _same_draws(before.draws, moment.draws))
        elif moment.number >= 0:
            self._source.decided(moment.action == self._first[0].action)
        self.moments.append(moment)

    def play(self, visits: Sequence[Visit], folds: set[int], crashes: set[int], closes: bool) -> None:
        """All of it: a fold and a crash come before the decision of that number."""
        due: dict[int, list[int]] = {}
        for index, visit in enumerate(visits):
            if index in folds:
                self._between(partial(self.kept.fold, visit.now))
            if index in crashes:
                self.kept.crash()
            key = index.to_bytes(16, "big")
            answer = self.kept.decide(visit.now, key, visit.token, sent_context(visit.context))
            if visit.delay is not None:
                due.setdefault(index + visit.delay, []).append(index)
            for number in due.pop(index, []):
                self._reward(number, visits[number].reward)
            self.kept.commit()
            self._show((answer.number, answer.expires, answer.counted), visit.now)
        if closes:
            self._between(self.kept.desk.learner.close)

    def _reward(self, number: int, reward: Any) -> None:
        try:
            opened = next(o for o in self.kept.desk.learner.open_rounds() if o.number == number)
        except StopIteration:
            return  # too late, at a moment that is public
        action = opened.action if isinstance(opened.action, int) else opened.action.tolist()
        try:
            self.kept.reward(number, sent_reward(reward, action))
        except Refusal as refusal:
            raise Mismatch(f"a reward was refused: {refusal.code}") from None

    def _between(self, act: Callable[[], object]) -> None:
        """A step that is no decision; it may draw too."""
        learner = self.kept.desk.learner
        rounds: Any = learner._rounds
        rounds.seen, noise = [], self._source.noise(learner, -1)
        learner.lend(rounds, noise, learner._explore)
        act()
        self._note(Moment(-1, noise.draws, [], [*rounds.seen, *state_bytes(rounds.public)], b""))

    def _show(self, answer: Any, now: float) -> None:
        """What the answer, the page and the times of folds tell."""
        desk = self.kept.desk
        read = desk.released()
        shown = {
            "answer": answer,
            "counts": (desk.decided, desk.closed),
            "fold": (desk.is_fold_due(), desk.is_idle(now)),
            "shares": desk.shares,
            "released": None if read is None else str(read.to_dict()),
        }
        self.moments[-1].seen.append(json.dumps(shown).encode())


def _same_draws(one: list[Draw], other: list[Draw]) -> bool:
    """The same noise on the same data: one release, however often it is computed."""
    if len(one) != len(other):
        return False
    fields = ("kind", "location", "scale", "result", "dof")
    return all(
        bits(getattr(a, name)) == bits(getattr(b, name))
        for a, b in zip(one, other, strict=True)
        for name in fields
    )


def _moved(
    record: list[Moment], forced: list[Moment], hers: set[int], exempt: bool
) -> Iterator[tuple[Draw, Draw]]:
    """The draws that are paid for; anything seen that differs is a `Mismatch`."""
    if len(record) != len(forced):
        raise Mismatch(f"{len(forced)} steps where there were {len(record)}")
    for before, after in zip(record, forced, strict=True):
        if len(before.draws) != len(after.draws):
            raise Mismatch(f"{len(after.draws)} draws where there were {len(before.draws)}")
        alike = (before.explored, before.action) == (after.explored, after.action)
        if not alike and not (exempt and before.number in hers):
            raise Mismatch(f"decision {before.number} is another one")
        if before.seen != after.seen:
            raise Mismatch(f"something that is seen differs at decision {before.number}")
        if before.is_new:
            pairs = zip(before.draws, after.draws, strict=True)
            yield from (pair for pair in pairs if _differ(pair[0].location, pair[1].location))


def audit_desk(
    terms: Terms,
    *,
    kind: type[Desk] = Desk,
    visits: int = 36,
    people: int = 2,
    steers: Sequence[Steer] = (Steer(), Steer(favour=True)),
    crash: bool = True,
    seed: int = 0,
    floor: float = 0.9,
) -> Replay:
    """What replacing all that one person brought costs, for some of the people who come."""
    problem, guarantee = terms.problem, terms.guarantee
    limit, exempt = limit_of(guarantee.budget), guarantee.trust is Trust.JOINT
    stream = stream_of(terms, visits, seed)
    folds = {visits // 5, visits // 2, 3 * visits // 4}
    crashes = {visits // 3, 2 * visits // 3, visits - 2} if crash else set[int]()
    closes = guarantee.horizon is None
    cost, worst, tried = 0.0, "none", 0

    def result(failure: str | None = None) -> Replay:
        return Replay(
            cost=cost, limit=limit, floor=floor, neighbours=tried, worst=worst, failure=failure
        )

    chosen = np.random.default_rng([seed, 9]).permutation(visits)[:people]
    for steer in steers:
        recorded = Watched(terms, kind, Recorder(steer), seed)
        recorded.play(stream, folds, crashes, closes)
        for position in sorted(int(one) for one in chosen):
            hers = _hers(stream, position)
            for said, change in _others(problem):
                tried += 1
                story = f"{steer}, the person of decision {position}: {said}"
                neighbour = [change(one) if i in hers else one for i, one in enumerate(stream)]
                forced = Watched(terms, kind, Forcer(recorded.moments), seed)
                try:
                    forced.play(neighbour, folds, crashes, closes)
                    moved = list(_moved(recorded.moments, forced.moments, hers, exempt))
                except Mismatch as mismatch:
                    cost, worst = np.inf, story
                    return result(str(mismatch))
                total = draws_cost(moved, guarantee.budget)
                if total > cost:
                    cost, worst = total, story
                if not result().private:
                    return result()
    return result()


def stream_of(terms: Terms, visits: int, seed: int) -> list[Visit]:
    """People at the ends of what is declared, who answer at once, late or never.

    Where people return, all come a round more than is learned from, and one of them very often.
    """
    chance, ends = (
        np.random.default_rng([seed, 7]),
        terms.problem.testing.extreme_people(terms.problem)[:2],
    )
    times, most = np.cumsum(chance.exponential(size=visits)), terms.problem.rounds_per_person
    found = []
    for index in range(visits):
        context, reward = ends[int(chance.integers(2))]
        token = b""
        if most is not None:
            token = bytes([0 if index % 5 == 0 else 1 + index % (visits // (most + 1))]).ljust(16, b"p")
        delay = [0, 1, 3, None][int(chance.choice(4, p=[0.5, 0.2, 0.2, 0.1]))]
        found.append(Visit(float(times[index]), token, context, reward, delay))
    return found


def _hers(stream: Sequence[Visit], position: int) -> set[int]:
    token = stream[position].token
    return {i for i, one in enumerate(stream) if one.token == token} if token else {position}


def _others(problem: Any) -> Iterator[tuple[str, Callable[[Visit], Visit]]]:
    """Who could have come in her place."""
    (low, none), (high, all_) = problem.testing.extreme_people(problem)[:2]
    yield "the one end, at once", lambda one: replace(one, context=low, reward=none, delay=0)
    yield "the other end, late", lambda one: replace(one, context=high, reward=all_, delay=2)
    yield "never answers", lambda one: replace(one, context=high, delay=None)
