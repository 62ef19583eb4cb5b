"""Kernel policies that are wrong on purpose; see `broken`."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbandits.engine import Noise
from dpbandits.policies.kernel import capri, kernel_thompson, local_kernel_thompson
from dpbandits.policies.kernel.capri import Capri
from dpbandits.policies.kernel.kernel_thompson import KernelThompson
from dpbandits.policies.kernel.local_kernel_thompson import LocalKernelThompson
from dpbandits.policies.kernel.shared.epochs import Array, Sums, renew
from dpbandits.policies.policy import Policy
from dpbandits.problems import KernelContexts


@dataclass(frozen=True, kw_only=True)
class SupportOnly(Capri):
    """CAPRI's noise as printed: calibrated to the contexts that come by κ, not to those that may."""

    abstract: ClassVar[bool] = True
    first_epoch: int | None = 7

    class state(capri.Public):
        def pause(self, secret: Sums, noise: Any) -> None:
            """The largest |u| over pairs of contexts whose weight is above 0."""
            super().pause(secret, noise)
            norms = np.sqrt(np.sum(self.maps**2, axis=1)).reshape(self.active.shape)
            largest = np.max(norms[self.active & (self.weights > 0.0)[:, None]])
            self.maps[...] /= largest
            self.reach[0] *= largest


class CountingSecret(NamedTuple):
    """The open epoch, with how often each pair really came."""

    sums: Array
    counts: Array


@dataclass(frozen=True, kw_only=True)
class RealisedDesign(KernelThompson):
    """The design is made of the pairs that really came, which is a release without noise."""

    abstract: ClassVar[bool] = True
    first_epoch: int | None = 7
    draws: int = 5

    class state(kernel_thompson.Public):
        def observe(self, secret: Any, context: int, action: int, reward: float) -> None:
            """Count her pair."""
            secret.counts[context * self.table.shape[1] + action] += 1.0
            super().observe(secret, context, action, reward)

        def pause(self, secret: Any, noise: Any) -> None:
            """Z = Σ φφᵀ over the people who came."""
            location = np.einsum("wm,w->m", self.features.rows, secret.sums)
            released = noise.normal(location, self.scale)
            shares = secret.counts / self.length[0]
            table = kernel_thompson.end_epoch(self, released, self.scale**2, shares, noise)
            renew(self, table, self.posterior.weights)
            secret.sums[:] = 0.0
            secret.counts[:] = 0.0

    def begin(self, problem: KernelContexts) -> tuple[Any, Any]:
        """Counts as well as sums."""
        public, secret = super().begin(problem)
        return public, CountingSecret(secret.sums, np.zeros(problem.pairs))


@dataclass(frozen=True, kw_only=True)
class TellsTheAction(LocalKernelThompson):
    """The sign of the first number says which action she had, and so tells about her context."""

    abstract: ClassVar[bool] = True
    first_epoch: int | None = 7

    class state(local_kernel_thompson.Public):
        def report(self, context: int, action: int, reward: float, noise: Noise) -> tuple[Array]:
            """As it should be about context and reward alone."""
            (message,) = super().report(context, action, reward, noise)
            message[0] = abs(message[0]) * (1.0 if action == 1 else -1.0)
            return (message,)


BROKEN_KERNELS: tuple[type[Policy], ...] = (SupportOnly, RealisedDesign, TellsTheAction)
