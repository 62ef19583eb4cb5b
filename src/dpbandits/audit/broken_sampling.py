"""What only sampling can see: policies right in every verb whose runs are wrong all the same.

Replay draws from a generator of its own and runs plain Python, so it passes each of these.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numba.extending import overload

from dpbandits.audit.broken import BrokenThompson, DataUsedTwice, HalfNoise
from dpbandits.audit.playing import Resume, save_and_load
from dpbandits.audit.sampling import PUBLIC, Sampled, sample
from dpbandits.audit.scripts import Design
from dpbandits.engine import Noise, Streams
from dpbandits.engine.streams import Seed
from dpbandits.engine.verbs import INLINED
from dpbandits.policies.arms.gaussian_thompson import Public, Secret
from dpbandits.policies.arms.noise_aware_imed import NoiseAwareIMED
from dpbandits.policies.learner import Learner
from dpbandits.policies.policy import Policy
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GaussianDP, PureDP
from dpbandits.problems import Arms


class OddTesting(PolicyTesting):
    """Learners on the generators of an `OddStreams`."""

    def rehearse(self, policy: Any, problem: Any, *, seed: Seed, **options: Any) -> Learner:
        """As usual but for the generators."""
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        public, secret = policy.begin(problem)
        streams = policy.streams(root)
        return Learner(policy, problem, public, secret, streams, seeded=True, **options)


@dataclass(frozen=True, kw_only=True)
class OddStreams(NoiseAwareIMED):
    """A `NoiseAwareIMED` whose learners are given other generators than they should have."""

    abstract: ClassVar[bool] = True

    testing: ClassVar[PolicyTesting] = OddTesting()

    def streams(self, seed: np.random.SeedSequence) -> Streams:
        """The generators of a learner."""
        raise NotImplementedError


class FewSeeds(OddStreams):
    """A generator seeded by a clock of eight ticks: its first draws are one of eight."""

    abstract = True

    def streams(self, seed: np.random.SeedSequence) -> Streams:
        """Seeded by three random bits."""
        return Streams.of(int(seed.generate_state(1)[0]) % 8)


class CutTails(OddStreams):
    """Noise from a sampler that never goes beyond one scale: a far result tells her reward for sure."""

    abstract = True

    def streams(self, seed: np.random.SeedSequence) -> Streams:
        """With the noise cut off."""
        streams = Streams.of(seed)
        return streams._replace(noise=cast(np.random.Generator, _Cut(streams.noise)))


class _Cut:
    """Draws again until a draw is near its location."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def normal(self, loc: float, scale: float) -> float:
        while abs(drawn := self._generator.normal()) > 1.0:
            pass
        return loc + scale * drawn

    def laplace(self, loc: float, scale: float) -> float:
        while abs(drawn := self._generator.laplace()) > 1.0:
            pass
        return loc + scale * drawn


class CompiledWithoutNoise(BrokenThompson):
    """Noise in plain Python, and none in the compiled form."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """Through a function with a form of its own for the compiler."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    self.sample[arm] = _drawn(noise, secret.mean[arm], self.scale[arm])


def _drawn(noise: Any, location: float, scale: float) -> float:
    return float(noise.normal(location, scale))


@overload(_drawn, strict=False, jit_options=INLINED)
def _compiled_drawn(noise: Any, location: float, scale: float) -> Any:
    return lambda noise, location, scale: location


def noise_used_again(learner: Learner) -> Learner:
    """A load that puts the generator back by two draws, so that noise that was seen is drawn again."""
    loaded = save_and_load(learner)
    generator = cast(np.random.PCG64, loaded._streams.noise.bit_generator)
    generator.advance(2**128 - 2)
    return loaded


def _six_rounds(policy: Policy) -> Design:
    """In batches of one the third release is the first after a load halfway."""
    rewards = np.full((2, 6, 2), 0.5)
    rewards[0, 0], rewards[1, 0] = 0.0, 1.0
    return Design("six rounds", policy, Arms(2, horizon=6), rewards)


class BrokenRun(NamedTuple):
    """A control: what is wrong, with which policy, in which form, and how it is loaded."""

    wrong: str
    policy: Policy
    form: str
    resume: Resume | None = None

    def sample(self, runs: int, error: float) -> Sampled:
        """As any policy is, on one short design."""
        options: Any = {"form": self.form, "resume": self.resume, "designs": [_six_rounds(self.policy)]}
        return sample(self.policy, runs=runs, error=error, views=(PUBLIC,), **options)


_BATCHES: Any = {"first_batch": 1, "block": 1}
# Right in all that replay looks at.
UNSEEN_BY_REPLAY = (
    BrokenRun("a generator of eight seeds", FewSeeds(privacy=PureDP(1.0), **_BATCHES), "plain"),
    BrokenRun("Gaussian noise without tails", CutTails(privacy=GaussianDP(1.0), **_BATCHES), "plain"),
    BrokenRun(
        "noise used again after a load",
        NoiseAwareIMED(privacy=PureDP(1.0), **_BATCHES),
        "reloaded",
        noise_used_again,
    ),
    BrokenRun(
        "a compiled form without noise", CompiledWithoutNoise(privacy=GaussianDP(1.0)), "simulated"
    ),
)
BROKEN_RUNS = (
    *UNSEEN_BY_REPLAY,
    BrokenRun("half the noise", HalfNoise(privacy=GaussianDP(1.0)), "simulated"),
    BrokenRun("data used twice", DataUsedTwice(privacy=GaussianDP(1.0)), "simulated"),
)
