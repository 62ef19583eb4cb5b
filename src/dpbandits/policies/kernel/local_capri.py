r"""CAPRI in the local model (Pavlovic, Salgia & Zhao): people add the noise themselves."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Noise, NoSecret
from dpbandits.engine.state import Limits
from dpbandits.policies.kernel.capri import (
    EliminatingPolicy,
    Known,
    eliminate,
    elimination_limits,
    open_epoch,
    prepare_epoch,
)
from dpbandits.policies.kernel.shared.confidence import Confidence
from dpbandits.policies.kernel.shared.epochs import Array, LocalEpochs, shares_of
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy, send
from dpbandits.policies.messages import noisy_vector
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.problems.kernel_contexts import Features, KernelContexts, bounded


class _Fields(NamedTuple):
    round: NDArray[np.int64]  # (1,) messages so far
    next_pause: NDArray[np.int64]  # (1,) the message that ends the epoch
    epoch: NDArray[np.int64]  # (1,) r; 0 before the first
    length: NDArray[np.int64]  # (1,) T_r
    active: NDArray[np.bool_]  # (contexts, actions)
    table: Array  # cumulative, uniform over the active ones
    maps: Array  # (|W|, m) u(w) / reach
    reach: Array  # (1,) max |u(w)| over the active pairs of all contexts
    margin: Array  # (contexts, actions, actions)
    weights: Array  # κ
    features: Features
    confidence: Confidence
    scale: float  # of the noise in each message
    copies: bool
    known: Known
    total: Array  # the sum of the epoch's messages
    message: Array  # scratch of `report`
    step: float  # to which its numbers are rounded


class Public(LocalEpochs, _Fields):
    """As for `Capri`, with the sum of what people sent."""

    def limits(self) -> Limits:
        """Those of `Capri`."""
        return elimination_limits(self)

    def report(self, context: int, action: int, reward: float, noise: Noise) -> tuple[Array]:
        """u·y/reach with noise in every coordinate; the action is not part of it."""
        pair = context * self.table.shape[1] + action
        value = bounded(reward, self.confidence.bound)
        send(self.message, self.maps[pair], value, self.scale, self.step, noise)
        return (self.message,)

    def pause(self, secret: NoSecret, noise: Any) -> None:
        """Eliminate by the sum of all messages, open the next epoch."""
        if self.epoch[0] > 0:
            self.table[...] = eliminate(self, self.total)
            self.total[:] = 0.0
        open_epoch(self)
        prepare_epoch(self, shares_of(self.table, self.weights), noise)


@dataclass(frozen=True, kw_only=True)
class LocalCapri(LocalKernelPolicy, EliminatingPolicy):
    r"""`Capri` in the local model: every person adds the noise to her own u·y.

    **Definition.** As `Capri`, but a person in context c draws her action x from the broadcast table
    herself and sends

        u(c, x)·y/max|u| + N(0, (2B/μ)² I),

    and nothing else: the action would tell about her context. The server adds the T_r messages of an
    epoch up and scales them back, so that the noise of the sum is √T_r times that of `Capri`; τ is
    140/μ or 10, whichever is more, unless given. (The paper prints the statistic with
    ⁻¹ for ⁻¹ᐟ² and y_t for x_t.)

    **Guarantee.** Neighbours replace one person's context and reward, and with them her action. Her
    message is one Gaussian release of a vector of norm at most B: μ-GDP. It holds whatever the server
    broadcasts: she shortens u to the norm it should have, and bound and noise are numbers of her own.
    Numbers are sent without their last bits (`mechanisms/rounding.py`).

    **Regret.** Õ(√(γ_T T) + γ_T √T/ε) in the paper, with constants that keep it at uniform play in
    practice; `capri-regret` measures it.

    >>> from dpbandits.privacy.budgets import GaussianDP
    >>> policy, problem = LocalCapri(privacy=GaussianDP(1.0)), KernelContexts.testing.example(None)
    >>> server = policy.start(problem)
    >>> person = policy.person(problem, server.broadcast())
    >>> action = person.select(1)
    >>> server.receive(person.report(reward=0.5))
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    def ridge(self) -> float:
        """More noise, more regularisation."""
        if self.tau is not None:
            return self.tau
        return max(10.0, gaussian_scale(140.0, self.privacy))

    def parse_message(self, problem: KernelContexts, content: Any) -> tuple[Array]:
        """A vector that its noise can give."""
        size = problem.features().rows.shape[1]
        return noisy_vector(content, size, problem.max_reward, self._scale(problem))
