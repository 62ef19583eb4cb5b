"""Policies that break one promise each: the controls of the conformance suite."""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from epoch_greedy import EpochGreedy, Public, Secret

from dpbandits import Arms, Budget, GaussianDP, NonPrivate, Policy, PureDP, RandomizedLinUCB
from dpbandits.arms import AdaptiveKLUCB, GaussianThompson
from dpbandits.engine import Chance, Noise
from dpbandits.local import LocalUCB
from dpbandits.policies.arms import adaptive_klucb, local_ucb
from dpbandits.policies.linear import randomized_lin_ucb
from dpbandits.policies.linear.shared import batched
from dpbandits.policies.released import Reading, of_sums
from dpbandits.problems.arms import centred
from dpbandits.sums.batches import Buffers
from dpbandits.testing import conformance


@dataclass(frozen=True, kw_only=True)
class Faulty(EpochGreedy):
    state: ClassVar[type[Public]] = Public

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        return self.state(*public), secret


class Undocumented(Faulty):
    """No sections at all."""


class AcceptsAnything(Faulty):
    __doc__ = EpochGreedy.__doc__

    def __post_init__(self) -> None:
        """Checks nothing."""


class OwnRandomness(Faulty):
    class state(Public):
        def select(self, context: None, explore: Chance) -> int:
            return int(random.random() * self.seen.size)


class Unclipped(Faulty):
    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            self.round[0] += 1
            self.open[action] += 1
            secret.buffer[action] += reward


class WrongTwin(Faulty):
    def twin(self) -> Policy:
        return GaussianThompson()


class ReadsTheHorizon(Faulty):
    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        public.next_pause[0] = (problem.horizon or 7) // 5
        return public, secret


_HIDDEN = np.zeros(1, np.int64)


class HidesState(Faulty):
    """Keeps something outside the two tuples, so a save cannot know it."""

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            _HIDDEN[0] += 1
            super().observe(secret, context, action, reward * (_HIDDEN[0] % 7) / 7)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        _HIDDEN[0] = 0
        return super().begin(problem)


class Grows(Faulty):
    """Keeps every reward."""

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            secret.buffer.append(reward)  # type: ignore[attr-defined]

        def pause(self, secret: Secret, noise: Noise) -> None:
            self.next_pause[0] = 10**9

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, _ = super().begin(problem)
        return public, Secret([0.0] * problem.arms)  # type: ignore[arg-type]


class PlaysUniformly(Faulty):
    class state(Public):
        def select(self, context: None, explore: Chance) -> int:
            return int(explore.random() * self.seen.size)


class ClaimsUniform(Faulty):
    def plays_uniform_below(self, problem: Arms) -> int:
        return 10**9


class TooLittleNoise(Faulty):
    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        return public._replace(scale=0.9 * public.scale), secret


class TooMuchNoise(Faulty):
    """Private, but the replay must say that it is far from the stated budget."""

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        return public._replace(scale=2.0 * public.scale), secret


@dataclass(frozen=True, kw_only=True)
class FaultyLocal(LocalUCB):
    state: ClassVar[type[local_ucb.Public]]

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        return self.state(*public), secret


class CountsInSelect(FaultyLocal):
    """A person counts the round in her own copy, where the server never sees it."""

    class state(local_ucb.Public):
        def select(self, context: None, explore: Chance) -> int:
            action = super().select(context, explore)
            self.round[0] += 20
            return action


class LessNoiseWhenTold(FaultyLocal):
    """A server that claims to have heard a million people gets half the noise."""

    class state(local_ucb.Public):
        def report(self, context: None, action: int, reward: float, noise: Noise) -> tuple[int, float]:
            told = 2.0 if self.round[0] >= 1_000_000 else 1.0
            return action, noise.normal(centred(reward), self.scale / told)


class GuessesWhatWaits(Faulty):
    """Right with one round at a time; with several, what waits is made up."""

    class state(Public):
        def wait(self, action: int, change: int) -> None:
            self.open[action] += int(random.random() * 2)


class PublishesWhatItDidNotChoose(Faulty):
    """Begins with arm 0; a reward of another arm can then only be an earlier system's, and is shown."""

    class state(Public):
        def select(self, context: None, explore: Chance) -> int:
            return 0 if self.round[0] < 3 else Public.select(self, context, explore)

        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            if self.round[0] < 3 and action != 0:
                self.released[action] += centred(reward)
            Public.observe(self, secret, context, action, reward)


_HELD: list[Secret] = []


class TellsTheSecret(Faulty):
    """Shows raw sums, kept where nobody looks for them."""

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        _HELD[:] = [secret]
        return public, secret

    def released(self, problem: Arms, public: Public) -> Reading:
        return of_sums("arm", _HELD[0].buffer, public.seen, 0.0)


class WaitsByAction(RandomizedLinUCB):
    """In the joint model, where the batch ends tells what somebody in flight was shown."""

    class state(randomized_lin_ucb.Public):
        def wait(self, action: int, change: int) -> None:
            self.clock[batched.END] += change * action


class KnowsTooMuch(AdaptiveKLUCB):
    """Says that the next batch is of the same arm."""

    class state(adaptive_klucb.Public):
        def rounds_ahead(self, action: int) -> int:
            return adaptive_klucb.Public.rounds_ahead(self, action) + 1


class ForgetsTheHalf(AdaptiveKLUCB):
    """Adds up rewards as they are, and not what they are above one half."""

    class state(adaptive_klucb.Public):
        def observe_many(self, secret: Buffers, action: int, count: int, total: float) -> None:
            adaptive_klucb.Public.observe_many(self, secret, action, count, total + 0.5 * count)


def _with(kind: type[Faulty], privacy: Budget | None = None) -> Faulty:
    return kind(privacy=privacy or GaussianDP(1.0))


FAULTS = [
    (_with(Undocumented), conformance.check_recipe),
    (_with(AcceptsAnything), conformance.check_budgets),
    (_with(OwnRandomness), conformance.check_three_ways),
    (_with(GuessesWhatWaits), conformance.check_in_flight),
    (KnowsTooMuch(privacy=PureDP(1.0)), conformance.check_leaps),
    (ForgetsTheHalf(privacy=PureDP(1.0)), conformance.check_leaps),
    (_with(Unclipped), conformance.check_rewards),
    (_with(WrongTwin, NonPrivate()), conformance.check_noise_off),
    (_with(ReadsTheHorizon), conformance.check_horizon),
    (_with(HidesState), conformance.check_save),
    (_with(Grows), conformance.check_memory),
    (_with(PlaysUniformly), conformance.check_beats_uniform),
    (_with(ClaimsUniform), conformance.check_beats_uniform),
    (_with(TooLittleNoise), conformance.check_replay),
    (_with(TooMuchNoise), conformance.check_replay),
    (WaitsByAction(privacy=GaussianDP(1.0)), conformance.check_replay_in_flight),
    (_with(PublishesWhatItDidNotChoose), conformance.check_history),
    (CountsInSelect(privacy=GaussianDP(1.0)), conformance.check_local),
    (_with(TellsTheSecret), conformance.check_released),
    (LessNoiseWhenTold(privacy=GaussianDP(1.0), rewards="bounded"), conformance.check_local),
]
