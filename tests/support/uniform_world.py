"""Arms that pay a uniform draw, to see a generator through a world."""

from dpbandits.engine import Chance
from dpbandits.policies.arms import UniformArms
from dpbandits.worlds import BernoulliArms
from dpbandits.worlds.arms import BernoulliWorld

__all__ = ["UniformArms", "UniformRewards"]


class UniformWorld(BernoulliWorld):
    def pay(self, context: None, action: int, chance: Chance) -> float:
        return chance.random()


class UniformRewards(BernoulliArms):
    def world(self) -> UniformWorld:
        return UniformWorld(*super().world())
