"""Worlds that break one promise each: the controls of the conformance suite for environments."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba.extending import overload

from dpbandits.engine import Chance
from dpbandits.engine.verbs import INLINED
from dpbandits.problems import Arms, LinearContexts
from dpbandits.testing import worlds
from dpbandits.worlds import BernoulliArms, Environment, ShiftingArms, SphereContexts
from dpbandits.worlds.arms import BernoulliWorld
from dpbandits.worlds.changing_arms import ShiftingWorld


@dataclass(frozen=True)
class FaultyWorld(BernoulliArms):
    """Otherwise as `BernoulliArms`."""

    state: ClassVar[type[BernoulliWorld]] = BernoulliWorld

    def world(self) -> BernoulliWorld:
        return self.state(*super().world())


class ChangesWhatItIsGiven(FaultyWorld):
    """Another world after each round trip."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "means", tuple(0.5 * mean for mean in self.means))


class ForgetsTheHorizon(FaultyWorld):
    """Whatever the rounds."""

    def problem(self, rounds: int | None) -> Arms:
        return super().problem(None)


class LongerThanDeclared(SphereContexts):
    """Unit vectors, declared to be half as long."""

    def problem(self, rounds: int | None) -> LinearContexts:
        return LinearContexts(self.dim, max_norm=0.5, horizon=rounds)


class PaysTwo(FaultyWorld):
    """Rewards of 2, in a range up to 1."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            return 2.0 if chance.random() < 0.5 * self.means[action] else 0.0


class BestIsTooLow(FaultyWorld):
    """Regret can be negative."""

    def world(self) -> BernoulliWorld:
        return BernoulliWorld(np.array(self.means), min(self.means))


class BestIsTooHigh(FaultyWorld):
    """Nobody can be without regret."""

    def world(self) -> BernoulliWorld:
        return BernoulliWorld(np.array(self.means), 1.0)


class SaysItIsInHindsight(ShiftingArms):
    """But is settled against the best arm of each round."""

    def world(self) -> ShiftingWorld:
        return super().world()._replace(hindsight=False)


class BestDependsOnTheChoice(FaultyWorld):
    """In hindsight, of what was chosen only."""

    class state(BernoulliWorld):
        def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
            mean = self.means[action]
            return max(mean, 0.5 * self.best), mean, reward

    def in_hindsight(self) -> bool:
        return True


class PaysLess(FaultyWorld):
    """Nine tenths of what it says."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            return 1.0 if chance.random() < 0.9 * self.means[action] else 0.0


class PaysTheOthers(FaultyWorld):
    """Each arm pays like the next: right on average over all arms."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            return 1.0 if chance.random() < self.means[(action + 1) % self.means.size] else 0.0


class PaysManyOfAnother(FaultyWorld):
    """One by one rewards are right."""

    class state(BernoulliWorld):
        def pay_many(self, action: int, count: int, chance: Chance) -> float:
            return float(chance.binomial(count, 0.9 * self.means[action]))


class PaysManyAlike(FaultyWorld):
    """Of the right mean, but all of them or none."""

    class state(BernoulliWorld):
        def pay_many(self, action: int, count: int, chance: Chance) -> float:
            return count * self.pay(None, action, chance)


class DrawsForSomeOnly(FaultyWorld):
    """The first arm draws twice, so that what follows depends on what was chosen."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            if action == 0:
                chance.random()
            return 1.0 if chance.random() < self.means[action] else 0.0


class SettlesWithTraces(FaultyWorld):
    """Arms wear off when they are settled."""

    class state(BernoulliWorld):
        def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
            mean = float(self.means[action])
            self.means[action] *= 0.999
            return self.best, mean, reward


class OwnDice(FaultyWorld):
    """Another answer each time."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            return 1.0 if random.random() < self.means[action] else 0.0


def _paid(drawn: float, mean: float) -> float:
    return 1.0 if drawn < mean else 0.0


@overload(_paid, strict=False, jit_options=INLINED)
def _compiled_paid(drawn: float, mean: float) -> Any:
    return lambda drawn, mean: 1.0 if 1.0 - drawn < mean else 0.0


class CompiledOtherwise(FaultyWorld):
    """Of the same law, from the other end of the uniform."""

    class state(BernoulliWorld):
        def pay(self, context: None, action: int, chance: Chance) -> float:
            return _paid(chance.random(), self.means[action])


class UnderstatesUniformRegret(FaultyWorld):
    """Policies would look worse than they are."""

    def uniform_regret(self) -> float:
        return 0.95 * super().uniform_regret()


MEANS = (0.8, 0.5, 0.2)
WORLD_FAULTS: list[tuple[Environment, Callable[[Environment], None]]] = [
    (ChangesWhatItIsGiven(MEANS), worlds.check_world_recipe),
    (ForgetsTheHorizon(MEANS), worlds.check_problem),
    (LongerThanDeclared(dim=2, actions=3), worlds.check_problem),
    (PaysTwo(MEANS), worlds.check_rewards),
    (BestIsTooLow(MEANS), worlds.check_settle),
    (BestIsTooHigh(MEANS), worlds.check_settle),
    (BestDependsOnTheChoice(MEANS), worlds.check_settle),
    (SaysItIsInHindsight((MEANS, MEANS[::-1]), (60,)), worlds.check_settle),
    (PaysLess(MEANS), worlds.check_pay),
    (PaysTheOthers(MEANS), worlds.check_pay),
    (PaysManyOfAnother(MEANS), worlds.check_pay_many),
    (PaysManyAlike(MEANS), worlds.check_pay_many),
    (DrawsForSomeOnly(MEANS), worlds.check_chances),
    (SettlesWithTraces(MEANS), worlds.check_chances),
    (OwnDice(MEANS), worlds.check_compiled),
    (CompiledOtherwise(MEANS), worlds.check_compiled),
    (UnderstatesUniformRegret(MEANS), worlds.check_uniform_regret),
]
