r"""Thompson sampling on a kernel's posterior, from answers that people randomise themselves."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Noise, NoSecret
from dpbandits.engine.state import Limits
from dpbandits.mechanisms.randomized_response import heads, response_bias
from dpbandits.mechanisms.rounding import rounded
from dpbandits.policies.kernel.kernel_thompson import Posterior, PosteriorPolicy, next_table
from dpbandits.policies.kernel.shared.epochs import (
    Array,
    LocalEpochs,
    limits_of_maps,
    shares_of,
)
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy, send
from dpbandits.policies.kernel.shared.posterior import absorb_through
from dpbandits.policies.kernel.shared.protection import kernel_guarantee
from dpbandits.policies.messages import noisy_vector
from dpbandits.privacy.budgets import GAUSSIAN_FIRST, PureDP
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems.kernel_contexts import Features, KernelContexts, bounded

_SIDE = math.sqrt(2.0 / math.pi)  # E[sign⟨u, v⟩ u] = _SIDE·v for normal u and |v| = 1
_FIRST = 35.0  # rounds of the first epoch for each unit of the noise's variance
_LONGEST = 2**40  # more rounds than there will be


class _Fields(NamedTuple):
    round: NDArray[np.int64]  # (1,) messages so far
    next_pause: NDArray[np.int64]  # (1,) the message that ends the epoch
    length: NDArray[np.int64]  # (1,) of the epoch
    table: Array  # cumulative π(x | c)
    maps: Array  # (|W|, m) v(w)
    posterior: Posterior
    features: Features
    bias: float  # c of the coin; 0 where numbers with noise are sent
    scale: float  # of the noise
    total: Array  # the sum of the epoch's messages
    message: Array  # scratch of `report`
    step: float  # to which its numbers are rounded


class Public(LocalEpochs, _Fields):
    """The table a person chooses from, and what the server makes the next one of."""

    def limits(self) -> Limits:
        """Those of its epoch, and maps that are no longer than they should be."""
        return {**super().limits(), "maps": limits_of_maps(self.maps)}

    def report(self, context: int, action: int, reward: float, noise: Noise) -> tuple[Array]:
        """One bit about v·y, or v·y with noise in every coordinate; the action is not part of it."""
        pair = context * self.table.shape[1] + action
        value = bounded(reward, self.posterior.bound)
        if self.bias == 0.0:
            send(self.message, self.maps[pair], value, self.scale, self.step, noise)
            return (self.message,)
        along = 0.0
        for axis in range(self.message.size):
            self.message[axis] = rounded(noise.normal(0.0, self.scale), self.step)
            along += self.message[axis] * self.maps[pair, axis]
        half = 0.5 * value / self.posterior.bound
        if noise.binomial(1, heads(half if along > 0.0 else -half, self.bias)) == 0:
            for axis in range(self.message.size):
                self.message[axis] = -self.message[axis]
        return (self.message,)

    def pause(self, secret: NoSecret, noise: Any) -> None:
        """The posterior of all messages, the next table, and what to ask while it is played."""
        held, rows, length = self.posterior, self.features.rows, float(self.length[0])
        played = self.maps * shares_of(self.table, held.weights)[:, None]
        gain, z = length * played.T @ rows, length * played.T @ self.maps
        bound, variance = held.bound, length * self.scale**2
        if self.bias > 0.0:
            gain *= self.bias * _SIDE / bound
            bound = 0.0  # what rewards add to the covariance of u is nothing
        held.precision[...], held.evidence[...] = absorb_through(
            held.precision, held.evidence, gain, gain.T, z, self.total.copy(), bound, variance
        )
        self.table[...] = next_table(self, noise)
        self.maps[...] = questions(rows, held.precision)
        self.total[:] = 0.0


def questions(rows: Array, precision: Array) -> Array:
    """v(w) = L⁻¹φ(w)/|L⁻¹φ(w)| for LLᵀ = P: the coordinates in which all directions are as uncertain."""
    found = np.linalg.solve(np.linalg.cholesky(precision), rows.T).T
    length = np.sqrt(np.einsum("wm,wm->w", found, found))[:, None]
    return np.asarray(found / np.where(length > 0.0, length, 1.0))


@dataclass(frozen=True, kw_only=True)
class LocalKernelThompson(LocalKernelPolicy, PosteriorPolicy):
    r"""`KernelThompson` in the local model: every person randomises her own answer.

    **Definition.** Epochs, tables and posterior N(P⁻¹h, P⁻¹) are as for `KernelThompson`. A person in
    context c draws her action x from the broadcast table herself. With P = LLᵀ at the start of the
    epoch let v(w) = L⁻¹φ(w)/|L⁻¹φ(w)|, which is broadcast too: |v| = 1, and in these coordinates all
    directions are as uncertain. With v = v(c, x) she sends

    - *under ε-DP* u or −u, where u ~ N(0, I) is drawn whatever her data are, and kept with probability
      ½ + ½·tanh(ε/2)·(y/B)·sign⟨u, v⟩. This is one bit about one random direction; in expectation it is
      tanh(ε/2)·√(2/π)·v·y/B, and E[uuᵀ] = I bounds its covariance;
    - *under other budgets* v·y + N(0, (2B/μ)² I), of covariance at most B² vvᵀ + (2B/μ)² I;

    and nothing else: the action would tell about her context. The server adds the T_r messages of an
    epoch up. With the shares q(w) = κ(c)π_r(x|c) that is a measurement of Gθ, where G is
    T_r Σ_w q(w) v(w) φ(w)ᵀ times what multiplies v·y, of covariance at most C, that of T_r messages:
    P grows by GᵀC⁻¹G, h by GᵀC⁻¹ times the sum. All this is post-processing. The first epoch has 35
    rounds for each unit of the noise's variance over B², (π/2)/tanh²(ε/2) or 4/μ², and at least 100.

    In each coordinate a bit has a variance of 7.4 at ε = 1; Gaussian noise for (1, 10⁻⁵) has 56. So
    instead of (ε, δ)-DP with a small δ ask for `PureDP(ε)`, the stronger guarantee, as `recommend` does.

    **Guarantee.** Neighbours replace one person's context and reward, and with them her action. Under
    ε-DP already the pair of u and the coin is ε-DP, of which her message is made: u, rounded or not, is
    drawn whatever her data are, and given u both sides of the coin have probabilities within
    ½ ± ½·tanh(ε/2), the ratio of which is e^ε, because |y| ≤ B and whatever the server broadcasts. So it
    does no harm that the coin may be seen, as in the sign of a 0. It is exact but for 2⁻⁵³ of a coin
    (`randomized_response.py`). Under other budgets her message is one Gaussian release of a vector of
    norm at most B, since she shortens v to the norm it should have: μ-GDP; numbers are sent without
    their last bits (`mechanisms/rounding.py`). Bias, bound and noise are numbers of her own.

    **Regret.** No bound is proved. Noise grows with √T_r here, so that at ε = 1 some 10⁴ rounds are
    needed before much is learned; `start` warns where the declared horizon is too short. The server
    reads a message that answers an older broadcast by its newest map. That costs no privacy, but regret,
    the more the later messages are.

    >>> policy = LocalKernelThompson(privacy=PureDP(1.0))
    >>> problem = KernelContexts.testing.example(None)
    >>> server = policy.start(problem)
    >>> person = policy.person(problem, server.broadcast())
    >>> action = person.select(1)
    >>> server.receive(person.report(reward=0.5))
    """

    status: ClassVar[str] = "proved"
    accepts: ClassVar = GAUSSIAN_FIRST
    state: ClassVar = Public

    growth: Annotated[float, "An epoch is about this many times as long as all before it together."] = (
        0.25  # what is asked follows what is known
    )

    def _begin(self, problem: KernelContexts) -> dict[str, Any]:
        """Nothing is known, and every direction asked about."""
        fields = super()._begin(problem)
        rows = fields["features"].rows
        return fields | {"maps": questions(rows, np.eye(rows.shape[1])), "bias": self._bias()}

    def _bias(self) -> float:
        return response_bias(self.privacy) if isinstance(self.privacy, PureDP) else 0.0

    def _scale(self, problem: KernelContexts, features: Features | None = None) -> float:
        """Of her direction, or of the noise for a vector of norm B at most."""
        if isinstance(self.privacy, PureDP):
            return 1.0
        return gaussian_scale(2.0 * problem.max_reward, self.privacy)

    def deviation(self, bound: float) -> float:
        """A bit about v·y has that of u, scaled back."""
        if isinstance(self.privacy, PureDP):
            return bound / (self._bias() * _SIDE)
        return super().deviation(bound)

    def schedule(self) -> int:
        """The length of the first epoch; shorter ones would only be noise."""
        if self.first_epoch is not None:
            return self.first_epoch
        return min(_LONGEST, max(100, math.ceil(_FIRST * self.deviation(1.0) ** 2)))

    def parse_message(self, problem: KernelContexts, content: Any) -> tuple[Array]:
        """A vector that its noise can give."""
        size = problem.features().rows.shape[1]
        bound = 0.0 if isinstance(self.privacy, PureDP) else problem.max_reward
        return noisy_vector(content, size, bound, self._scale(problem))

    def draws_of_one(self, problem: Any) -> float:
        """A coin, or a number for each feature, of which there are at most as many as pairs."""
        return 1.0 if isinstance(self.privacy, PureDP) else super().draws_of_one(problem)

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """The budget itself, for her message."""
        return kernel_guarantee(self.privacy, problem, trust=Trust.LOCAL)
