r"""Thompson sampling on a kernel's posterior, from sums that people randomise themselves."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Noise, NoSecret
from dpbandits.mechanisms.rounding import rounded
from dpbandits.policies.kernel.kernel_thompson import Posterior, PosteriorPolicy, end_epoch
from dpbandits.policies.kernel.shared.epochs import (
    Array,
    LocalEpochs,
    shares_of,
)
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy
from dpbandits.policies.kernel.shared.protection import kernel_guarantee
from dpbandits.policies.messages import noisy_vector
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems.kernel_contexts import Features, KernelContexts, bounded


class _Fields(NamedTuple):
    round: NDArray[np.int64]  # (1,) messages so far
    next_pause: NDArray[np.int64]  # (1,) the message that ends the epoch
    length: NDArray[np.int64]  # (1,) of the epoch
    table: Array  # cumulative π(x | c)
    posterior: Posterior
    features: Features
    scale: float  # of the noise
    total: Array  # the sum of the epoch's messages
    message: Array  # scratch of `report`
    step: float  # to which its numbers are rounded


class Public(LocalEpochs, _Fields):
    """The table a person chooses from, and what the server makes the next one of."""

    def report(self, context: int, action: int, reward: float, noise: Noise) -> tuple[Array]:
        """φy with noise in every coordinate; the action is not part of it."""
        pair = context * self.table.shape[1] + action
        value = bounded(reward, self.posterior.bound)
        for axis in range(self.message.size):
            drawn = noise.normal(value * self.features.rows[pair, axis], self.scale)
            self.message[axis] = rounded(drawn, self.step)
        return (self.message,)

    def pause(self, secret: NoSecret, noise: Any) -> None:
        """The posterior of all messages, and the next table."""
        variance = int(self.length[0]) * self.scale**2
        shares = shares_of(self.table, self.posterior.weights)
        self.table[...] = end_epoch(self, self.total.copy(), variance, shares, noise)
        self.total[:] = 0.0


@dataclass(frozen=True, kw_only=True)
class LocalKernelThompson(LocalKernelPolicy, PosteriorPolicy):
    r"""`KernelThompson` in the local model: every person adds the noise to her own φy.

    **Definition.** As `KernelThompson`, but a person in context c draws her action x from the broadcast
    table herself and sends

        φ(c, x)·y + N(0, n² I),    n = 2B·max|φ|/μ,

    and nothing else: the action would tell about her context. The server adds the T_r messages of an
    epoch up, so that C_r = B² Z_r + T_r n² I; all else is post-processing. `spread` is smaller, and the
    first epoch 800/μ rounds, unless given.

    **Guarantee.** Neighbours replace one person's context and reward, and with them her action. Her
    message is one Gaussian release of a vector of norm at most B·max|φ|, so it is μ-GDP whatever the
    server broadcasts: features, bound and noise are her own, and the table only says how she chooses.
    Numbers are sent without their last bits (`mechanisms/rounding.py`).

    **Regret.** No bound is proved. Noise grows with √T_r here, so that at ε = 1 some 10⁵ rounds are
    needed before much is learned; `start` warns where the declared horizon is too short.

    >>> from dpbandits.privacy.budgets import GaussianDP
    >>> policy = LocalKernelThompson(privacy=GaussianDP(1.0))
    >>> problem = KernelContexts.testing.example(None)
    >>> server = policy.start(problem)
    >>> person = policy.person(problem, server.broadcast())
    >>> action = person.select(1)
    >>> server.receive(person.report(reward=0.5))
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    spread: Annotated[float, "A factor on the deviation of samples."] = (
        0.3  # noise explores enough by itself
    )

    def schedule(self) -> int:
        """The length of the first epoch; shorter ones would only be noise."""
        if self.first_epoch is not None:
            return self.first_epoch
        return max(100, math.ceil(gaussian_scale(800.0, self.privacy)))

    def parse_message(self, problem: KernelContexts, content: Any) -> tuple[Array]:
        """A vector that its noise can give."""
        features = problem.features()
        size, bound = features.rows.shape[1], problem.max_reward * features.radius
        return noisy_vector(content, size, bound, self._scale(problem, features))

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """The budget itself, for her message."""
        return kernel_guarantee(self.privacy, problem, trust=Trust.LOCAL)
