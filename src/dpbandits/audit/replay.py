r"""The replay test: the exact privacy cost of a policy's releases, without sampling.

Record a run on a stream of people D. On a neighbour D′, with one person replaced, *force* the recorded
results of every noise draw. Then everything public must be bit-equal round by round: kind, number and
scale of the draws, the arguments of exploration, `public`, the actions. What differs is where the
draws were centred, and that difference is the cost:

- Laplace: Σ \|Δlocation\|/scale, to be at most ε;
- Gaussian: √Σ (Δlocation/scale)², to be at most μ;
- a coin: the larger log ratio of its probabilities.

Never the likelihood ratio at the recorded result: that misses a tree that is one level short in
99,995 of 100,000 runs. The neighbours are extremes at every position; the recorded results are drawn
as usual, and also pushed to where they cost most, because a guarantee holds for every result.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandits.audit.recording import (
    Draw,
    ForcedNoise,
    Mismatch,
    RecordingExplore,
    RecordingNoise,
    Steer,
)
from dpbandits.engine import implementation, is_paused, state_bytes
from dpbandits.errors import AuditError
from dpbandits.policies import Policy
from dpbandits.privacy import curves
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Problem

Person = tuple[Any, Any]
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
            return f"not private: {self.failure} ({self.worst})"
        verdict = "passed" if self.passed else "NOT PRIVATE" if not self.private else "not tight"
        return (
            f"{verdict}: cost {self.cost:.6g} of {self.limit:.6g} over {self.neighbours:,} neighbours; "
            f"worst: {self.worst}"
        )


@dataclass(frozen=True)
class _Round:
    """One recorded round."""

    draws: list[Draw]
    explored: list[str]
    public: list[bytes]
    action: Any


def replay(policy: Policy, problem: Problem | None = None, *, rounds: int = 48, seed: int = 0) -> Replay:
    """Replay a policy on every neighbour of several streams of extreme people, or until one costs
    too much.

    `rounds` is the length of the streams; the problem's horizon, where it has one, decides instead,
    so that the whole budget is spent.
    """
    problem = problem or policy.problem_kind.example(rounds)
    guarantee = policy.guarantee(problem)
    if not guarantee.is_private:
        raise AuditError(f"nothing to audit: {guarantee}")
    length = problem.horizon or rounds
    exempt = guarantee.trust is Trust.JOINT
    limit, people = _limit(guarantee.budget), problem.extreme_people()
    cost, worst, tried = 0.0, "none", 0
    for name, stream in _streams(people, length, seed):
        for steer in _steers(policy, problem, stream, seed):
            record = _record(policy, problem, stream, steer, seed)
            # Where results are pushed, the two ends are enough; the rest is for the clipping.
            for position, person in _replacements(stream, people if steer == Steer() else people[:2]):
                tried += 1
                story = f"{name}, {steer}, round {position + 1} becomes {person[1]}"
                try:
                    neighbour = [*stream[:position], person, *stream[position + 1 :]]
                    found = _force(policy, problem, neighbour, record, seed, position if exempt else -1)
                except Mismatch as mismatch:
                    return _result(policy, math.inf, limit, tried, story, str(mismatch))
                total = _cost(record, found, guarantee.budget)
                if total > cost:
                    cost, worst = total, story
                if cost > limit * (1.0 + _TOLERANCE):
                    return _result(policy, cost, limit, tried, worst, None)
    return _result(policy, cost, limit, tried, worst, None)


def _result(
    policy: Policy, cost: float, limit: float, tried: int, worst: str, failure: str | None
) -> Replay:
    return Replay(
        cost=cost,
        limit=limit,
        floor=policy.replay_floor,
        neighbours=tried,
        worst=worst,
        failure=failure,
    )


def _limit(budget: Budget) -> float:
    return budget.epsilon if isinstance(budget, PureDP) else budget.to_gaussian().mu


def _streams(people: Sequence[Person], length: int, seed: int) -> Iterator[tuple[str, list[Person]]]:
    """All alike, at each end; alternating; and a mixture of everything."""
    yield "all at one end", [people[0]] * length
    yield "all at the other end", [people[1]] * length
    yield "alternating", [people[index % 2] for index in range(length)]
    chosen = np.random.default_rng(seed).integers(len(people), size=length)
    yield "mixed", [people[index] for index in chosen]


def _steers(policy: Policy, problem: Problem, stream: list[Person], seed: int) -> list[Steer]:
    """Leave the draws alone; and for each of the first few of a round, push it away."""
    plain = _record(policy, problem, stream, Steer(), seed)
    most = min(max((len(one.draws) for one in plain), default=0), 4)
    return [Steer(), *(Steer(index, up) for index in range(most) for up in (False, True))]


def _replacements(stream: list[Person], people: Sequence[Person]) -> Iterator[tuple[int, Person]]:
    for position, present in enumerate(stream):
        for person in people:
            if person is not present:
                yield position, person


def _record(
    policy: Policy, problem: Problem, stream: list[Person], steer: Steer, seed: int
) -> list[_Round]:
    noise = RecordingNoise(np.random.default_rng([seed, 1]), steer)
    found = []
    for one in _play(policy, problem, stream, seed, noise):
        found.append(one)
        noise.draws = []
    return found


def _force(
    policy: Policy,
    problem: Problem,
    stream: list[Person],
    record: list[_Round],
    seed: int,
    exempt: int,
) -> list[_Round]:
    """Play the neighbour on forced results; anything public that differs is a `Mismatch`."""
    noise = ForcedNoise(record[0].draws)
    found = []
    for index, one in enumerate(_play(policy, problem, stream, seed, noise)):
        before = record[index]
        if len(one.draws) != len(before.draws):
            raise Mismatch(f"{len(one.draws)} draws where there were {len(before.draws)}")
        if index != exempt and one.explored != before.explored:
            raise Mismatch(f"exploration drew {one.explored} where it drew {before.explored}")
        if index != exempt and not np.array_equal(one.action, before.action):
            raise Mismatch(f"round {index + 1} decided {one.action} where it decided {before.action}")
        if one.public != before.public:
            raise Mismatch(f"public state differs after round {index + 1}")
        found.append(one)
        if index + 1 < len(record):
            noise.recorded, noise.draws = record[index + 1].draws, []
    return found


def _play(
    policy: Policy,
    problem: Problem,
    stream: list[Person],
    seed: int,
    noise: Any,
) -> Iterator[_Round]:
    """The rounds of one stream, in plain Python, with exploration seeded anew each round."""
    public, secret = policy.begin(problem)
    release, select, observe = (
        implementation(verb, type(public)) for verb in ("release", "select", "observe")
    )
    for index, (context, reward) in enumerate(stream):
        explore = RecordingExplore(seed, 2, index)
        if is_paused(public, index):
            implementation("pause", type(public))(public, secret, noise)
        release(public, secret, noise)
        action = select(public, context, explore)
        observe(public, secret, context, action, reward)
        yield _Round(noise.draws, explore.calls, state_bytes(public), action)


def _cost(record: list[_Round], found: list[_Round], budget: Budget) -> float:
    pure = isinstance(budget, PureDP)
    total = 0.0
    for before, after in zip(record, found, strict=True):
        for one, other in zip(before.draws, after.draws, strict=True):
            if not np.array_equal(one.location, other.location):
                total += _draw_cost(one, other, pure)
    return total if pure else math.sqrt(total)


def _draw_cost(one: Draw, other: Draw, pure: bool) -> float:
    """ε of one draw for a pure budget, μ² for a Gaussian one."""
    if one.kind == "binomial":
        epsilon = _coin_cost(one.location, other.location)
        return epsilon if pure else curves.pure_mu(epsilon) ** 2
    shift = np.abs(np.subtract(other.location, one.location))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(shift > 0, shift / one.scale, 0.0)
    if one.kind == "normal":
        return math.inf if pure else float(np.sum(ratio**2))
    return float(np.sum(ratio)) if pure else sum(curves.laplace_mu(float(r)) ** 2 for r in ratio.flat)


def _coin_cost(one: float, other: float) -> float:
    with np.errstate(divide="ignore"):
        heads, tails = np.log(one) - np.log(other), np.log1p(-one) - np.log1p(-other)
    return float(max(abs(heads), abs(tails)))
