"""Policies for matroids that are wrong on purpose, as in `broken.py`."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpbandits.policies.matroid import focused_matroid_ucb
from dpbandits.policies.matroid.focused_matroid_ucb import FocusedMatroidUCB
from dpbandits.policies.matroid.private_matroid_ucb import PrivateMatroidUCB
from dpbandits.policies.policy import Policy
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import centred
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.sums.batches import Buffers


@dataclass(frozen=True, kw_only=True)
class PrintedFirstLook(PrivateMatroidUCB):
    """All items of the first person released at ε/K each, as printed, and called ε-DP."""

    abstract: ClassVar[bool] = True
    calibration: Calibration = "paper"

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """What the paper's Theorem 1 says."""
        return replace(super().guarantee(problem), budget=self.privacy)


@dataclass(frozen=True, kw_only=True)
class BrokenFocus(FocusedMatroidUCB):
    """A `FocusedMatroidUCB` with short batches, whose state class brings wrong verbs."""

    abstract: ClassVar[bool] = True
    state: ClassVar[type[focused_matroid_ucb.Public]] = focused_matroid_ucb.Public
    fed: int | None = 1
    first_batch: int | None = 2

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """The usual state, in the class whose verbs are wrong."""
        public, secret = super().begin(problem)
        return self.state(*public), secret


class FeedsAll(BrokenFocus):
    """Noise for one item fed, and all items of the basis fed."""

    abstract = True

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """More items than the noise is for."""
        public, secret = super().begin(problem)
        return public._replace(fed=problem.rank), secret


class FeedsTheRated(BrokenFocus):
    """The item fed is the first that she rated, so that nothing is wasted on a 0."""

    abstract = True

    class state(focused_matroid_ucb.Public):
        def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
            """Which batch grows follows the rewards."""
            items, rewards = action[0], reward[0]
            self.round[0] += 1
            for place in range(items.size):
                if rewards[place] > 0.0:
                    item = items[place]
                    secret.open[item, 0] += centred(rewards[place])
                    self.open[item] += 1
                    if self.open[item] == self.length[item]:
                        self.full[0] += 1
                    return


class CountsRatings(BrokenFocus):
    """An item that she did not rate is left out of its batch, which ends after a number of ratings."""

    abstract = True

    class state(focused_matroid_ucb.Public):
        def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
            """The batch's end follows the rewards."""
            if reward[0][0] > 0.0:
                super().observe(secret, context, action, reward)
            else:
                self.round[0] += 1


class FeedsComparisons(BrokenFocus):
    """The item fed is compared with the next one of the basis; the noise is for one reward."""

    abstract = True

    class state(focused_matroid_ucb.Public):
        def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
            """A difference moves by 2 where the two rewards move in opposite directions."""
            super().observe(secret, context, action, reward)
            secret.open[action[0][0], 0] -= centred(reward[0][1])


class RemembersOneRating(BrokenFocus):
    """A round in which she rated the first item and not the second counts twice."""

    abstract = True

    class state(focused_matroid_ucb.Public):
        def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
            """What is counted follows the rewards, of some people only."""
            super().observe(secret, context, action, reward)
            if reward[0][0] > reward[0][1]:
                self.round[0] += 1


BROKEN_MATROIDS: tuple[type[Policy], ...] = (
    PrintedFirstLook,
    FeedsAll,
    FeedsTheRated,
    CountsRatings,
    FeedsComparisons,
    RemembersOneRating,
)
