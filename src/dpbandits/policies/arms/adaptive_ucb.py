r"""AdaP-UCB: UCB on batches that double and are then forgotten (Azize & Basu 2022)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from numba.extending import register_jitable

from dpbandits.engine import Chance
from dpbandits.policies.arms.batched_index import ForgetfulIndex, Indexed, log_round, play_batch, size_of
from dpbandits.policies.arms.choosing import largest
from dpbandits.policies.arms.episodes import arm_in_turn, is_known


class Public(Indexed):
    """As every batched index, with `forgets` set; size is h, half of N after the first batches."""

    def select(self, context: None, explore: Chance) -> int:
        """Go on with the episode; otherwise the arm of the largest index, until it has doubled."""
        arm = arm_in_turn(self)
        return arm if arm >= 0 else play_batch(self, _choose(self, explore))


@register_jitable
def _choose(public: Public, explore: Chance) -> int:
    log_t = log_round(public)
    for arm in range(public.size.size):
        public.score[arm] = -math.inf
        if is_known(public, arm):
            size = size_of(public, arm)
            width = math.sqrt(public.alpha * (log_t + math.log(2.0)) / (2.0 * size))
            public.score[arm] = public.mean[arm] + width + public.alpha * log_t / (public.epsilon * size)
    return largest(public.score, explore)


@dataclass(frozen=True, kw_only=True)
class AdaptiveUCB(ForgetfulIndex):
    r"""Play the arm of the highest upper bound until its plays double; forget what was before.

    **Definition.** Every arm once. An episode that begins in round t goes to

        argmax_i  x_i + √(α ln(2t)/(2h_i)) + α ln t/(ε h_i),

    with x_i the mean of arm i's last episode alone, of h_i decisions, plus Laplace(1/(ε h_i)) noise; it
    lasts until the arm's N_i decisions are 2N_i. The paper's ℓ counts episodes, its α is `alpha`.

    **Guarantee.** Neighbours replace one reward. It is in one episode, whose sum has sensitivity 1 and
    is released once with Laplace(1/ε) noise; when an episode ends and which arm is next are functions
    of released sums and counts of decisions. Given the same results, all other releases are alike, so
    all decisions together cost that one release (parallel composition, adaptively): ε-DP for any number
    of rounds, and μ-GDP where ε = −2 ln(2Φ(−μ/2)).

    **Regret.** O(Σ ln T/Δ_i + ln T/ε) for α > 3; 3.1 in the paper's experiments. Without privacy the
    last term of the index is 0.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> from dpbandits.problems import Arms
    >>> print(AdaptiveUCB(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    paper: ClassVar[str] = "Azize & Basu 2022, AdaP-UCB"
    state: ClassVar = Public
