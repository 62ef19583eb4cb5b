"""Desks for tests: terms of any policy, and a desk with what the database would keep of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from dpbandits.engine import arguments, bare
from dpbandits.errors import DPBanditsError
from dpbandits.policies import LocalPolicy, Policy, TrustedPolicy, policy_kinds
from dpbandits.policies.testing import short_form
from dpbandits.problems import Arms, Problem
from dpbandits.service.desk import Desk, Event, Opened, read_context
from dpbandits.service.terms import Terms
from dpbandits.testing import example_policies

_ENCODE, _DECODE = msgspec.msgpack.Encoder().encode, msgspec.msgpack.decode


def terms_of(policy: Policy, problem: Problem, **options: Any) -> Terms:
    """Of any policy, without going through what a user writes."""
    labels = () if not isinstance(problem, Arms) else tuple(f"arm {i}" for i in range(problem.arms))
    given = {"labels": labels, "in_flight": 4, "patience": 5.0, "expected_people": 1000, **options}
    return Terms(name="tried", policy=policy, problem=problem, declared={}, **given)


def _served(kind: Any) -> list[Policy]:
    """Every policy of this kind at every budget it is tried with, in its short form."""
    found = [one for name in policy_kinds().values() for one in example_policies(name)]
    return [short_form(policy) for policy in found if isinstance(policy, kind)]


def trusted_policies() -> list[Policy]:
    """Those that a desk may hold."""
    return _served(TrustedPolicy)


def local_policies() -> list[Policy]:
    """Those that a local desk may hold."""
    return _served(LocalPolicy)


def example_terms(policy: Policy, rounds_per_person: int | None = None, horizon: int = 400) -> Terms:
    """On a small problem; `DPBanditsError` if the policy is not for people who return."""
    problem = policy.problem_kind.testing.example(horizon)
    if rounds_per_person is not None:
        problem = replace(problem, rounds_per_person=rounds_per_person)
    policy.guarantee(problem)
    return terms_of(policy, problem)


def takes_people(policy: Policy) -> bool:
    """Whether people may return to it."""
    try:
        example_terms(policy, 2)
    except DPBanditsError:
        return False
    return True


def sent_context(context: Any) -> Any:
    """A context as a request brings it."""
    given = arguments(context)
    return None if not given else np.asarray(given[0]).tolist()


def sent_reward(reward: Any, action: Any) -> Any:
    """A reward as a request brings it: a number, one for each item of a set, or null."""
    values = np.ravel(bare(reward)).astype(float)
    if np.isnan(values).any():
        return None
    return values[: len(action)].tolist() if isinstance(action, list) else float(values[0])


class Kept:
    """A desk, the last snapshot of it, and the log since: what a crash leaves is the last two.

    The log goes through the same bytes as the writer's, one row for each commit.
    """

    def __init__(self, terms: Terms, kind: type[Desk] = Desk) -> None:
        self.terms, self._kind = terms, kind
        self.desk = kind.begin(terms)
        self.snapshot = self.desk.snapshot()
        self.log: list[bytes] = []
        self.pending: list[Event] = []
        self.restored: Callable[[Desk], None] | None = None  # told of a desk before it replays

    def decide(self, now: float, key: bytes, token: bytes = b"", sent: Any = None) -> Opened:
        """As the service does, from what a request brought."""
        answer, event = self.desk.decide(now, key, token, *read_context(self.terms.problem, sent))
        self.pending.append(event)
        return answer

    def reward(self, number: int, value: Any) -> bool:
        """Whether it was new."""
        event = self.desk.reward(number, value)
        if event is not None:
            self.pending.append(event)
        return event is not None

    def change(self, act: str, label: str) -> None:
        """Let an arm come or go."""
        self.pending.append(self.desk.change(act, label))

    def commit(self) -> None:
        """Make what was done durable."""
        if self.pending:
            self.log.append(_ENCODE(self.pending))
            self.pending = []

    def fold(self, now: float) -> None:
        """A snapshot in place of the log."""
        self.commit()
        self.snapshot, self.log = self.desk.fold(now), []

    def crash(self) -> None:
        """Forget what is in memory, and come back from what was durable."""
        self.pending = []
        self.desk = self._kind.restore(self.terms, self.snapshot)
        if self.restored is not None:
            self.restored(self.desk)
        for row in self.log:
            for event in _DECODE(row):
                self.desk.replay(event)
