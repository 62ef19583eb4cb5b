"""Linear policies that are wrong on purpose; see `broken.py`."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandits.engine import Chance, Noise
from dpbandits.mechanisms.gram import add_row
from dpbandits.policies.linear import randomized_lin_ucb
from dpbandits.policies.linear.randomized_lin_ucb import RandomizedLinUCB
from dpbandits.policies.linear.shared.batched import END, ROUND, Rows
from dpbandits.policies.linear.shared.rows import GRID, grid_row, row_of
from dpbandits.policies.linear.tree_contextual_ucb import TreeContextualUCB, row_change
from dpbandits.policies.linear.tree_lin_ucb import TreeLinUCB
from dpbandits.policies.policy import Policy
from dpbandits.problems.linear import LinearProblem


@dataclass(frozen=True, kw_only=True)
class BrokenLinear(RandomizedLinUCB):
    """A `RandomizedLinUCB` in short batches, whose state class brings wrong verbs."""

    abstract: ClassVar[bool] = True
    first_batch: int | None = 2
    blocks: tuple[int, ...] | None = (2, 3)


class EvenDiagonal(BrokenLinear):
    """Noise of one scale in the whole upper triangle: the diagonal needs √2 of it."""

    abstract = True

    class state(randomized_lin_ucb.Public): ...

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Widths without the √2."""
        public, secret = super().begin(problem)
        widths, dim = public.batches.widths, problem.dimension
        widths[: widths.size - dim] = widths[: widths.size - dim].min()
        return public, secret


class UnnoisedGram(BrokenLinear):
    """Noise on the rewards' sums only, as if features were public."""

    abstract = True

    class state(randomized_lin_ucb.Public): ...

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """No noise in G."""
        public, secret = super().begin(problem)
        public.batches.widths[: public.batches.widths.size - problem.dimension] = 0.0
        return public, secret


class NoProjection(BrokenLinear):
    """Features used as they come."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def observe(self, secret: Rows, context: Any, action: int, reward: float) -> None:
            """Rewards are clipped, features are not."""
            features = context[0][row_of(context[0], action)]
            value = min(max(reward, -1.0), 1.0)
            if value == value and np.isfinite(features).all():
                secret.row[:] = features
                add_row(secret.buffers.open[0], secret.row, value, secret.row)
            self.clock[ROUND] += 1


class ForgottenBounds(BrokenLinear):
    """Features within their bound, but in their own units, under noise for a bound of 1."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def observe(self, secret: Rows, context: Any, action: int, reward: float) -> None:
            """Scaled up again by what they were scaled down by."""
            value = grid_row(secret.row, context[0], action, reward, self.max_norm, self.rewards, GRID)
            secret.row[:] *= self.max_norm
            add_row(secret.buffers.open[0], secret.row, value * self.rewards.largest, secret.row)
            self.clock[ROUND] += 1


class BatchesOfOneAction(BrokenLinear):
    """Batches end by how often the first action was played, which her features decide."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def observe(self, secret: Rows, context: Any, action: int, reward: float) -> None:
            """Only rounds of the first action count towards the end of the batch."""
            clock_end = self.clock[END]
            super().observe(secret, context, action, reward)
            if action != 0:
                self.clock[END] = clock_end + 1


class RemembersFeatures(BrokenLinear):
    """A score kept from one person to the next."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def select(self, context: Any, explore: Chance) -> int:
            """Keeps the best score it saw in public."""
            if math.isfinite(context[0][0, 0]):
                self.draw[0, 0] = max(self.draw[0, 0], context[0][0, 0])
            action: int = super().select(context, explore)
            return action


class MissingNotCounted(BrokenLinear):
    """A person without a reward is no round, so batches end later."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def observe(self, secret: Rows, context: Any, action: int, reward: float) -> None:
            """Rounds are counted by rewards received."""
            if reward == reward:
                super().observe(secret, context, action, reward)


class NoiseWhereShown(BrokenLinear):
    """No noise for arms with parameters of their own that nobody in the batch was shown."""

    abstract = True

    class state(randomized_lin_ucb.Public):
        def release(self, secret: Rows, noise: Noise) -> None:
            """Widths are 0 where the open batch has no rows."""
            widths = self.batches.widths.reshape(self.mean.shape[0], -1)
            usual, shown = widths.copy(), secret.buffers.open.reshape(widths.shape).any(axis=1)
            widths[~shown] = 0.0
            super().release(secret, noise)
            widths[:] = usual


@dataclass(frozen=True, kw_only=True)
class RowChangeOfOneArm(TreeContextualUCB):
    """As if who replaces her were always shown the same arm."""

    abstract: ClassVar[bool] = True

    def begin(self, problem: Any) -> tuple[Any, Any]:
        """Laplace noise for the rows of one arm."""
        public, secret = super().begin(problem)
        share = row_change(problem.dimension) / row_change(problem.dimension, problem.blocks)
        for scale in (public.tree.inner, public.tree.root):
            scale *= share
        return public, secret


@dataclass(frozen=True, kw_only=True)
class LinearTreeLevelShort(TreeLinUCB):
    """Noise for one level less than a leaf is in."""

    abstract: ClassVar[bool] = True

    def begin(self, problem: Any) -> tuple[Any, Any]:
        """√((m − 1)/m) of the noise."""
        public, secret = super().begin(problem)
        levels = public.tree.prefix.shape[1] - 1
        for scale in (public.tree.inner, public.tree.root):
            scale *= math.sqrt((levels - 1.0) / levels)
        return public, secret


@dataclass(frozen=True, kw_only=True)
class PaperSensitivity(TreeLinUCB):
    """An upper triangle of independent noise, calibrated as if it were symmetrised."""

    abstract: ClassVar[bool] = True

    def begin(self, problem: Any) -> tuple[Any, Any]:
        """All widths 1."""
        public, secret = super().begin(problem)
        public.tree.widths[:] = 1.0
        return public, secret


BROKEN_LINEAR: tuple[type[Policy], ...] = (
    BatchesOfOneAction,
    EvenDiagonal,
    ForgottenBounds,
    LinearTreeLevelShort,
    MissingNotCounted,
    NoProjection,
    PaperSensitivity,
    RemembersFeatures,
    UnnoisedGram,
)
# Where arms have parameters of their own: these two are right otherwise.
BROKEN_FOR_ARMS: tuple[type[Policy], ...] = (*BROKEN_LINEAR, NoiseWhereShown, RowChangeOfOneArm)
