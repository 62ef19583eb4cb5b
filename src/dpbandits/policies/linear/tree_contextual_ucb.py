r"""Contextual UCB on Laplace trees (Mishra & Thakurta 2015, Algorithm 3), corrected."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance, Noise
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
    leaf_waits,
    read_block,
    start_tree_state,
)
from dpbandits.policies.released import Reading, Z
from dpbandits.privacy.budgets import EVERY_KIND, PureDP
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
            for block in range(self.mean.shape[0]):
                read_block(self, block)
                _restate(self, block)


class Public(Contextual):
    """The public state of `TreeContextualUCB`."""

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper bound."""
        return choose(self, context[0], self.settings.alpha, explore)


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

    def begin(self, problem: LinearContexts) -> tuple[Any, Any]:
        """Empty trees."""
        dim, blocks = problem.dimension, problem.blocks
        leaves = None if problem.horizon is None else max(problem.horizon - 1, 1)
        if isinstance(self.privacy, PureDP):
            widths, sensitivity = None, row_change(dim, blocks)
        else:
            widths, sensitivity = np.tile(pair_widths(dim), blocks), 1.0
        tree, secret = start_tree(
            1, blocks * pair_size(dim), sensitivity, self.privacy, leaves=leaves, widths=widths
        )
        settings = Settings(float(self._exploration()))
        return start_tree_state(self.state, problem, tree, secret, np.zeros((0, 4)), settings)

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

    def guarantee(self, problem: LinearContexts) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return linear_guarantee(self.privacy, problem, horizon=True)


@dataclass(frozen=True, kw_only=True)
class TreeContextualUCB(TreeContextual):
    r"""Play the largest upper bound of a regression on noisy sums, fresh in every round.

    **Definition.** In units of the bounds. Trees over rounds release Ã = I + Σ zzᵀ and b̃ = Σ zw
    before every round, and

        argmax_x  xᵀÃ⁻¹b̃ + α √(xᵀÃ⁻¹x),   α = `width`,

    while Ã is positive definite; otherwise Ã is replaced by I. Corrected: the paper prints √(xᵀÃx),
    begins the tree (not the sum) with I, and gives ε₀ = 2ε/(d² + 3d) to each of d(d+3)/2 trees, which
    is for entries of sensitivity 1; here one vector tree has its sensitivity in L1.

    **Guarantee.** Neighbours replace one person's features and reward. The paper says differential
    privacy, but her features choose her own action, so only *joint* DP is possible. Replacing her
    moves a leaf by at most `row_change` in L1, and the leaf is in one node per level of the tree
    (`sums/binary_tree.py`), each a Laplace release. Under Gaussian budgets the noise is that of
    `mechanisms/gram.py`. A tree that is full is put aside and another begins on new people, so the
    guarantee does not end at the horizon.

    **Regret.** None is proved. Laplace noise keeps Ã indefinite for long, and it then plays by b̃ alone.

    >>> import dpbandits as dpb
    >>> policy = dpb.linear.TreeContextualUCB(privacy=dpb.PureDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5, horizon=1000)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Mishra & Thakurta 2015, Algorithm 3"
    state: ClassVar = Public

    width: Annotated[float, "A factor on the width of the confidence bounds."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.width(width=self.width)

    def _exploration(self) -> float:
        return self.width
