r"""DP-KLUCB: KL-UCB on cumulative batches, by a divergence that knows the noise (Azize et al. 2025)."""

from dataclasses import dataclass
from typing import ClassVar

from dpbandits.policies.arms.shared.batched_index import CumulativeIndex, Indexed, size_of, unit_interval
from dpbandits.policies.arms.shared.divergences import private_kl_upper


class Public(Indexed):
    """As every batched index; nothing is forgotten, so size is N."""

    def index_of(self, arm: int, log_t: float) -> float:
        """The index of an arm that is known."""
        level = self.alpha * log_t / size_of(self, arm)
        return private_kl_upper(unit_interval(self.mean[arm]), level, self.epsilon)


@dataclass(frozen=True, kw_only=True)
class PrivateKLUCB(CumulativeIndex):
    r"""Play the arm whose mean could be highest, judged by a divergence that knows the privacy noise.

    **Definition.** Every arm has batches that end after n = `first_batch` decisions, then after
    ⌈(1 + g)·n⌉ with g = `growth` (the paper's α is 1 + g, its first batch is 1). At each end the batch's
    sum plus Laplace(1/ε) noise is added to the arm's sum; x_i is that over n_i, clipped to [0, 1]. Once
    every arm has had its first batch, a batch that begins in round t goes to

        argmax_i  max{q : d_ε(x_i, q) ≤ ln t/n_i},    d_ε(x, y) = min_z ε|z − x| + kl(z, y),

    ties broken at random. Closed forms are in `shared/divergences.py`.

    **Guarantee.** Neighbours replace one reward. It is in one batch, whose sum has sensitivity 1 and is
    released once with Laplace(1/ε) noise; when a batch ends and which arm is next are functions of
    released sums and counts of decisions, and adding released sums is free. Given the same results, all
    other releases are alike, so all decisions together cost that one release (parallel composition,
    adaptively): ε-DP for any number of rounds, and μ-GDP where ε = −2 ln(2Φ(−μ/2)).

    **Regret.** (1 + g)·Σ Δ_i ln T/d_ε(x_i, x*) + o(ln T) for Bernoulli rewards: the lower bound up to
    the factor. For other rewards in [0, 1] it is as private and still learns. Single runs can be bad: a
    first batch of 1 under a small ε is all noise. Without privacy d_ε is kl.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> from dpbandits.problems import Arms
    >>> print(PrivateKLUCB(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Azize, Wu, Honda et al. 2025, DP-KLUCB"
    state: ClassVar = Public
