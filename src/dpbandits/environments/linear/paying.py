"""Rewards and regret, the same in every linear world."""

from typing import Any

from dpbandits.engine import Chance, verb
from dpbandits.environments.linear.disjoint_contexts import DisjointWorld
from dpbandits.environments.linear.fixed_actions import FixedWorld, PublicWorld
from dpbandits.environments.linear.sphere_contexts import SphereWorld
from dpbandits.environments.linear.subspace_contexts import LowRankWorld, RotatingWorld, SwitchingWorld

LinearWorld = (
    DisjointWorld
    | FixedWorld
    | LowRankWorld
    | PublicWorld
    | RotatingWorld
    | SphereWorld
    | SwitchingWorld
)


@verb
def pay(world: LinearWorld, context: Any, action: int, chance: Chance) -> float:
    """A sign with the action's mean, or the mean plus a Gaussian; one draw either way."""
    mean: float = world.shown.means[action]
    if world.shown.gaussian:
        return mean + chance.standard_normal()
    return 1.0 if 2.0 * chance.random() < 1.0 + mean else -1.0


@verb
def settle(world: LinearWorld, context: Any, action: int, reward: float) -> tuple[float, float, float]:
    """The best mean, the action's mean, the reward."""
    return world.shown.best[0], world.shown.means[action], reward
