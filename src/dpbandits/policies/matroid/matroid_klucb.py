r"""KL-OSM (Talebi & Proutière 2016), without privacy."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpbandits import checks
from dpbandits.policies.arms.shared.divergences import kl_upper
from dpbandits.policies.matroid.shared.exact_means import ExactMeans, ExactPolicy


class Public(ExactMeans):
    """Exact means."""

    def restate(self) -> None:
        """The index of every item."""
        done = int(self.round[0])
        level = math.log(done + 1.0)
        level = max(level + self.option * math.log(level), 0.0)
        for item in range(self.score.size):
            self.score[item] = self.mean[item]
            if self.plays[item] > 0:
                mean = min(max(self.mean[item], 0.0), 1.0)
                self.score[item] = kl_upper(mean, level / (self.plays[item] + self.waiting[item]))


@dataclass(frozen=True, kw_only=True)
class MatroidKLUCB(ExactPolicy):
    r"""Play the basis whose items' means could be highest, judged by the Bernoulli divergence (KL-OSM).

    **Definition.** In round t play the basis of the largest total weight Σ U_e with

        U_e = max{q : T_e·kl(ŵ_e, q) ≤ ln t + c ln ln t},

    ŵ_e the mean of the T_e rewards of item e, c = `loglog`, 3 in the paper; items never played first.
    Decisions in flight count in T_e, as if they had come back alike; where nothing has come back, the
    items with the fewest of them come first.

    **Guarantee.** None: decisions follow exact means.

    **Regret.** Σ_e Δ_e ln T/kl(w_e, w_e + Δ_e) + o(ln T), which no policy can improve on for
    independent Bernoulli rewards (Talebi & Proutière 2016).

    >>> from dpbandits.problems import MatroidBases, UniformMatroid
    >>> MatroidKLUCB().start(MatroidBases(UniformMatroid(4, 2)), seed=1).select().size
    2
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Talebi & Proutière 2016, KL-OSM"
    state: ClassVar = Public

    loglog: Annotated[float, "The factor of ln ln t in the index: 3 in proofs, 0 in practice."] = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.width(loglog=self.loglog)

    def option(self) -> float:
        """The factor of ln ln t."""
        return self.loglog
