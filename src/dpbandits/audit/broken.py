"""Policies that are wrong on purpose. Each must be caught: a detector that never fired is none.

Each is a real policy with one mistake that looks harmless in code, and all print the guarantee they
do not deliver.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dpbandits.audit.broken_identification import BROKEN_IDENTIFICATION
from dpbandits.audit.broken_kernels import BROKEN_KERNELS
from dpbandits.audit.broken_linear import BROKEN_LINEAR
from dpbandits.audit.broken_matroids import BROKEN_MATROIDS
from dpbandits.engine import Noise
from dpbandits.policies.arms import gaussian_thompson, lazy_thompson
from dpbandits.policies.arms.gaussian_thompson import Public, Secret
from dpbandits.policies.arms.lazy_thompson import LazyThompson
from dpbandits.policies.arms.modified_thompson import ModifiedThompson
from dpbandits.policies.arms.tree_ucb import TreeUCB
from dpbandits.policies.policy import Policy
from dpbandits.privacy.budgets import Budget, GaussianDP
from dpbandits.problems import Arms
from dpbandits.sums.batches import Buffers


@dataclass(frozen=True, kw_only=True)
class BrokenThompson(ModifiedThompson):
    """A `ModifiedThompson` whose state class brings wrong verbs."""

    abstract: ClassVar[bool] = True  # in no table of recipes: nobody can ask for one by name
    state: ClassVar[type[Public]]

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The usual state, in the class whose verbs are wrong."""
        public, secret = super().begin(problem)
        return self.state(*public), secret


class HalfNoise(BrokenThompson):
    """Half the noise."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """The scale divided by two."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    self.sample[arm] = noise.normal(secret.mean[arm], self.scale[arm] / 2.0)


class DataUsedTwice(BrokenThompson):
    """The same data drawn twice a round and averaged, for less noise."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """Two draws around the same secret."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    first = noise.normal(secret.mean[arm], self.scale[arm])
                    second = noise.normal(secret.mean[arm], self.scale[arm])
                    self.sample[arm] = (first + second) / 2.0


class UnnoisedFirstDraw(BrokenThompson):
    """The first decision after the pre-pulls is made on the raw means."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """Noise from the second draw on."""
            first = self.draws[0] == 0
            super().release(secret, noise)
            if first and self.needed[0] == 0:
                self.sample[:] = secret.mean


class RawSumOutsideDraw(BrokenThompson):
    """The secret is added beside noise around 0: right in distribution, but nothing shows that it is."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """The secret passes by the draw."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    self.sample[arm] = secret.mean[arm] + noise.normal(0.0, self.scale[arm])


class UnnoisedTieBreak(BrokenThompson):
    """Draws rounded to a grid, ties broken by the raw means."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """A millionth of the secret decides between equals."""
            super().release(secret, noise)
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    self.sample[arm] = round(self.sample[arm], 3) + 1e-6 * secret.mean[arm]


class ScaleFromData(BrokenThompson):
    """The width of the noise follows the estimated variance, which is made of the data."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """A Bernoulli standard deviation as scale."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    mean = secret.mean[arm]
                    width = math.sqrt(max(mean * (1.0 - mean), 0.01)) / 0.5
                    self.sample[arm] = noise.normal(mean, self.scale[arm] * width)


class DrawsWhenUnsure(BrokenThompson):
    """No fresh draw for an arm whose raw mean is low anyway: *whether* it draws is a leak."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """The number of draws follows the data."""
            if self.needed[0] == 0:
                for arm in range(self.counts.size):
                    if secret.mean[arm] > 0.2:
                        self.sample[arm] = noise.normal(secret.mean[arm], self.scale[arm])


class ReadByTwoPhases(BrokenThompson):
    """The pre-pulls' means are released at the full budget, then read again by the draws."""

    abstract = True

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            """One release more, priced as if its data were not used again."""
            if self.needed[0] == 0 and self.draws[0] == 0:
                for arm in range(self.counts.size):
                    noise.normal(secret.mean[arm], 1.0 / (self.counts[arm] + 1.0))
            super().release(secret, noise)


class CountsRewardsReceived(BrokenThompson):
    """A round without a reward is not counted, so a missing reward moves the schedule."""

    abstract = True

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            """Nothing happens for a missing reward."""
            if reward == reward:
                super().observe(secret, context, action, reward)


class NoClipping(BrokenThompson):
    """Rewards enter the sums as they come."""

    abstract = True

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            """One reward of 10⁹ shifts a mean by 10⁹/n."""
            super().observe(secret, context, action, 0.5)
            if reward == reward:
                secret.total[action] += min(max(reward, -1e100), 1e100) - 0.5
                count = self.counts[action]
                secret.mean[action] = (secret.total[action] + 0.5 * count) / (count + 1.0)


class ShortHorizon(BrokenThompson):
    """Noise calibrated to half of the rounds that are played."""

    abstract = True
    state = Public

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The scales of a shorter problem."""
        assert problem.horizon is not None
        prepulls, _ = self.scales(problem)
        draws = problem.horizon - prepulls * problem.arms
        shorter = Arms(problem.arms, horizon=problem.horizon - draws // 2)
        return gaussian_thompson.begin(problem.arms, prepulls, self._variance_scale(shorter, prepulls))


@dataclass(frozen=True, kw_only=True)
class BrokenTree(TreeUCB):
    """A `TreeUCB` whose nodes have the noise of too few levels."""

    abstract: ClassVar[bool] = True
    # Plays one arm until its tree has all its levels.
    confidence: Literal["theory", "chernoff"] = "chernoff"

    def levels(self, levels: int, leaves: int) -> float:
        """How many levels the noise is calibrated to."""
        raise NotImplementedError

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The usual state with less noise in every node."""
        public, secret = super().begin(problem)
        levels = public.tree.prefix.shape[1] - 1
        share = self.levels(levels, self._leaves(problem)) / levels
        scale = public.tree.inner * (share if public.tree.laplace else math.sqrt(share))
        return public._replace(tree=public.tree._replace(inner=scale, root=scale)), secret


class TreeLevelShort(BrokenTree):
    """A tree with the noise of one level too few, as if a leaf were not a node itself."""

    abstract = True

    def levels(self, levels: int, leaves: int) -> float:
        """Log2 T, as printed, where T is a power of two."""
        return levels - 1.0


class TreeNaturalLog(BrokenTree):
    """A tree calibrated to ln n levels, where it has ⌊log2 n⌋ + 1."""

    abstract = True

    def levels(self, levels: int, leaves: int) -> float:
        """What a careless reading of "log T" gives."""
        return math.log(leaves)


@dataclass(frozen=True, kw_only=True)
class LaplaceFactorized(LazyThompson):
    """Laplace noise on block-factorized sums, calibrated with the L2 norm of Gaussian noise."""

    abstract: ClassVar[bool] = True

    class state(lazy_thompson.Public):
        def release(self, secret: Buffers, noise: Noise) -> None:
            """Everything as it should be but for the shape of the noise."""
            super().release(secret, _AsLaplace(noise))  # type: ignore[arg-type]

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Blocks of eight short batches, at the scale that would be right for Gaussian noise."""
        size = self.privacy.size
        short = LazyThompson(privacy=GaussianDP(size), first_batch=1, growth=0.01, block=8)
        public, secret = short.begin(problem)
        return self.state(*public), secret


class _AsLaplace:
    """Draws Laplace where Gaussian is asked for."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def normal(self, loc: float, scale: float) -> float:
        return self._noise.laplace(loc, scale)


BROKEN: tuple[type[Policy], ...] = (
    HalfNoise,
    DataUsedTwice,
    UnnoisedFirstDraw,
    RawSumOutsideDraw,
    UnnoisedTieBreak,
    ScaleFromData,
    DrawsWhenUnsure,
    ReadByTwoPhases,
    CountsRewardsReceived,
    NoClipping,
    ShortHorizon,
    TreeLevelShort,
    TreeNaturalLog,
    LaplaceFactorized,
    *BROKEN_IDENTIFICATION,
    *BROKEN_LINEAR,
    *BROKEN_MATROIDS,
    *BROKEN_KERNELS,
)


def broken_policies(privacy: Budget) -> list[Policy]:
    """One of each, at this budget."""
    return [kind(privacy=privacy) for kind in BROKEN]
