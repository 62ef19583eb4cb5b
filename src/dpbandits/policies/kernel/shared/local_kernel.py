"""What local policies for kernels share."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba.extending import register_jitable

from dpbandits.engine import Noise, NoSecret
from dpbandits.mechanisms.rounding import rounded, rounding_step
from dpbandits.policies.kernel.shared.epochs import Array
from dpbandits.policies.kernel.shared.outlook import short_horizon
from dpbandits.policies.local import LocalPolicy, Server
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.problems.kernel_contexts import KernelContexts


@register_jitable
def send(message: Array, vector: Array, value: float, scale: float, step: float, noise: Noise) -> None:
    """Write value·vector with noise in every coordinate, for a |value| that the noise is for.

    The vector is the server's: whatever it says, what she adds is no longer than her value, and is a
    number.
    """
    square = 0.0
    for axis in range(vector.size):
        square += vector[axis] * vector[axis]  # ** is not the same bits compiled
    usable = square < math.inf
    value = value / max(1.0, math.sqrt(square))
    for axis in range(vector.size):
        drawn = noise.normal(value * vector[axis] if usable else 0.0, scale)
        message[axis] = rounded(drawn, step)


@dataclass(frozen=True, kw_only=True)
class LocalKernelPolicy(LocalPolicy):
    """A person's message is a vector with noise in every coordinate."""

    abstract: ClassVar[bool] = True
    state: ClassVar[Any]

    def start(self, problem: Any, **options: Any) -> Server:
        """A server; warns where the horizon is too short for the budget."""
        server = super().start(problem, **options)
        run: Any = self.for_people(problem)
        said = short_horizon(problem, run.privacy, run.deviation(problem.max_reward))
        if said is not None:
            warnings.warn(said, UserWarning, stacklevel=2)
        return server

    def deviation(self, bound: float) -> float:
        """Of the noise in each coordinate of a message, for vectors of norm 1 and such rewards."""
        return gaussian_scale(2.0 * bound, self.privacy)

    def begin(self: Any, problem: KernelContexts) -> tuple[Any, Any]:
        """Uniform play, nothing known."""
        fields = self._begin(problem)
        size = fields["features"].rows.shape[1]
        room = {"total": np.zeros(size), "message": np.zeros(size)}
        return self.state(**fields, **room, step=rounding_step(fields["scale"])), NoSecret()

    def draws_of_one(self, problem: Any) -> float:
        """A number for each feature, of which there are at most as many as pairs."""
        return float(problem.pairs)
