r"""DPUCB-MAT (Chandak, Hu & Hegde, Algorithm 2): UCB on doubling batches that forget."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise, bare
from dpbandits.engine.state import ANYTHING, COUNT, FLAG, FROM_RECIPE, MOST, Limits
from dpbandits.policies.arms.shared.splitting import split_budget
from dpbandits.policies.matroid.shared.matroid_policy import TIE, MatroidPolicy
from dpbandits.policies.matroid.shared.pending import any_basis, count_waiting, feed, unknown_index
from dpbandits.policies.matroid.shared.protection import matroid_guarantee
from dpbandits.policies.released import Reading, of_last_batches
from dpbandits.policies.returning import OncePerBatch
from dpbandits.privacy.budgets import LAPLACE_OR_NONE, Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.privacy.calibration import Calibration, laplace_epsilon
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import Greedy, improve, start_greedy
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Public(NamedTuple):
    """Every item's last released batch, and how far its open one is."""

    round: Integers  # (1,) rounds closed so far
    full: Integers  # (1,) how many batches are
    look: Integers  # (1,) 1 if the next decision is to look at all items, as printed
    everything: Integers  # all items
    greedy: Greedy
    plays: Integers  # T_e, decisions in the last released batch
    open: Integers  # decisions in the open batch
    waiting: Integers  # decisions in flight
    length: Integers  # from how many decisions on the open batch is full
    batches: Batches
    mean: Array  # w̃_e; beyond any index before the first release
    width: Array  # 1/√T_e, with T_e counting what is in flight
    tail: Array  # 1/(ε₀ T_e), likewise
    score: Array  # the index
    noise_scale: float  # 1/ε₀
    ahead: float  # t less the rounds closed: 1, or 0 after a look, which is the printed round 0

    def limits(self) -> Limits:
        """It counts; the index may be anything."""
        counts = dict.fromkeys(("round", "full", "plays", "open", "waiting"), COUNT)
        known: Limits = {"look": FLAG, "length": (1, MOST), "score": ANYTHING}
        return {"everything": FROM_RECIPE, **counts, **known}

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release the batches that are full; each replaces what was known of its item."""
        if self.full[0] > 0:
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> Items:
        """The basis of the largest total index."""
        done = int(self.round[0])
        if done == 0:
            return any_basis(self, explore)
        spread = 3.0 * math.log(self.greedy.basis.size * (done + self.ahead))
        radius = math.sqrt(spread)
        for item in range(self.score.size):
            bonus = radius * self.width[item] + spread * self.tail[item]
            self.score[item] = self.mean[item] + bonus
        improve(self.greedy, self.score)
        return (self.greedy.basis,)

    def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
        """Fill the items' open batches; full means a number of decisions, whatever was rated."""
        self.round[0] += 1
        for place in range(action[0].size):
            feed(self, secret, action[0][place], reward[0][place])

    def wait(self, action: Items, change: int) -> None:
        """What is in flight narrows an item's bonus, as if it had come back alike."""
        for item in action[0]:
            if count_waiting(self, item, change):
                _widen(self, item)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    for item in range(public.plays.size):
        plays = public.open[item]
        if plays >= public.length[item]:
            public.plays[item] = plays
            public.open[item] = 0
            public.length[item] = 2 * plays
            release_batch(public.batches, secret, item, noise)
            public.mean[item] = public.batches.last[item, 0] / plays + 0.5
            _widen(public, item)
    public.full[0] = 0


@register_jitable(forceinline=True)
def _widen(public: Public, item: int) -> None:
    plays = public.plays[item] + public.waiting[item]
    public.width[item] = 1.0 / math.sqrt(plays)
    public.tail[item] = public.noise_scale / plays


@dataclass(frozen=True, kw_only=True)
class ForgetfulBatches(OncePerBatch, MatroidPolicy):
    """What DPUCB-MAT and DPTS-MAT share: batches, noise, and the way they begin."""

    abstract: ClassVar[bool] = True
    accepts: ClassVar = LAPLACE_OR_NONE
    state: ClassVar[type[Public]]

    calibration: Annotated[
        Calibration, '"exact": the least noise that meets the budget; "paper": as printed.'
    ] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("exact", "paper"), calibration=self.calibration)

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """Every item's first batch, of one decision, open."""
        items = problem.items
        epsilon = laplace_epsilon(split_budget(self.privacy, problem.rank))
        noise: Budget = self.privacy if isinstance(self.privacy, NonPrivate) else PureDP(epsilon)
        batches, buffers = start_batches(items, 1, 1.0, noise, cumulative=False)
        public = self.state(
            round=np.zeros(1, np.int64),
            full=np.zeros(1, np.int64),
            look=np.full(1, self.calibration == "paper", np.int64),
            everything=np.arange(items),
            greedy=start_greedy(problem.matroid.state(), items, tolerance=TIE),
            plays=np.zeros(items, np.int64),
            open=np.zeros(items, np.int64),
            waiting=np.zeros(items, np.int64),
            length=np.ones(items, np.int64),
            batches=batches,
            mean=np.full(items, unknown_index(0)),
            width=np.zeros(items),
            tail=np.zeros(items),
            score=np.zeros(items),
            noise_scale=1.0 / epsilon,
            ahead=0.0 if self.calibration == "paper" else 1.0,
        )
        return public, buffers

    def released(self, problem: MatroidBases, public: Public) -> Reading:
        """The means of the items' last batches."""
        return of_last_batches("item", public.batches, public.plays, matroid=problem.matroid.state())

    def slots(self, public: Public, action: Any) -> tuple[int, ...]:
        """Those of the items played."""
        return tuple(int(item) for item in bare(action))

    def numbers_of_one(self, problem: Any) -> int:
        """A sum for each item of her set, at most all."""
        return int(problem.items)

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """The budget; as printed, that of the first person, whose every reward is released."""
        budget, times = self.privacy, problem.items / problem.rank
        if self.calibration == "paper" and times > 1.0:
            match budget:
                case PureDP(epsilon=epsilon):
                    budget = PureDP(epsilon * times)
                case GaussianDP(mu=mu):
                    budget = GaussianDP(mu * math.sqrt(times))
        return matroid_guarantee(budget, problem)


class UCBPublic(Public):
    """Decides by `select` above."""


@dataclass(frozen=True, kw_only=True)
class PrivateMatroidUCB(ForgetfulBatches):
    r"""Play the basis of the largest upper confidence bounds, with room for the noise (DPUCB-MAT).

    **Definition.** The batches of an item have 1, 2, 4, … decisions: each is released with Laplace(1/ε₀)
    noise at the first decision at which it has twice as many as the one before, or more, which it
    replaces and which is forgotten. Round t plays the basis of the
    largest Σ U_e with

        U_e = w̃_e + √(3 ln(Kt)/T_e) + 3 ln(Kt)/(ε₀ T_e),        ε₀ = ε/K,

    w̃_e the released mean of the T_e decisions of the item's last full batch, K the rank. Items without
    a released batch come first (U_e = ∞), until each has been in a basis that was played. Decisions in
    flight count in the widths' T_e, as if they had come back alike; where nothing has come back, the
    items with the fewest of them come first. With calibration="paper" all L items are looked at in the
    first round, as printed, which is no basis and earns nothing; it is the printed round 0, so that t
    counts from the one after it.

    **Guarantee.** Neighbours replace one round's vector of rewards. It is in one batch of each of the K
    items played, each sum moves by at most 1 and is released once with Laplace(K/ε); batch ends count
    decisions, and bases are functions of released sums. So all decisions together are ε-DP by adaptive
    composition, for any number of rounds. Under μ-GDP each of the K releases is μ/√K-GDP. As
    printed, the first person's L rewards are all released: εL/K (μ√(L/K)), and that is reported. (The
    paper's Theorem 1 leaves this round out.)

    **Regret.** O(Σ_e ln(KT)/Δ_e + min(K, ln(KT)) K ln(KT)/ε) (Theorem 2).

    >>> from dpbandits.problems import UniformMatroid
    >>> problem = MatroidBases(UniformMatroid(6, 2))
    >>> print(PrivateMatroidUCB(privacy=PureDP(1.0)).guarantee(problem).budget)
    1-DP
    >>> print(PrivateMatroidUCB(privacy=PureDP(1.0), calibration="paper").guarantee(problem).budget)
    3-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Chandak, Hu & Hegde, DPUCB-MAT"
    state: ClassVar = UCBPublic
