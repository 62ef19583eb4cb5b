r"""DP-IMED: the least evidence against, on cumulative batches (Azize et al. 2025)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dpbandits.policies.arms.shared.batched_index import CumulativeIndex, Indexed, size_of, unit_interval
from dpbandits.policies.arms.shared.divergences import private_kl
from dpbandits.policies.arms.shared.episodes import is_known


class Public(Indexed):
    """As every batched index; nothing is forgotten, so size is N. The score is minus the index."""

    def restate(self) -> None:
        """The index of every arm that is known."""
        best = 0.0
        for arm in range(self.size.size):
            if is_known(self, arm):
                best = max(best, unit_interval(self.mean[arm]))
        for arm in range(self.size.size):
            if is_known(self, arm):
                mean, size = unit_interval(self.mean[arm]), size_of(self, arm)
                # Against 1 the evidence is ε·n·(1 − x): means equal to rounding must count as equal.
                evidence = size * private_kl(mean, best, self.epsilon) if mean < best - 1e-9 else 0.0
                self.score[arm] = -evidence - math.log(size)


@dataclass(frozen=True, kw_only=True)
class PrivateIMED(CumulativeIndex):
    r"""Play the arm that the least evidence speaks against, by a divergence that knows the noise.

    **Definition.** Every arm has batches that end after n = `first_batch` decisions, then after
    ⌈(1 + g)·n⌉ with g = `growth` (the paper's α is 1 + g, its first batch is 1). At each end the batch's
    sum plus Laplace(1/ε) noise is added to the arm's sum; x_i is that over n_i, clipped to [0, 1]. Once
    every arm has had its first batch, the next goes to

        argmin_i  n_i·d_ε(x_i, max_j x_j) + ln n_i,    d_ε(x, y) = min_z ε|z − x| + kl(z, y),

    ties broken at random. Closed forms are in `shared/divergences.py`.

    **Guarantee.** As `PrivateKLUCB`: every reward is in one batch, whose sum is released once with
    Laplace(1/ε) noise, so that all decisions together are ε-DP, or μ-GDP where ε = −2 ln(2Φ(−μ/2)).

    **Regret.** (1 + g)·Σ Δ_i ln T/d_ε(x_i, x*) + o(ln T) for Bernoulli rewards: the lower bound up to
    the factor. For other rewards in [0, 1] it is as private and still learns. Single runs can be bad,
    more often than those of `PrivateKLUCB`: what a first batch of 1 says under a small ε is all noise,
    and is believed for long. `NoiseAwareIMED` is the remedy. Without privacy d_ε is kl.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> from dpbandits.problems import Arms
    >>> print(PrivateIMED(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Azize, Wu, Honda et al. 2025, DP-IMED"
    state: ClassVar = Public
