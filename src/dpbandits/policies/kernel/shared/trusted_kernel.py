"""What policies for kernels share whose learner is trusted with raw data."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandits.policies.kernel.shared.epochs import Sums, shares_of, start_tables, uniform_table
from dpbandits.policies.returning import OncePerBatch
from dpbandits.problems.kernel_contexts import KernelContexts


@dataclass(frozen=True, kw_only=True)
class TrustedKernelPolicy(OncePerBatch):
    """Rewards are added up pair by pair, and released when an epoch ends."""

    abstract: ClassVar[bool] = True
    one_slot: ClassVar[bool] = True
    state: ClassVar[Any]

    def begin(self: Any, problem: KernelContexts) -> tuple[Any, Any]:
        """Uniform play, nothing known."""
        shares = shares_of(uniform_table(problem), problem.context_weights())
        public = self.state(
            **self._begin(problem),
            waiting=np.zeros(1, np.int64),
            tables=start_tables(shares),
            bound=float(problem.max_reward),
        )
        return public, Sums(np.zeros(problem.pairs))
