r"""The replay test: the exact privacy cost of a policy's releases, without sampling.

Record a run on a stream of people D. On a neighbour D′, with one person replaced, *force* the recorded
results of every noise draw. Then everything public must be bit-equal round by round: kind, number and
scale of the draws, the arguments of exploration, `public` before and after the decision, the actions;
in the local model the message as well, draws being those of the person's own report. Where her context
is replaced there, every other neighbour explores by other draws, so that actions differ too.
What differs is where the draws were centred, and that difference is the cost:

- Laplace: Σ \|Δlocation\|/scale, to be at most ε;
- Gaussian: √Σ (Δlocation/scale)², to be at most μ;
- the Gamma mechanism, one draw of a vector: ‖Δlocation/scale‖₂, to add up to at most ε;
- a coin: the larger log ratio of its probabilities;
- Wishart: √(moved draws/m) of the limit, where m of them are what (ε, δ) pays for by their theorem, and
  each may have moved by aaᵀ − bbᵀ with rows within the declared norm only.

Never the likelihood ratio at the recorded result: that misses a tree that is one level short in
99,995 of 100,000 runs. The neighbours are extremes at every position; the recorded results are drawn
as usual, and also pushed to where they cost most, because a guarantee holds for every result.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.recording import (
    Draw,
    ForcedNoise,
    Mismatch,
    RecordingExplore,
    RecordingNoise,
    Steer,
)
from dpbandits.audit.watching import WatchedRounds, bits, serve
from dpbandits.engine import state_bytes
from dpbandits.errors import AuditError
from dpbandits.mechanisms.gram import unpack
from dpbandits.mechanisms.wishart import matrix_size, wishart_levels
from dpbandits.policies import Learner, Policy
from dpbandits.policies.saving import restore
from dpbandits.policies.testing import rehearse
from dpbandits.privacy import curves
from dpbandits.privacy.budgets import ApproxDP, Budget, PureDP
from dpbandits.privacy.calibration import limit_of
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems import History, Problem

Person = tuple[Any, Any]
# What a decision left: draws of noise, those of exploration, what could be seen, the action.
_Played = tuple[list[Draw], list[str], list[bytes], Any]
_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What a replay found: the largest cost over all neighbours, against the limit it must keep."""

    cost: float
    limit: float
    floor: float
    neighbours: int
    worst: str
    failure: str | None = None

    @property
    def private(self) -> bool:
        """Whether the guarantee held for every neighbour tried."""
        return self.failure is None and self.cost <= self.limit * (1.0 + _TOLERANCE)

    @property
    def tight(self) -> bool:
        """Whether some neighbour came near the limit; a replay that finds no cost tests nothing."""
        return self.cost >= self.floor * self.limit

    @property
    def passed(self) -> bool:
        """Private, and shown to be by a test that could have failed."""
        return self.private and self.tight

    def __str__(self) -> str:
        if self.failure is not None:
            return f"not private: {self.measured}"
        verdict = "passed" if self.passed else "NOT PRIVATE" if not self.private else "not tight"
        return f"{verdict}: {self.measured}"

    @property
    def measured(self) -> str:
        """What was found, without a verdict."""
        if self.failure is not None:
            return f"{self.failure} ({self.worst})"
        digits = 4 if self.private else 10  # a cost just above the limit must not look like it
        cost = f"cost {self.cost:.{digits}g} of {self.limit:.{digits}g}"
        return f"{cost} over {self.neighbours:,} neighbours; worst: {self.worst}"


@dataclass(frozen=True)
class _Recorded:
    """One recorded decision: what was drawn, what could be seen, and everything before it."""

    draws: list[Draw]
    explored: list[str]
    seen: list[bytes]
    action: Any
    start: WatchedRounds


class _Setting(NamedTuple):
    """How rounds follow each other, and the public times of their decisions."""

    machine: type[WatchedRounds]
    options: dict[str, Any]
    times: list[float | None]
    names: list[bytes | None]  # for whom each decision is, where people return
    closes: bool  # all open rounds at the end
    reload: int | None  # the decision before which the learner is saved and loaded
    exact: bool  # noise on a grid
    past: int  # people who are rows of a history
    public: Sequence[Person]  # of a history that is public
    one_action: bool  # whether all rows of both chose the same

    def rounds_of(self, position: int) -> set[int]:
        """All rounds of the person who takes part in this one."""
        name = self.names[position]
        return {index for index, other in enumerate(self.names) if other == name} if name else {position}


def replay(
    policy: Policy,
    problem: Problem | None = None,
    *,
    rounds: int = 48,
    seed: int = 0,
    thorough: bool = True,
    in_flight: int = 1,
    patience: float | None = None,
    reload: int | None = None,
    exact: bool = False,
    together: int = 1,
    inside: bool = False,
    history: int = 0,
    public_history: int = 0,
    one_action: bool = False,
    floor: float = 0.9,
    machine: type[WatchedRounds] = WatchedRounds,
) -> Replay:
    """Replay a policy on neighbours of streams of extreme people, or until one costs too much.

    `rounds` is the length of the streams; where the guarantee ends at a horizon, that is, so that the
    whole budget is spent. Where it claims not to, streams run past a declared horizon. A thorough
    replay tries every position, several streams, and steers each of the first numbers drawn in a round;
    otherwise 20 positions of one mixed stream are tried, which suits long streams. `floor` is the least
    share of the budget that some neighbour must reach for the replay to have tested anything.

    People are served by a `Learner`, with its checks, its clipping and its refusals, `in_flight` at
    once; with `patience` by a clock on which decisions come at random times, one a second on average. At
    the end all open rounds are closed, unless the guarantee ends at a horizon. Where the problem
    declares `rounds_per_person`, people return, and all rounds of one of them are replaced together.

    With `reload` the learner is saved and loaded before that decision. With `exact` noise is on a grid,
    as for learners at work (`mechanisms/exact.py`). With `together` = 2 the person after her is replaced
    too, which may cost twice as much. With `inside` people are drawn at random within what is declared.

    The first `history` people are the rows of an earlier log that the learner is started from; so are
    `public_history` others, whom nobody replaces. Their actions go round, or with `one_action` are all
    the same.
    """
    problem = problem or policy.problem_kind.testing.example(rounds)
    guarantee = policy.guarantee(problem)
    if not guarantee.is_private:
        raise AuditError(f"nothing to audit without a privacy guarantee: {guarantee.why_none}")
    length = guarantee.horizon or max(rounds, problem.horizon or 0)
    # Her own action is seen by nobody else there.
    exempt = guarantee.trust in (Trust.JOINT, Trust.LOCAL)
    limit = together * limit_of(guarantee.budget)
    people = problem.testing.extreme_people(problem)
    if inside:
        people = problem.testing.people_inside(problem, np.random.default_rng([seed, 5]))
    times: list[float | None] = [None] * length
    if patience is not None:
        times = np.cumsum(np.random.default_rng([seed, 4]).exponential(size=length)).tolist()
    options = {"in_flight": in_flight, "patience": patience}
    most = policy.for_people(problem).draws_of_one(problem) * (problem.rounds_per_person or 1) * together
    cost, worst, tried = 0.0, "none", 0

    def result(cost: float, tried: int, worst: str, failure: str | None = None) -> Replay:
        return Replay(
            cost=cost, limit=limit, floor=floor, neighbours=tried, worst=worst, failure=failure
        )

    cases = product(_streams(people, length, seed, thorough), _visits(problem, length))
    for (name, stream), names in cases:
        closes = guarantee.horizon is None
        public = tuple(people[index % len(people)] for index in range(public_history))
        logs = history, public, one_action
        setting = _Setting(machine, options, times, names, closes, reload, exact, *logs)
        learner = rehearse(policy, problem, seed=seed, **options)
        for steer in _steers(learner, stream, seed, thorough, setting):
            record = _record(learner, stream, steer, seed, setting)
            # All sorts of people once, for the clipping; otherwise the two ends are what costs most.
            others = people if (name, steer) == ("mixed", Steer()) else people[:2]
            for position, person in _replacements(stream, others, seed, thorough):
                tried += 1
                # Not all: some messages cost most where both have the same action.
                anew = tried if tried % 2 and action_is_replaced(guarantee) else 0
                where = f"people {name}, {steer}, round {position + 1}"
                story = f"{where} replaced by a person of reward {_said(person[1])}"
                last = min(position + together, length)
                hers = set().union(*(setting.rounds_of(i) for i in range(position, last)))
                if min(hers) < position:
                    continue  # all of hers were replaced at the first
                try:
                    neighbour = [person if i in hers else other for i, other in enumerate(stream)]
                    moved = _force(learner, neighbour, record, seed, hers, exempt, setting, anew)
                except Mismatch as mismatch:
                    return result(math.inf, tried, story, str(mismatch))
                numbers = sum(np.size(one.location) for one, _ in moved)
                if exact and numbers > most:
                    said = f"{numbers} draws moved, of {most:g} that one round may move as declared"
                    return result(math.inf, tried, story, said)
                total = draws_cost(moved, guarantee.budget)
                if total > cost:
                    cost, worst = total, story
                if cost > limit * (1.0 + _TOLERANCE):
                    return result(cost, tried, worst)
    return result(cost, tried, worst)


def action_is_replaced(guarantee: Guarantee) -> bool:
    """Whether a message must hide the action: it follows from a context, which nobody else sees."""
    return guarantee.trust is Trust.LOCAL and guarantee.unit is Unit.ROUND


def _said(reward: Any) -> str:
    """A reward, or one for each item, with four digits."""
    values = np.ravel(reward[0] if isinstance(reward, tuple) and reward else reward).tolist()
    shown = ", ".join(f"{value:.4g}" for value in values)
    return shown if len(values) == 1 else f"({shown})"


def _streams(
    people: Sequence[Person], length: int, seed: int, thorough: bool
) -> Iterator[tuple[str, list[Person]]]:
    """A mixture of everything; and all alike, at each end; and alternating."""
    chosen = np.random.default_rng(seed).integers(len(people), size=length)
    yield "mixed", [people[index] for index in chosen]
    if thorough:
        yield "all at one end", [people[0]] * length
        yield "all at the other end", [people[1]] * length
        yield "alternating", [people[index % 2] for index in range(length)]


def _steers(
    learner: Learner, stream: list[Person], seed: int, thorough: bool, setting: _Setting
) -> list[Steer]:
    """Leave the draws alone; push all; push each of (at most eight of) a round's; favour an action."""
    steers = [Steer(), Steer(-1), Steer(-1, first_up=True)]
    if thorough:
        plain = _record(learner, stream, Steer(), seed, setting)
        numbers = max(sum(np.size(draw.result) for draw in one.draws) for one in plain)
        chosen = sorted({int(index) for index in np.linspace(0, numbers - 1, 8)}) if numbers else []
        steers += [Steer(index, up) for index in chosen for up in (False, True)]
        steers.append(Steer(favour=True))
    return steers


def _visits(problem: Problem, length: int) -> Iterator[list[bytes | None]]:
    """For whom each decision is, where people return: one visit more than is learned from, at once or
    some rounds apart.
    """
    if problem.rounds_per_person is None:
        yield [None] * length
        return
    visits = problem.rounds_per_person + 1
    # And one who comes every other time, long after enough was learned from her.
    yield [b"often" if index % 2 else str(index).encode() for index in range(length)]
    for apart in (1, 3, 6):
        turns = ((index // (apart * visits), index % apart) for index in range(length))
        yield [f"{turn}".encode() for turn in turns]


def _replacements(
    stream: list[Person], people: Sequence[Person], seed: int, thorough: bool
) -> Iterator[tuple[int, Person]]:
    positions: Sequence[int] = range(len(stream))
    if not thorough:
        picked = np.random.default_rng([seed, 3]).choice(
            len(stream), min(20, len(stream)), replace=False
        )
        positions = sorted(int(position) for position in picked)
    for position in positions:
        for person in people:
            if person is not stream[position]:
                yield position, person


def _record(
    learner: Learner, stream: list[Person], steer: Steer, seed: int, setting: _Setting
) -> list[_Recorded]:
    noise = RecordingNoise(np.random.default_rng([seed, 1]), steer, exact=setting.exact)
    rounds, found = setting.machine.of(learner.policy, learner.problem, **setting.options), []
    for index in range(len(stream)):
        start = rounds.copied()
        noise.start_round()
        rounds, played = _play_round(learner, rounds, stream, index, seed, noise, setting)
        found.append(_Recorded(*played, start))
        noise.repeated = bits(found[-1].action) == bits(found[0].action)
    if setting.closes:
        start = rounds.copied()
        noise.start_round()
        found.append(_Recorded(*_close_all(learner, rounds, noise), start))
    return found


def _force(
    learner: Learner,
    stream: list[Person],
    record: list[_Recorded],
    seed: int,
    hers: set[int],
    exempt: bool,
    setting: _Setting,
    anew: int,
) -> list[tuple[Draw, Draw]]:
    """Play the neighbour on forced results from the replaced round on; before it nothing differs.

    Anything that could be seen and differs is a `Mismatch`; what is returned are the draws whose
    location moved.
    """
    noise, moved, first = ForcedNoise(exact=setting.exact), [], min(hers)
    rounds = record[first].start.copied()
    for index in range(first, len(record)):
        before = record[index]
        noise.start_round(before.draws)
        if index < len(stream):
            draw = anew if index in hers else 0
            rounds, played = _play_round(learner, rounds, stream, index, seed, noise, setting, draw)
        else:
            played = _close_all(learner, rounds, noise)
        draws, explored, seen, action = played
        if len(draws) != len(before.draws):
            raise Mismatch(f"{len(draws)} draws where there were {len(before.draws)}")
        if not (exempt and index in hers):
            if explored != before.explored:
                raise Mismatch(f"exploration drew {explored} where it drew {before.explored}")
            if bits(action) != bits(before.action):
                raise Mismatch(f"round {index + 1} decided {action} where it decided {before.action}")
        if seen != before.seen:
            raise Mismatch(f"public state differs in round {index + 1}")
        pairs = zip(before.draws, draws, strict=True)
        moved += [(one, other) for one, other in pairs if _differ(one.location, other.location)]
    return moved


def _play_round(
    learner: Learner,
    rounds: WatchedRounds,
    stream: list[Person],
    index: int,
    seed: int,
    noise: Any,
    setting: _Setting,
    anew: int = 0,
) -> tuple[WatchedRounds, _Played]:
    """One decision in plain Python, with exploration seeded by its number, and all that it closes.

    With the last row of a history, or before all where there is a public one only, it is learned from.
    With `anew` above 0 exploration is another than in the recorded run.
    """
    explore, rounds.seen = RecordingExplore(seed, 2, index, *((anew,) if anew else ())), []
    learner.lend(rounds, noise, explore)
    if index == setting.reload:
        rounds = setting.machine.over(restore(learner.snapshot())._rounds)
        learner.lend(rounds, noise, explore)
    if index == max(setting.past - 1, 0):
        _learn_past(learner, stream[: setting.past], setting)
    if index < setting.past:
        return rounds, (noise.draws, explore.calls, state_bytes(rounds.public), np.array(-1))
    hers = copy.deepcopy(stream[index])  # a policy may write into her features
    action = serve(learner, hers, now=setting.times[index], person=setting.names[index])
    seen = rounds.seen + state_bytes(rounds.public)
    return rounds, (noise.draws, explore.calls, seen, np.copy(action))


def _learn_past(learner: Learner, people: Sequence[Person], setting: _Setting) -> None:
    """Start from these people as an earlier log, and from those who are public."""
    problem, past, public = learner.problem, None, None
    if people:
        past = _log(problem, people, setting)
        if setting.names[0] is not None:
            past = replace(past, person=setting.names[: len(people)])
    if setting.public:
        public = _log(problem, setting.public, setting)
    if past is not None or public is not None:
        learner.learn_past(past, public)


def _log(problem: Problem, people: Sequence[Person], setting: _Setting) -> History:
    log = problem.testing.past(problem, people)
    if setting.one_action and log.action is not None:
        return replace(log, action=np.broadcast_to(log.action[:1], log.action.shape))
    return log


@np.errstate(over="ignore", invalid="ignore")
def _close_all(learner: Learner, rounds: WatchedRounds, noise: Any) -> _Played:
    """The end of an experiment: every open round is closed."""
    rounds.seen = []
    learner.lend(rounds, noise, None)
    learner.close()
    return noise.draws, [], rounds.seen + state_bytes(rounds.public), -1


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one != other  # a NaN differs, and is priced as such
    return bits(one) != bits(other)


def draws_cost(moved: list[tuple[Draw, Draw]], budget: Budget) -> float:
    """What draws cost together whose locations moved: ε for a pure budget, μ for the others."""
    if any(one.kind == "wishart" for one, _ in moved):
        return _wishart_cost(moved, budget)
    pure = isinstance(budget, PureDP)
    total = sum(_draw_cost(one, other, pure) for one, other in moved)
    return total if pure else math.sqrt(total)


def _draw_cost(one: Draw, other: Draw, pure: bool) -> float:
    """ε of one draw for a pure budget, μ² for a Gaussian one."""
    if not np.all(np.isfinite(one.location) & np.isfinite(other.location)):
        return math.inf
    if one.kind == "binomial":
        coins = zip(*(np.ravel(x) for x in (one.location, other.location, one.scale)), strict=True)
        costs = [float(n) * _coin_cost(p, q) for p, q, n in coins]
        return sum(costs) if pure else sum(curves.pure_mu(cost) ** 2 for cost in costs)
    shift = np.abs(np.subtract(other.location, one.location))
    with np.errstate(all="ignore"):  # what overflows costs infinitely much
        ratio = np.where(shift > 0, shift / one.scale, 0.0)
        squares = float(np.sum(ratio**2))
    if one.kind == "normal":
        return math.inf if pure and ratio.any() else squares
    if one.kind == "norm_gamma":
        return math.sqrt(squares) if pure else curves.pure_mu(math.sqrt(squares)) ** 2
    return float(np.sum(ratio)) if pure else sum(curves.laplace_mu(float(r)) ** 2 for r in ratio.flat)


def _wishart_cost(moved: list[tuple[Draw, Draw]], budget: Budget) -> float:
    """The limit times the root of the share that is spent; infinite where the theorem does not apply."""
    if not isinstance(budget, ApproxDP):
        return math.inf
    share = 0.0
    for one, other in moved:
        if one.kind != "wishart":
            return math.inf  # its (ε, δ) does not add up with anything else's
        size = matrix_size(one.location.size)
        matrix = np.zeros((size, size))
        unpack(other.location - one.location, matrix)
        if matrix.any():
            levels = wishart_levels(size - 1, one.dof, budget)
            if not (levels and _replaces_row(matrix, float(one.scale[0]))):
                return math.inf
            share += 1.0 / levels
    return limit_of(budget) * math.sqrt(share)


def _replaces_row(matrix: Any, norm: float) -> bool:
    """Whether a symmetric matrix is aaᵀ − bbᵀ with both norms within the bound, to rounding."""
    if not (norm > 0.0 and np.isfinite(matrix).all()):
        return False
    found = np.linalg.eigvalsh(matrix) / norm**2
    single = np.abs(found[1:-1]).max(initial=0.0) <= _TOLERANCE
    if found.size > 1:
        single = single and found[0] <= _TOLERANCE and found[-1] >= -_TOLERANCE
    return bool(single and np.abs(found).max() <= 1.0 + _TOLERANCE)


def _coin_cost(one: float, other: float) -> float:
    if one == other:
        return 0.0
    with np.errstate(divide="ignore"):
        heads, tails = np.log(one) - np.log(other), np.log1p(-one) - np.log1p(-other)
    return float(max(abs(heads), abs(tails)))
