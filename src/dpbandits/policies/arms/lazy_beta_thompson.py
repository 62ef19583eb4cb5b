r"""Beta Thompson sampling on doubling batches that forget (Hu & Hegde 2022, Lazy-DP-TS)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numba.extending import register_jitable

from dpbandits.engine import Chance
from dpbandits.policies.arms import lazy_ucb
from dpbandits.policies.arms.shared.episodes import first_needed, is_known
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.sampling import beta_sample
from dpbandits.policies.released import Reading, of_last_batches
from dpbandits.policies.returning import OncePerBatch
from dpbandits.privacy.budgets import LAPLACE_OR_NONE
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms


class Public(lazy_ucb.Public):
    """The batches of `LazyUCB`, released and observed as there."""

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once; then a fresh sample for every arm, free of charge, and the largest."""
        arm = first_needed(self)
        return arm if arm >= 0 else _largest_sample(self, explore)


@register_jitable
def _largest_sample(public: Public, explore: Chance) -> int:
    best, highest = 0, -1.0
    spread = 3.0 * math.log(public.round[0] + 1.0)
    for arm in range(public.size.size):
        if is_known(public, arm):
            size = public.size[arm]
            wins = min(max(public.mean[arm] + spread * public.tail[arm], 0.0), 1.0) * size
            value = beta_sample(wins + 1.0, size - wins + 1.0, explore)
            if value > highest:
                best, highest = arm, value
    return best


@dataclass(frozen=True, kw_only=True)
class LazyBetaThompson(OncePerBatch):
    r"""Sample every arm's mean from a Beta posterior of its last batch, raised by the Laplace noise.

    **Definition.** Batches as in `LazyUCB`: 1, 2, 4, … decisions, each released once and then
    forgotten. Every arm once; then round t plays argmax_i θ_i with

        θ_i ~ Beta(p_i n_i + 1, (1 − p_i) n_i + 1),    p_i = x_i + 3 ln t/(ε n_i) clipped to [0, 1],

    x_i the released mean of the n_i decisions of the last full batch of arm i (the paper's O_i).
    Without privacy p_i = x_i.

    **Guarantee.** Neighbours replace one reward. It is in one batch, whose sum moves by at most 1 and is
    released once with Laplace(1/ε) noise; batch ends count decisions, samples are drawn from released
    sums. So all decisions together are ε-DP, for any number of rounds. A μ-GDP budget is met by the
    ε at which one such release is μ-GDP.

    **Regret.** O(Σ ln T/min(Δ_i, ε)) (Hu & Hegde 2022).

    >>> from dpbandits.privacy.budgets import PureDP
    >>> print(LazyBetaThompson(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = LAPLACE_OR_NONE
    paper: ClassVar[str] = "Hu & Hegde 2022, Lazy-DP-TS"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first batch open."""
        public, buffers = lazy_ucb.begin(problem, self.privacy)
        return Public(*public), buffers

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of the arms' last batches."""
        return of_last_batches("arm", public.batches, public.size, active=~public.away)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
