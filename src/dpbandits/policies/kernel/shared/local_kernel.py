"""What local policies for kernels share."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandits.engine import NoSecret
from dpbandits.mechanisms.rounding import rounding_step
from dpbandits.policies.kernel.shared.outlook import warn_if_short
from dpbandits.policies.local import LocalPolicy, Server
from dpbandits.problems.kernel_contexts import KernelContexts


@dataclass(frozen=True, kw_only=True)
class LocalKernelPolicy(LocalPolicy):
    """A person's message is a vector with noise in every coordinate."""

    abstract: ClassVar[bool] = True
    state: ClassVar[Any]

    def start(self, problem: Any, **options: Any) -> Server:
        """A server; warns where the horizon is too short for the budget."""
        server = super().start(problem, **options)
        warn_if_short(problem, self.for_people(problem).privacy)
        return server

    def begin(self: Any, problem: KernelContexts) -> tuple[Any, Any]:
        """Uniform play, nothing known."""
        fields = self._begin(problem)
        size = fields["features"].rows.shape[1]
        room = {"total": np.zeros(size), "message": np.zeros(size)}
        return self.state(**fields, **room, step=rounding_step(fields["scale"])), NoSecret()

    def draws_of_one(self, problem: Any) -> float:
        """A number for each feature, of which there are at most as many as pairs."""
        return float(problem.pairs)
