"""Every arm equally often, whatever it pays: what learning has to beat."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, Limits
from dpbandits.policies.arms.shared.protection import no_guarantee
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms


class Secret(NamedTuple):
    """Rewards are not kept."""

    nothing: NDArray[np.float64]  # (0,)


class Public(NamedTuple):
    """Nothing is learned; only decisions are counted."""

    plays: NDArray[np.int64]  # decisions for each arm

    def limits(self) -> Limits:
        """It counts."""
        return {"plays": COUNT}

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.plays.sum())

    def release(self, secret: Secret, noise: Noise) -> None:
        """There is nothing to release."""

    def select(self, context: None, explore: Chance) -> int:
        """Any arm."""
        return int(explore.random() * self.plays.size)

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Count the decision."""
        self.plays[action] += 1


@dataclass(frozen=True, kw_only=True)
class UniformArms(WithoutBudget):
    r"""Play an arm drawn uniformly at random in every round.

    **Definition.** P[arm i in round t] = 1/N, independently.

    **Guarantee.** No reward is ever read, so the decisions show nothing about anyone. It is listed
    as not private because a budget of zero is no budget.

    **Regret.** T·(μ* − mean of all μ_i), linear: the reference that a private policy must beat.

    >>> print(UniformArms().guarantee(Arms(2)))
    No privacy guarantee: it reads no rewards, so there is nothing to protect.
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "dpbandits"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        return Public(np.zeros(problem.arms, np.int64)), Secret(np.zeros(0))

    def plays_uniform_below(self, problem: Arms) -> int:
        """At every horizon."""
        return 2**62

    def guarantee(self, problem: Arms) -> Guarantee:
        """None is needed."""
        return no_guarantee(problem, "it reads no rewards, so there is nothing to protect")
