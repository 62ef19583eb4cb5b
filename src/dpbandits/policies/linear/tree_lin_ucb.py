r"""Linear UCB with changing regularisers on a private tree (Shariff & Sheffet 2018, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance, Noise, static_size
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.mechanisms.gram import add_square, augmented_widths, pair_size, triangle_size
from dpbandits.mechanisms.wishart import draw_wishart, wishart_dof
from dpbandits.policies.linear.lin_ucb import LinUCB
from dpbandits.policies.linear.shared.choosing import RADIUS
from dpbandits.policies.linear.shared.confidence import ConfidentPolicy, estimate, radius
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.trees import (
    RELEASED,
    ROUND,
    Array,
    OncePerLeaf,
    TreeRows,
    TreeState,
    choose,
    close_leaf,
    leaf_waits,
    read_block,
    start_tree_state,
)
from dpbandits.policies.policy import Policy
from dpbandits.policies.released import Reading
from dpbandits.privacy.budgets import GAUSSIAN_KINDS, ApproxDP, Budget, GaussianDP, NonPrivate
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearContexts
from dpbandits.sums.binary_tree import finish_leaf, merge_leaf, start_tree, tree_levels

RIDGE, LOW, HIGH, GAMMA = 0, 1, 2, 3
# L̃² = ‖z‖² + w² in units of the bounds.
_ROW = 2.0


class Settings(NamedTuple):
    """What the confidence set is made of, and the noise where that is Wishart's."""

    sigma: float  # σ
    size: float  # S
    level: float  # ln(2/α)
    dof: int  # degrees of freedom of a node's noise
    norm: float  # L̃


class Gaussian(TreeState):
    """`regularizers` holds the shift, ρ_min, ρ_max, γ."""

    def release(self, secret: TreeRows, noise: Noise) -> None:
        """Release the last round's leaf and restate the confidence set."""
        if leaf_waits(self):
            close_leaf(self, secret, noise)
            for block in range(self.mean.shape[0]):
                read_block(self, block)
                _restate(self, block)

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper confidence bound."""
        return choose(self, context[0], 1.0, explore)


class Wishart(TreeState):
    """The same; `padding` has one row, of zeros."""

    def release(self, secret: TreeRows, noise: Noise) -> None:
        """The same with a Wishart matrix for the node's noise."""
        if leaf_waits(self):
            _close_wishart(self, secret, noise)
            _read_wishart(self, 0)
            _restate(self, 0)

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper confidence bound."""
        return choose(self, context[0], 1.0, explore)

    def observe(self, secret: TreeRows, context: Any, action: int, reward: float) -> None:
        """Put the outer product of (z, w) into the open leaf and count the round."""
        size = secret.row.size - 1
        value = grid_row(
            secret.row[:size], context[0], action, reward, self.max_norm, self.rewards, GRID
        )
        secret.row[size] = value
        add_square(secret.leaves.open[0], secret.row, secret.axes)
        self.clock[ROUND] += 1


class PaddedWishart(Wishart):
    """The same with noise of m nodes in every round; row i of `padding` is that of i without data."""

    def release(self, secret: TreeRows, noise: Noise) -> None:
        """Draw the padding once; then as above, with the noise of nodes that are not in the sum."""
        first = self.padding[-1, 0] == 0.0  # afterwards a sum of squares
        if first:
            _draw_padding(self, secret, noise)
        if first or leaf_waits(self):
            if leaf_waits(self):
                _close_wishart(self, secret, noise)
            _read_wishart(self, self.padding.shape[0] - 1 - int(self.tree.live[0]))
            _restate(self, 0)


@register_jitable(forceinline=True)
def _restate(public: Any, block: int) -> None:
    now = public.regularizers[public.tree.live[0]]
    mean, shape, width = public.mean[block], public.shape[block], public.width[block]
    log_det = estimate(
        public.gram, public.moment, now[RIDGE], mean, shape, public.lower, width, public.axes
    )
    dim, level = float(mean.size), public.settings.level
    width[RADIUS] = radius(level, log_det, dim, now[LOW], now[HIGH], now[GAMMA], public.settings)


@register_jitable(forceinline=True)
def _draw_padding(public: Wishart, secret: TreeRows, noise: Noise) -> None:
    """Each matrix around the sum of those before, and none around data."""
    dof, norm, rows = public.settings.dof, public.settings.norm, public.padding
    for nodes in range(1, rows.shape[0]):
        draw_wishart(noise, rows[nodes - 1], rows[nodes], dof, norm, secret.matrix, secret.axes)


@register_jitable(forceinline=True)
def _close_wishart(public: Wishart, secret: TreeRows, noise: Noise) -> None:
    public.clock[RELEASED] = public.clock[ROUND]
    tree, leaves = public.tree, secret.leaves
    place = merge_leaf(tree, leaves, 0)
    node = tree.prefix[0, place + 1]
    dof, norm = public.settings.dof, public.settings.norm
    draw_wishart(noise, leaves.nodes[0, place], node, dof, norm, secret.matrix, secret.axes)
    for axis in range(node.size):
        node[axis] += tree.prefix[0, place, axis]
    finish_leaf(tree, 0, place, 0.0)


@register_jitable(forceinline=True)
def _read_wishart(public: Wishart, unused: int) -> None:
    """The released sum and the noise of so many nodes that are not in it, as `gram` and `moment`."""
    total, padding, size, entry = public.tree.total[0], public.padding[unused], public.moment.size, 0
    for i in range(size):
        for j in range(i, size):
            public.gram[i, j] = public.gram[j, i] = total[entry] + padding[entry]
            entry += 1
        public.moment[i] = total[entry] + padding[entry]
        entry += 1


@dataclass(frozen=True, kw_only=True)
class TreeLinUCB(OncePerLeaf, ConfidentPolicy):
    r"""Play the largest upper bound of a confidence set made from a private tree, fresh in every round.

    **Definition.** In units of the bounds (the paper's L = B̃ = 1, so L̃² = 2). A binary tree over rounds
    holds Σ ããᵀ of rows ã = (z, w); before round t its prefix gives G̃ and ũ, V = G̃ + shift and

        argmax_x  θ̂·x + β √(xᵀV⁻¹x),   θ̂ = V⁻¹ũ,   β by Proposition 4 (`shared/confidence.py`), α = 1/n.

    `noise="gaussian"` (their 4.2): each node carries σ(Z′ + Z′ᵀ)/√2. With m levels, Υ = σ√(2m)(4√d + 2
    ln(2n/α)), V = G̃ + 2Υ I, ρ_min = Υ, ρ_max = 3Υ, γ = σ√(m/ρ_min)(√d + √(2 ln(2n/α))).
    `noise="wishart"` (4.1): W(L̃²I, k) in each node. A sum of s nodes has noise W(L̃²I, sk); with r =
    √(sk) and q = √d + √(2 ln(8n/α)), ρ_min = L̃²(r − q)², ρ_max = L̃²(r + q)², γ = L̃(√d + √(2
    ln(2n/α))). With `shifted` all eigenvalues are lowered by c = ρ_min − 4L̃²rq, which leaves ρ_min′ =
    4L̃²rq and γ′ = γ√(ρ_min/ρ_min′) (of which the paper prints a bound). `rho_min` sets another ρ_min, by
    another shift. The entry Σ w² is never used, nor released under Gaussian noise.

    A prefix is the sum of one node for each binary digit 1 of its length. With `nodes="live"` s is their
    number, and the shift follows it. With `nodes="all"` s = m in every round, as the paper assumes
    (Proposition 9, footnote 3; of Gaussian noise it sums at most m): m matrices W(L̃²I, k) are drawn
    before the first decision, and where a prefix has s nodes the first m − s of these are added. The
    noise is then a sum of m independent matrices in every round, W(L̃²I, mk) exactly. Without them the
    shift for m nodes would leave V negative wherever few are summed.

    **Guarantee.** Neighbours replace one person's features and reward; joint DP. Her leaf is in at
    most m = ⌊log2 (n−1)⌋ + 1 nodes. Gaussian: ‖ããᵀ − b̃b̃ᵀ‖_F ≤ √2 L̃² against symmetrised noise is
    L̃²/σ-GDP per node, √m L̃²/σ in all, also on adaptive streams: `calibration="exact"` sets σ = √m
    L̃²/μ. As printed, σ = 4√m′ L̃² ln(4/δ)/ε with m′ = 1 + ⌈log2 n⌉, which is μ = √(m/m′) ε/(4
    ln(4/δ)): for (1, .1) just below 0.068, by the number of levels, instead of 0.92. That is stated.
    Wishart: `mechanisms/wishart.py`, by Sheffet's theorem; "paper" and "exact" differ in the count of
    levels only. What `nodes="all"` adds is drawn around nobody's data, so that V and ũ are made of the
    nodes and of independent noise: the guarantee is that of the nodes alone. For arms with parameters of
    their own the matrices are block diagonal for everybody, and under Gaussian noise only their blocks
    are released: some of the entries of Σ ããᵀ, where rows of different arms have z in different places.
    A tree that is full is put aside and another begins on new people, so the guarantee does not end at
    the horizon.

    **Regret.** `regret_bound` with these ρ_min, ρ_max, γ (their Theorems 5 and 6, Corollaries 10 and
    12): Õ(√n d^{3/4}/√ε). At the same guarantee `BatchedLinUCB` has about three times
    less; forty times less than the noise printed for (1, .1), most of which exact accounting gains.

    >>> policy = TreeLinUCB(privacy=ApproxDP(1.0, 0.1), calibration="paper")
    >>> print(policy.guarantee(LinearContexts(5, horizon=50_000_000)).budget)
    0.06651-GDP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearContexts
    accepts: ClassVar = GAUSSIAN_KINDS
    paper: ClassVar[str] = "Shariff & Sheffet 2018, Algorithm 1"
    needs_horizon: ClassVar[bool] = True
    compiles: ClassVar[bool] = True

    noise: Annotated[
        Literal["gaussian", "wishart"], 'The noise in each node of the tree: "gaussian" or "wishart".'
    ] = "gaussian"
    calibration: Annotated[
        Calibration, '"exact": the least noise that meets the budget; "paper": as printed.'
    ] = "exact"
    nodes: Annotated[
        Literal["live", "all"],
        'Whose Wishart noise is summed: "live", of nodes in the prefix; "all", of m always, as printed.',
    ] = "live"
    shifted: Annotated[bool, "Whether Wishart noise is shifted back towards zero."] = True
    rho_min: Annotated[
        float | None, "The smallest eigenvalue of the regulariser; by default the paper's."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("gaussian", "wishart"), noise=self.noise)
        checks.one_of(("exact", "paper"), calibration=self.calibration)
        checks.one_of(("live", "all"), nodes=self.nodes)
        checks.one_of((True, False), shifted=self.shifted)
        if self.rho_min is not None:
            checks.scale(rho_min=self.rho_min)
        printed = self.noise == "wishart" or self.calibration == "paper"
        if printed and not isinstance(self.privacy, ApproxDP):
            raise BudgetNotAccepted(
                f"Wishart noise and the printed calibration are for ApproxDP, got {self.privacy!r}"
            )
        if self.noise == "gaussian" and not self.shifted:
            raise InvalidInput("Gaussian noise needs its shift: a noisy Gram matrix may be negative")
        if self.noise == "gaussian" and self.nodes == "all":
            raise InvalidInput("nodes='all' is for Wishart noise: Gaussian noise is that of live nodes")

    def twin(self) -> Policy:
        """Without noise there is no tree."""
        return LinUCB(privacy=NonPrivate(), failure=self.failure)

    def begin(self, problem: LinearContexts) -> tuple[Any, Any]:
        """An empty tree; before the first leaf, only the regulariser."""
        dim, blocks, horizon = problem.dimension, problem.blocks, problem.horizon
        assert horizon is not None
        alpha = (self.failure or 1.0 / horizon) / blocks
        levels, budget = self._levels(horizon), self._budget(problem)
        dof = 0
        if self.noise == "wishart":
            assert isinstance(self.privacy, ApproxDP)
            dof = wishart_dof(dim, levels, self.privacy)
            kind: type[TreeState] = Wishart if self.nodes == "live" else PaddedWishart
            entries, widths, budget = triangle_size(dim + 1), None, NonPrivate()
            regularizers = self._wishart(dim, dof, levels, horizon, alpha)
        else:
            kind, entries = Gaussian, blocks * pair_size(dim)
            widths = np.tile(augmented_widths(dim), blocks)
            regularizers = self._gaussian(dim, levels, horizon, alpha, budget)
        tree, leaves = start_tree(1, entries, _ROW, budget, leaves=max(horizon - 1, 1), widths=widths)
        assumed = self._assumed(problem)
        settings = Settings(assumed.sigma, assumed.size, math.log(2.0 / alpha), dof, math.sqrt(_ROW))
        public, secret = start_tree_state(kind, problem, tree, leaves, regularizers, settings)
        if self.noise == "wishart":
            row, unused = dim + 1, levels if self.nodes == "all" else 0
            public = public._replace(padding=np.zeros((unused + 1, entries)))
            secret = TreeRows(leaves, np.zeros(row), static_size(row), np.zeros((row, row)))
        return public, secret

    def _levels(self, horizon: int) -> int:
        if self.calibration == "paper":
            return 1 + max(horizon - 1, 0).bit_length()
        return tree_levels(max(horizon - 1, 1))

    def _budget(self, problem: LinearContexts) -> Budget:
        """What is really delivered."""
        if self.noise == "wishart" and problem.blocks > 1:
            raise InvalidInput(
                "Wishart noise is for parameters that all actions share: use noise='gaussian' for arms"
            )
        if self.noise == "wishart" or self.calibration == "exact":
            return self.privacy
        assert isinstance(self.privacy, ApproxDP)
        if problem.horizon is None:
            raise InvalidInput(
                "the printed noise depends on the horizon: LinearContexts(..., horizon=n)"
            )
        used = tree_levels(max(problem.horizon - 1, 1)) / self._levels(problem.horizon)
        log = math.log(4.0 / self.privacy.delta)
        return GaussianDP(math.sqrt(used) * self.privacy.epsilon / (4.0 * log))

    def _gaussian(self, dim: int, levels: int, horizon: int, alpha: float, budget: Budget) -> Array:
        """Shift, ρ_min, ρ_max and γ, the same for every number of nodes."""
        used = tree_levels(max(horizon - 1, 1))
        spread = _ROW / budget.to_gaussian().mu * math.sqrt(used * levels)  # σ√m
        log = math.log(2.0 * horizon / alpha)
        norm = spread * math.sqrt(2.0) * (4.0 * math.sqrt(dim) + 2.0 * log)
        low = norm if self.rho_min is None else self.rho_min
        gamma = spread / math.sqrt(low) * (math.sqrt(dim) + math.sqrt(2.0 * log))
        return np.tile([low + norm, low, low + 2.0 * norm, gamma], (used + 1, 1))

    def _wishart(self, dim: int, dof: int, levels: int, horizon: int, alpha: float) -> Array:
        """The same, by the number of nodes; no node at all is regularised as much as one."""
        spread = math.sqrt(dim) + math.sqrt(2.0 * math.log(8.0 * horizon / alpha))
        tail = math.sqrt(_ROW) * (math.sqrt(dim) + math.sqrt(2.0 * math.log(2.0 * horizon / alpha)))

        def of_sum(nodes: int) -> list[float]:
            root = math.sqrt(nodes * dof)
            lowest, highest = _ROW * (root - spread) ** 2, _ROW * (root + spread) ** 2
            low = _ROW * 4.0 * root * spread if self.shifted else lowest
            low = low if self.rho_min is None else self.rho_min
            return [low - lowest, low, low + highest - lowest, tail * math.sqrt(lowest / low)]

        used = tree_levels(max(horizon - 1, 1))
        if self.nodes == "all":
            return np.tile(of_sum(levels), (used + 1, 1))
        none = of_sum(1)
        none[RIDGE] = none[LOW]  # there is no noise to shift
        return np.array([none, *(of_sum(nodes) for nodes in range(1, used + 1))])

    def refuses_exact_noise(self, problem: Any) -> str:
        """Wishart noise is made of products."""
        if self.noise == "wishart":
            return "Wishart noise is no draw around a location"
        return super().refuses_exact_noise(problem)

    def suited_to_returning(self) -> "TreeLinUCB":
        """As it is. Nothing is known of Wishart noise, or printed, for several rounds of one person."""
        if self.noise == "wishart" or self.calibration == "paper":
            raise InvalidInput(
                "Wishart noise and printed noise protect one round of each person: use noise='gaussian' "
                "and calibration='exact' where rounds_per_person is more"
            )
        return self

    def released(self, problem: LinearContexts, public: TreeState) -> Reading:
        """The confidence set."""
        known = bool(public.clock[RELEASED] > 0)
        return of_ellipsoid(problem, public.mean, public.shape, public.width[:, RADIUS], known=known)

    def guarantee(self, problem: LinearContexts) -> Guarantee:
        """The budget, or the one that the printed noise delivers."""
        return linear_guarantee(self._budget(problem), problem, horizon=True)
