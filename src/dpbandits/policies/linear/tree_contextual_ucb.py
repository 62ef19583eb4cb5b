r"""Contextual UCB on Laplace trees (Mishra & Thakurta 2015, Algorithm 3), corrected."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.mechanisms.gram import pair_size, pair_widths
from dpbandits.policies.linear.shared.algebra import cholesky, invert, multiply, norm_bound
from dpbandits.policies.linear.shared.choosing import REACH
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.trees import (
    RELEASED,
    OncePerLeaf,
    TreeRows,
    TreeState,
    choose,
    close_leaf,
    close_vector_leaf,
    leaf_waits,
    read_block,
    start_tree_state,
)
from dpbandits.policies.released import Reading, Z
from dpbandits.privacy.budgets import EVERY_KIND, Budget, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearContexts
from dpbandits.sums.binary_tree import start_tree


class Settings(NamedTuple):
    """How much is explored."""

    alpha: float  # their α


class Contextual(TreeState):
    """V⁻¹ is the identity while the noisy matrix is not positive."""

    def release(self, secret: TreeRows, noise: Noise) -> None:
        """Release the last round's leaf and restate the regression."""
        if leaf_waits(self):
            close_leaf(self, secret, noise)
            restate_all(self)


class GammaNoise:
    """The verb of states whose nodes have the Gamma mechanism's noise."""

    def release(self: Any, secret: TreeRows, noise: Noise) -> None:
        """The same with one draw for all numbers of the node."""
        if leaf_waits(self):
            close_vector_leaf(self, secret, noise)
            restate_all(self)


class Public(Contextual):
    """The public state of `TreeContextualUCB`."""

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper bound."""
        return choose(self, context[0], self.settings.alpha, explore)


class GammaPublic(GammaNoise, Public):
    """The same with the Gamma mechanism's noise."""


@register_jitable(forceinline=True)
def restate_all(public: Any) -> None:
    """The regression of every block, from what is released."""
    for block in range(public.mean.shape[0]):
        read_block(public, block)
        _restate(public, block)


@register_jitable(forceinline=True)
def _restate(public: Any, block: int) -> None:
    size, shape = public.moment.size, public.shape[block]
    log_det = cholesky(public.gram, 1.0, public.lower, public.axes)
    if log_det == log_det:
        invert(public.lower, shape, public.axes)
    else:
        for i in range(size):
            for j in range(size):
                shape[i, j] = public.lower[i, j] = 1.0 if i == j else 0.0
    multiply(shape, public.moment, public.mean[block], public.axes)
    public.width[block, REACH] = norm_bound(shape, public.axes)


def row_change(dim: int, blocks: int = 1) -> float:
    """The most that replacing a row moves Σ (zzᵀ, zw) by in L1, upper triangles only.

    A row is at most (‖z‖₁² + ‖z‖₂²)/2 + ‖z‖₁ ≤ (d + 1)/2 + √d, and two differ by at most twice that.
    And by Cauchy and Schwarz Σ |v| ≤ ‖w‖₂ √(Σ v²/w²), the root being at most 1 for the widths of
    `pair_widths`. Where arms have `blocks` of their own, rows of different arms move two of them: the
    first bound stays, and the second is of the widths of both.

    >>> row_change(2), round(row_change(5), 3)
    (4.5, 8.216)
    """
    widths = np.tile(pair_widths(dim), min(blocks, 2))
    return min(dim + 1.0 + 2.0 * math.sqrt(dim), float(np.linalg.norm(widths)))


@dataclass(frozen=True, kw_only=True)
class TreeContextual(OncePerLeaf):
    """What Algorithms 3 and 4 share: the trees, and why they are private."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = LinearContexts
    accepts: ClassVar = EVERY_KIND
    needs_horizon: ClassVar[bool] = True
    compiles: ClassVar[bool] = True
    state: ClassVar[type[Contextual]]
    gamma_state: ClassVar[type[Contextual]]

    split: Annotated[
        Literal["none", "paper"],
        '"none": all numbers are one stream; "paper": a stream each, with equal parts of ε, as printed.',
    ] = "none"
    noise: Annotated[
        Literal["numbers", "gamma"],
        '"numbers": a draw for each number of a node; "gamma": one for all, by the Gamma mechanism.',
    ] = "numbers"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("none", "paper"), split=self.split)
        checks.one_of(("numbers", "gamma"), noise=self.noise)
        changed = self.split == "paper" or self.noise == "gamma"
        if changed and not isinstance(self.privacy, PureDP | NonPrivate):
            raise BudgetNotAccepted(
                f"the printed split and the Gamma mechanism are for PureDP, got {self.privacy!r}"
            )
        if self.split == "paper" and self.noise == "gamma":
            raise InvalidInput("the Gamma mechanism is for one stream of vectors: use split='none'")

    def begin(self, problem: LinearContexts) -> tuple[Any, Any]:
        """Empty trees."""
        self.delivered(problem)  # which may refuse
        dim, blocks = problem.dimension, problem.blocks
        leaves = None if problem.horizon is None else max(problem.horizon - 1, 1)
        widths, sensitivity = None, row_change(dim, blocks)
        if self.split == "paper":
            sensitivity = float(pair_size(dim))  # Lap(L/ε₀) for each
        elif self.noise == "gamma" or not isinstance(self.privacy, PureDP):
            widths, sensitivity = np.tile(pair_widths(dim), blocks), 1.0
        tree, secret = start_tree(
            1, blocks * pair_size(dim), sensitivity, self.privacy, leaves=leaves, widths=widths
        )
        private_vectors = self.noise == "gamma" and isinstance(self.privacy, PureDP)
        state = self.gamma_state if private_vectors else self.state
        settings = Settings(float(self._exploration()))
        return start_tree_state(state, problem, tree, secret, np.zeros((0, 4)), settings)

    def delivered(self, problem: LinearContexts) -> Budget:
        """The budget; with the printed split, what its noise is worth for rows of bounded norm."""
        if self.split == "none" or not isinstance(self.privacy, PureDP):
            return self.privacy
        dim = problem.dimension
        share = row_change(dim, problem.blocks) / pair_size(dim)
        if share > 1.0:
            raise InvalidInput(
                f"split='paper' is for numbers that move by at most 1 each: with {dim} features here it "
                f"is {PureDP(share * self.privacy.epsilon)}, not {self.privacy}"
            )
        return PureDP(share * self.privacy.epsilon)

    def _exploration(self) -> float:
        raise NotImplementedError

    def released(self, problem: LinearContexts, public: Contextual) -> Reading:
        """The regression, once the noisy matrix is positive.

        Its error is Ã⁻¹ times rewards' noise, of covariance Ã about, the noise in b̃ and that in Ãμ: with
        variances that add up to τ² for ‖μ‖ = 1 at most, the covariance is Ã⁻¹ + τ²Ã⁻².
        """
        tree, shape = public.tree, public.shape
        noise = tree.variance[0] * (tree.widths[0] ** 2 + tree.widths[-1] ** 2)
        learned = (shape != np.eye(problem.dimension)).any()
        known = bool(public.clock[RELEASED] > 0 and learned)
        return of_ellipsoid(problem, public.mean, shape + noise * (shape @ shape), Z, known=known)

    def refuses_exact_noise(self, problem: Any) -> str:
        """Noise of the Gamma mechanism is made of products."""
        if self.noise == "gamma":
            return "the Gamma mechanism's noise is no draw of a number around a location"
        return super().refuses_exact_noise(problem)

    def guarantee(self, problem: LinearContexts) -> Guarantee:
        """What is delivered, for any number of rounds."""
        return linear_guarantee(self.delivered(problem), problem, horizon=True)


@dataclass(frozen=True, kw_only=True)
class TreeContextualUCB(TreeContextual):
    r"""Play the largest upper bound of a regression on noisy sums, fresh in every round.

    **Definition.** In units of the bounds. Trees over rounds release Ã = I + Σ zzᵀ and b̃ = Σ zw
    before every round, and

        argmax_x  xᵀÃ⁻¹b̃ + α √(xᵀÃ⁻¹x),   α = `width`,

    while Ã is positive definite; otherwise Ã is replaced by I. Corrected: the paper prints √(xᵀÃx) and
    begins the tree (not the sum) with I.

    **Guarantee.** Neighbours replace one person's features and reward. The paper says differential
    privacy, but her features choose her own action, so only *joint* DP is possible. Her row is one leaf,
    of n = d(d+3)/2 numbers, in one node of each of L levels (`sums/binary_tree.py`). Under ε-DP:

    - Laplace noise on each number: replacing her moves a leaf by at most Δ₁ = `row_change` in L1, and
      Lap(LΔ₁/ε) does.
    - split="paper": n trees with ε₀ = 2ε/(d² + 3d) each, so Lap(L/ε₀) = Lap(Ln/ε), which is ε-DP where
      every number moves by at most 1. Rows of bounded norm move by less: it is (Δ₁/n)ε-DP, 0.41ε for
      d = 5, and that is what is reported. (For one feature it would be 1.5ε, and is refused.)
    - noise="gamma" (appendix A, `mechanisms/norm_gamma.py`): one draw for all numbers. With the widths w
      of `pair_widths` her row moves by at most 1 in L2, so the scale is L/ε, and the deviation of each
      number w √(n+1) L/ε: 6.9 and 9.7 L/ε for d = 5, where Laplace noise has √2 Δ₁ L/ε = 11.6 L/ε, the
      printed split 28 L/ε.

    Under Gaussian budgets the noise is that of `mechanisms/gram.py`, w √L/μ. A tree that is full is put
    aside and another begins on new people, so the guarantee does not end at the horizon.

    **Regret.** None is proved. Laplace noise keeps Ã indefinite for long, and it then plays by b̃ alone.

    >>> import dpbandits as dpb
    >>> policy = dpb.linear.TreeContextualUCB(privacy=dpb.PureDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5, horizon=1000)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Mishra & Thakurta 2015, Algorithm 3"
    state: ClassVar = Public
    gamma_state: ClassVar = GammaPublic

    width: Annotated[float, "A factor on the width of the confidence bounds."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.width(width=self.width)

    def _exploration(self) -> float:
        return self.width
