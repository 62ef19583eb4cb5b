"""The policies that are recommended, each on the problem it is measured on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.capri.setting import KERNELS, world
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.policies import Policy
from dpbandits.policies.arms import LazyThompson, NoiseAwareIMED
from dpbandits.policies.kernel import KernelThompson
from dpbandits.policies.linear import BatchedLinUCB, RandomizedLinUCB
from dpbandits.policies.matroid import FocusedMatroidUCB
from dpbandits.privacy.budgets import ApproxDP, GaussianDP
from dpbandits.reports.figures import band
from dpbandits.reports.styles import policy_style
from dpbandits.worlds import BernoulliArms, Environment, SphereContexts

# Neither sorted: policies that first try every arm do so in this order.
FIVE_ARMS = BernoulliArms((0.5, 0.25, 0.75, 0.375, 0.625))
# Neither tuned on nor looked at before.
SEED = 20_261


class Case(NamedTuple):
    """A policy on a world; `runs` at full scale."""

    policy: Policy
    world: Environment
    runs: int = 20


CASES: dict[str, Case] = {
    "NoiseAwareIMED": Case(NoiseAwareIMED(privacy=GaussianDP(1.0)), FIVE_ARMS),
    "LazyThompson": Case(LazyThompson(privacy=GaussianDP(1.0)), FIVE_ARMS),
    "FocusedMatroidUCB": Case(FocusedMatroidUCB(privacy=GaussianDP(1.0)), TABLE_2),
    "RandomizedLinUCB": Case(RandomizedLinUCB(privacy=ApproxDP(1.0, 1e-6)), SphereContexts()),
    "BatchedLinUCB": Case(BatchedLinUCB(privacy=ApproxDP(1.0, 1e-6)), SphereContexts()),
    "KernelThompson": Case(
        KernelThompson(privacy=ApproxDP(1.0, 1e-5)), world(KERNELS["squared exponential"], 0)
    ),
}


def draw_runs(
    axes: Any, places: Sequence[float], runs: Sequence[NDArray[np.float64]], policy: Policy
) -> None:
    """The mean of the runs at each place, shaded where most of them are."""
    style = policy_style(policy.name())
    axes.plot(places, [one.mean() for one in runs], **style)
    axes.fill_between(places, *band(np.stack(runs, axis=1)), color=style["color"], alpha=0.15, lw=0)
