"""The rounds of a learner as the audit drives them: everything that can be seen is written down."""

import copy
import warnings
from typing import Any

import numpy as np

from dpbandits.engine import arguments, bare, is_local, state_bytes, steps_of
from dpbandits.errors import LooseBound, ShortenedFeatures, UnusableFeatures
from dpbandits.policies import Learner, Policy
from dpbandits.policies.people import People
from dpbandits.policies.rounds import Round, Rounds
from dpbandits.problems import Problem


class WatchedRounds(Rounds):
    """As a learner's own, in plain Python; `seen` holds `public` before each choice, and messages."""

    def __init__(
        self, policy: Policy, problem: Problem, public: Any, secret: Any, **options: Any
    ) -> None:
        super().__init__(policy, problem, public, secret, **options)
        self._watch()

    def _watch(self) -> None:
        self.seen: list[bytes] = []
        self._steps = steps_of(self.public)
        self._decide, self._learn = self._release_then_select, self._learn_and_tell

    @classmethod
    def over(cls, rounds: Rounds) -> "WatchedRounds":
        """Watch the rounds of a learner from now on."""
        watched = cls.__new__(cls)
        watched.__dict__.update(rounds.__dict__)
        watched._watch()
        return watched

    @classmethod
    def of(cls, policy: Policy, problem: Problem, **options: Any) -> "WatchedRounds":
        """A policy's first state; people are distinguished where that is declared."""
        if problem.rounds_per_person is not None:
            options["people"] = People(problem.rounds_per_person, expected=1000, key=bytes(32))
        return cls(policy, problem, *policy.begin(problem), **options)

    def copied(self) -> "WatchedRounds":
        """All that may change; the problem does not."""
        return copy.deepcopy(self, {id(part): part for part in (self.problem, self.policy)})

    def _release_then_select(
        self, public: Any, secret: Any, context: Any, noise: Any, explore: Any
    ) -> Any:
        if not is_local(type(public)):
            public.release(secret, noise)
        self.seen += state_bytes(public)
        return public.select(context, explore)

    def _learn_and_tell(self, *arguments: Any) -> Any:
        message = self._steps.learn(*arguments)
        if message is not None:
            # What a message holds is seen, whether the server makes use of it or not.
            parts = message if isinstance(message, tuple) else (message,)
            self.seen += [b"".join(bits(part)) for part in parts]
        return message


class ReadRounds(WatchedRounds):
    """The same with what may be read after each decision, for a replay that compares records too."""

    def answer(self, opened: Round, reward: Any, noise: Any) -> Any:
        """And read the record."""
        message = super().answer(opened, reward, noise)
        reading = self.policy.released(self.problem, self.public)
        self.seen += [] if reading is None else state_bytes(vars(reading).values())
        return message


@np.errstate(over="ignore", invalid="ignore")  # some people have infinite features
def serve(learner: Learner, hers: tuple[Any, Any], **options: Any) -> Any:
    """A decision for somebody, answered at once, or skipped where her reward is missing; the action."""
    context, reward = hers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusableFeatures)  # some have no features at all
        warnings.simplefilter("ignore", ShortenedFeatures)  # others have huge ones
        warnings.simplefilter("ignore", LooseBound)  # or tiny ones
        ticket = learner.decide(*arguments(context), **options)
    values = np.ravel(bare(reward))[: np.size(ticket.action)]
    if np.isnan(values).any():
        learner.skip(ticket)
    else:
        learner.update(ticket, values if np.ndim(ticket.action) else float(values[0]))
    return ticket.action


def bits(value: Any) -> tuple[bytes, bytes]:
    """A value's type and its bits."""
    array = np.asarray(value)
    return array.dtype.str.encode(), array.tobytes()
