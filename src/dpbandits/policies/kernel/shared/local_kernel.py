"""What local policies for kernels share."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dpbandits.engine.streams import Seed
from dpbandits.policies.kernel.shared.outlook import warn_if_short
from dpbandits.policies.local import LocalPolicy, Server


@dataclass(frozen=True, kw_only=True)
class LocalKernelPolicy(LocalPolicy):
    """A person's message is a vector with noise in every coordinate."""

    abstract: ClassVar[bool] = True

    def start(self, problem: Any, *, seed: Seed = None, broadcast: bytes | None = None) -> Server:
        """A server; warns where the horizon is too short for the budget."""
        server = super().start(problem, seed=seed, broadcast=broadcast)
        warn_if_short(problem, self.for_people(problem).privacy)
        return server

    def draws_of_one(self, problem: Any) -> float:
        """A number for each feature, of which there are at most as many as pairs."""
        return float(problem.pairs)
