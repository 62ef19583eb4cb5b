r"""AdaP-KLUCB: KL-UCB on batches that double and are then forgotten (Azize & Basu 2022)."""

from dataclasses import dataclass
from typing import ClassVar

from dpbandits.policies.arms.shared.batched_index import ForgetfulIndex, Indexed, size_of, unit_interval
from dpbandits.policies.arms.shared.divergences import kl_upper


class Public(Indexed):
    """As every batched index, with `forgets` set; size is h, half of N after the first batches."""

    def index_of(self, arm: int, log_t: float) -> float:
        """The index of an arm that is known."""
        level = self.alpha * log_t / size_of(self, arm)
        raised = unit_interval(self.mean[arm] + level / self.epsilon)
        return kl_upper(raised, level)


@dataclass(frozen=True, kw_only=True)
class AdaptiveKLUCB(ForgetfulIndex):
    r"""As `AdaptiveUCB`, with the Bernoulli divergence in place of Hoeffding's bound.

    **Definition.** Every arm once. An episode that begins in round t goes to

        argmax_i  max{q : kl(x̆_i, q) ≤ α ln t/h_i},    x̆_i = x_i + α ln t/(ε h_i), clipped to [0, 1],

    with x_i the mean of arm i's last episode alone, of h_i decisions, plus Laplace(1/(ε h_i)) noise; it
    lasts until the arm's N_i decisions are 2N_i. The paper's ℓ counts episodes, its α is `alpha`.

    **Guarantee.** As `AdaptiveUCB`: every reward is in one episode, whose sum is released once with
    Laplace(1/ε) noise, so that all decisions together are ε-DP, or μ-GDP where ε = −2 ln(2Φ(−μ/2)).

    **Regret.** O(Σ Δ_i ln T/min(kl(x_i, x*), εΔ_i)) for α > 3; 3.1 in the paper's experiments. Without
    privacy x̆ is x.

    >>> from dpbandits.privacy.budgets import GaussianDP
    >>> from dpbandits.problems import Arms
    >>> print(AdaptiveKLUCB(privacy=GaussianDP(1.0)).guarantee(Arms(5)).budget)
    1-GDP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Azize & Basu 2022, AdaP-KLUCB"
    state: ClassVar = Public
