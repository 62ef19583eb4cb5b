"""Exp3 (Auer, Cesa-Bianchi, Freund & Schapire 2002): for arms that may change, without privacy."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.policies.arms.shared.exponential_weights import Weights, of_released, start_weights
from dpbandits.policies.arms.shared.protection import no_guarantee
from dpbandits.policies.released import Reading
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms


@dataclass(frozen=True, kw_only=True)
class Exp3(WithoutBudget):
    r"""Draw an arm by exponential weights of what arms have paid, each reward divided by its odds.

    **Definition.** As `PrivateExp3` without noise: round t + 1 plays arm i with probability

        p_i = (1 − γ)·exp(η Ĝ_i)/Σ_j exp(η Ĝ_j) + γ/K,

    after which Ĝ of the arm grows by (r − ½)/p. η = min(√(ln K/(2.55 K(t + 1))), 1/(2K)), γ = ηK.
    `rate` is a factor on the root. With a `memory` of m rounds every reward first multiplies all Ĝ by
    e^{−1/m}, and t is m at most.

    **Guarantee.** None: draws follow exact rewards.

    **Regret.** At most (1 + o(1))·√(10.2·KT ln K) against the best fixed arm, for any rewards that were
    fixed beforehand (`PrivateExp3` has the proof, with c = 1.275). None is claimed with a `memory`.

    >>> learner = Exp3().start(Arms(2), seed=1)
    >>> learner.select() in (0, 1)
    True
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "Auer, Cesa-Bianchi, Freund & Schapire 2002"

    rate: Annotated[float, "A factor on the learning rate; 1 is that of the bound."] = 1.0
    memory: Annotated[int | None, "Rounds after which what was learned fades; by default never."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(rate=self.rate)
        if self.memory is not None:
            checks.integer(least=1, memory=self.memory)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet; every round is a batch."""
        return start_weights(problem, self.privacy, 1, self.rate, self.memory)

    def released(self, problem: Arms, public: Weights) -> Reading:
        """The means of all rewards."""
        return of_released(public)

    def guarantee(self, problem: Arms) -> Guarantee:
        """None, with the reason."""
        return no_guarantee(problem, "Exp3 decides on exact rewards")
