"""How wide CAPRI's confidence intervals are: calibrated, and with the paper's constants."""

import math
from typing import NamedTuple

import numpy as np

from dpbandits.policies.kernel.shared.epochs import Array, shares_of, uniform_table
from dpbandits.policies.kernel.shared.posterior import design
from dpbandits.policies.kernel.shared.projection import whitened
from dpbandits.policies.released import Z
from dpbandits.privacy.budgets import ApproxDP, Budget
from dpbandits.problems.kernel_contexts import KernelContexts


class Confidence(NamedTuple):
    """What margins are made of, all declared beforehand."""

    bound: float  # B
    norm: float  # of the mean reward
    tau: float
    width: float  # the factor on all of it
    failure: float  # δ
    pairs: int  # of actions of one context: |C||X|(|X| − 1)/2
    local: bool
    printed: bool
    slope: float  # β, printed only
    square: float  # β₁, printed only

    @classmethod
    def of(
        cls,
        problem: KernelContexts,
        privacy: Budget,
        *,
        printed: bool,
        width: float,
        failure: float,
        tau: float,
        local: bool,
    ) -> "Confidence":
        """For a problem; `printed` constants where they are asked for."""
        slope = square = 0.0
        if printed and isinstance(privacy, ApproxDP) and problem.horizon is not None:
            slope, square = printed_constants(problem, problem.horizon, privacy, failure, tau)
        bound, norm = float(problem.max_reward), float(problem.norm)
        pairs = max(1, problem.pairs * (len(problem.actions) - 1) // 2)
        return cls(bound, norm, tau, width, failure, pairs, local, printed, slope, square)

    def at(
        self, epoch: int, length: int, spans: Array, squares: Array, reach: float, scale: float
    ) -> Array:
        """By how much an estimated difference of two actions may be off after `length` rounds.

        `spans` are |u(w) − u(w')|², `squares` |(Z + τI)⁻¹(φ(w) − φ(w'))|², `reach` is max |u|, and
        `scale` that of the noise on the release of Σ u·y/reach, or on each person's term of it.
        """
        noisy = math.sqrt(length) if self.local else 1.0
        if self.printed:
            return np.full_like(spans, 4.0 * (self.slope * reach + noisy * self.square * reach**2))
        level = math.log(4.0 * self.pairs * epoch * (epoch + 1) / self.failure)
        norms = np.sqrt(spans)
        variance = np.maximum(spans - self.tau * squares, 0.0)
        data = self.bound * (np.sqrt(2.0 * level * variance) + 2.0 / 3.0 * level * norms * reach)
        bias = self.tau * self.norm * np.sqrt(squares)
        noise = noisy * scale * reach * norms * math.sqrt(2.0 * level)
        return np.asarray(self.width * (data + bias + noise))

    def half(self, length: int, spans: Array, squares: Array, reach: float, scale: float) -> Array:
        """The half-width of an interval for a pair's own mean, at about 95 %, from the same numbers: the
        deviation of rewards and noise, and all of the bias.
        """
        data = self.bound**2 * np.maximum(spans - self.tau * squares, 0.0)
        noise = (length if self.local else 1.0) * (scale * reach) ** 2 * spans
        return np.asarray(Z * np.sqrt(data + noise) + self.tau * self.norm * np.sqrt(squares))


def printed_constants(
    problem: KernelContexts, horizon: float, privacy: ApproxDP, failure: float, tau: float
) -> tuple[float, float]:
    """(β, β₁) of Lemma 6.6 at δ/(|W| T ln T)."""
    bound, log = problem.max_reward, math.log(horizon)
    share = failure / (problem.pairs * horizon * log)
    many = math.log(168.0 * horizon / share)
    slope = (
        90.0 * bound * math.sqrt(many)
        + 52.0 * bound * math.sqrt(many * math.log(12.0 / share) / tau)
        + 3.0 * bound * math.sqrt(2.0 * math.log(6.0 / share))
        + math.sqrt(24.0 * tau)
    )
    split = math.sqrt(math.log(1.25 * log / privacy.delta))
    return slope, 8.0 * bound * log / privacy.epsilon * math.log(3.0 / share) * split


def first_useful_horizon(
    problem: KernelContexts, privacy: ApproxDP, failure: float, tau: float, local: bool
) -> int:
    """The least power of two at which the printed widths could drop anything: 4Δ_r < 2B."""
    rows, shares = problem.features().rows, shares_of(uniform_table(problem), problem.context_weights())
    horizon, unit = 1024, design(rows, shares, 1)
    while horizon < 2**62:
        # The last epoch that ends before the horizon.
        first = math.ceil(math.sqrt(horizon))
        last = first * 2 ** max(0, math.ceil(math.log2(horizon / first + 1.0)) - 2)
        maps, _ = whitened(rows, last * unit, tau)
        reach = math.sqrt(float(np.max(np.einsum("wm,wm->w", maps, maps))))
        slope, square = printed_constants(problem, horizon, privacy, failure, tau)
        noisy = math.sqrt(last) if local else 1.0
        if 4.0 * (slope * reach + noisy * square * reach**2) < 2.0 * problem.max_reward:
            break
        horizon *= 2
    return horizon
