"""Every action equally often, whatever it pays: what learning has to beat."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise, NoSecret
from dpbandits.engine.state import COUNT, Limits
from dpbandits.policies.kernel.shared.protection import no_guarantee
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.kernel_contexts import KernelContexts


class Public(NamedTuple):
    """Nothing is learned; only decisions are counted."""

    round: NDArray[np.int64]  # (1,)
    actions: int

    def limits(self) -> Limits:
        """It counts."""
        return {"round": COUNT}

    def release(self, secret: NoSecret, noise: Noise) -> None:
        """There is nothing to release."""

    def select(self, context: int, explore: Chance) -> int:
        """Any action."""
        return int(explore.random() * self.actions)

    def observe(self, secret: NoSecret, context: int, action: int, reward: float) -> None:
        """Count the decision."""
        self.round[0] += 1


@dataclass(frozen=True, kw_only=True)
class UniformKernelActions(WithoutBudget):
    r"""Play an action drawn uniformly at random in every round.

    **Definition.** P[action x in round t] = 1/|X|, independently, whatever the context.

    **Guarantee.** No context or reward is ever read, so the decisions show nothing about anyone. It is
    listed as not private because a budget of zero is no budget.

    **Regret.** Linear: the reference that a private policy must beat.

    >>> print(UniformKernelActions().guarantee(KernelContexts.testing.example(None)))
    No privacy guarantee: it reads no rewards, so there is nothing to protect.
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = KernelContexts
    paper: ClassVar[str] = "dpbandits"

    def begin(self, problem: KernelContexts) -> tuple[Any, Any]:
        """Nothing played yet."""
        return Public(np.zeros(1, np.int64), len(problem.actions)), NoSecret()

    def plays_uniform_below(self, problem: KernelContexts) -> int:
        """At every horizon."""
        return 2**62

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """None is needed."""
        return no_guarantee(problem, "it reads no rewards, so there is nothing to protect")
