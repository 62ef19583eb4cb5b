"""Kernel bandits: finite public sets of contexts and actions, rewards alike where the kernel says so."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems.history import History, Row
from dpbandits.problems.kernels import Array, Kernel, SquaredExponential
from dpbandits.problems.problem import Problem
from dpbandits.problems.testing import ProblemTesting
from dpbandits.recipes import FloatRows, Floats
from dpbandits.wording import counted

Points = tuple[tuple[float, ...], ...]
# Residual k(w, w) below which a pair is taken to be spanned by others, as a share of the largest.
_TOLERANCE = 1e-9
# Kernels below this are taken to be 0: squares of their features would underflow.
_TINY = 1e-100


@dataclass(frozen=True)
class KernelContexts(Problem):
    """A person comes with one of the `contexts`; each of the `actions` may be chosen for her.

    Both are points (numbers, or tuples of numbers), declared beforehand and public; which context is
    hers is not, nor is her reward, which is clipped to ±`max_reward` before it is stored. The mean
    reward is a function of the pair from the kernel's space, of norm at most `max_norm` (`max_reward`
    unless said otherwise), which matters for regret only.

    `weights` says how often each context comes (equally often unless said otherwise). It is part of the
    noise and of every estimate, and **must be public knowledge: not made of people whom the guarantee is
    to protect**, such as the users so far. If it is wrong, estimates are off; privacy is not.

    `max_rank` limits how many features are used to stand for the kernel, and so the cost.
    """

    trust: ClassVar[Trust] = Trust.JOINT

    kernel: Annotated[Kernel, "How alike the rewards of two pairs of context and action are."]
    contexts: Annotated[Floats | FloatRows, "The public grid of contexts."]
    actions: Annotated[Floats | FloatRows, "The public grid of actions."]
    weights: Annotated[
        Floats | None,
        "How often each context comes, by public knowledge; equally often by default.",
    ] = field(default=None, kw_only=True)
    max_reward: Annotated[float, "Rewards are clipped to plus or minus this."] = field(
        default=1.0, kw_only=True
    )
    max_norm: Annotated[
        float | None, "A bound on the norm of the mean reward; max_reward by default."
    ] = field(default=None, kw_only=True)
    max_rank: Annotated[int, "The most features that stand for the kernel: more cost more time."] = (
        field(default=512, kw_only=True)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(
                f"expected a kernel such as SquaredExponential(0.2), got {checks.shown(self.kernel)}"
            )
        for name in ("contexts", "actions"):
            object.__setattr__(self, name, points(name, getattr(self, name)))
        if self.weights is not None:
            object.__setattr__(self, "weights", shares(self.weights, len(self.contexts)))
        checks.bound(max_reward=self.max_reward)
        if self.max_norm is not None:
            checks.bound(max_norm=self.max_norm)
        checks.integer(least=1, limit=checks.MOST_FEATURES, max_rank=self.max_rank)
        most, name = checks.MOST_ACTIONS, "len(contexts) * len(actions)"
        checks.integer(least=1, limit=most, **{name: self.pairs})

    @classmethod
    def sampled(
        cls,
        kernel: Kernel,
        contexts: Iterable[Any],
        actions: Iterable[Any],
        sampler: Callable[[np.random.Generator, int], Any],
        *,
        draws: int = 100_000,
        **others: Any,
    ) -> Self:
        """The problem whose weights are those of a public sampler: `sampler(generator, n)` gives n
        numbers of contexts. It must not be made of past users; see the class.
        """
        listed = points("contexts", contexts)
        drawn = np.asarray(sampler(np.random.default_rng(0), draws))
        if drawn.shape != (draws,) or drawn.dtype.kind not in "iu":
            raise InvalidInput(f"expected sampler(generator, {draws}) to give {draws} whole numbers")
        if drawn.min() < 0 or drawn.max() >= len(listed):
            raise InvalidInput(f"expected sampler to give numbers of contexts, 0 to {len(listed) - 1}")
        weights = np.bincount(drawn, minlength=len(listed)) / draws
        return cls(kernel, listed, points("actions", actions), weights=tuple(weights), **others)

    @property
    def pairs(self) -> int:
        """|W|."""
        return len(self.contexts) * len(self.actions)

    @property
    def norm(self) -> float:
        """The bound on the norm of the mean reward."""
        return self.max_reward if self.max_norm is None else self.max_norm

    def context_weights(self) -> Array:
        """How often each context comes."""
        count = len(self.contexts)
        return np.full(count, 1.0 / count) if self.weights is None else np.array(self.weights)

    @property
    def kept_features(self) -> int:
        """The number of the context."""
        return 0

    def context(self, *offered: Any) -> int:
        """The number of a context."""
        if len(offered) != 1:
            raise InvalidInput(f"select() takes the number of a context, 0 to {len(self.contexts) - 1}")
        value = offered[0]
        if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
            raise InvalidInput(f"expected the context to be a whole number, got {checks.kind_of(value)}")
        if not 0 <= value < len(self.contexts):
            raise InvalidInput(
                f"expected the context to be 0 to {len(self.contexts) - 1}, got another number"
            )
        return int(value)

    def is_action(self, action: Any) -> bool:
        """The number of an action."""
        return super().is_action(action) and action < len(self.actions)

    def reward(self, value: Any) -> float:
        """One number, later clipped to ±`max_reward`; NaN and anything but a number are refused."""
        return checks.reward(value)

    def past(self, history: History) -> Iterator[Row]:
        """Refused: designs are chosen by policies, epoch by epoch."""
        raise InvalidInput(
            "kernel policies choose their own designs, and cannot learn from rows that another system "
            "chose: start without a history"
        )

    def public_facts(self) -> tuple[str, ...]:
        """What is declared."""
        bound = f"{self.max_reward:g}"
        return (
            "the kernel",
            "the sets of contexts and actions",
            "how often each context comes",
            f"the reward range [−{bound}, {bound}]",
        )

    def features(self) -> "Features":
        """Vectors whose inner products are the kernel, one for each pair."""
        made = _features(self.kernel, tuple(self.contexts), tuple(self.actions), self.max_rank)
        return made._replace(rows=made.rows.copy())


class Features(NamedTuple):
    """φ(w) for every pair, context by context, with ⟨φ(w), φ(w')⟩ = k(w, w') up to `error`."""

    rows: Array  # (|W|, m)
    radius: float  # max |φ(w)|
    error: float  # max k(w, w) − |φ(w)|²

    def limits(self) -> Limits:
        """Everybody has it from the problem."""
        return dict.fromkeys(self._fields, FROM_RECIPE)


@functools.lru_cache(maxsize=32)
@np.errstate(all="ignore")  # what is not finite is refused in a sentence
def _features(kernel: Kernel, contexts: Points, actions: Points, limit: int) -> Features:
    left, right = np.array(contexts), np.array(actions)
    pairs = np.hstack([np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1))])
    split = left.shape[1]
    diagonal = kernel.diagonal(pairs, split)
    if not (np.isfinite(diagonal).all() and diagonal.max() > _TINY):
        raise InvalidInput(f"{kernel!r} is 0 or not finite at every pair: no reward could be learned")
    scale = max(1.0, float(diagonal.max()))
    rows, error = pivoted_cholesky(
        lambda w: kernel.between(pairs, pairs[w : w + 1], split)[:, 0] / scale, diagonal / scale, limit
    )
    radius = math.sqrt(float(np.max(np.einsum("wm,wm->w", rows, rows))))
    if not math.isfinite(radius):
        raise InvalidInput(f"{kernel!r} is not finite between some pairs")
    return Features(rows, radius, error)


def pivoted_cholesky(column: Callable[[int], Array], diagonal: Array, limit: int) -> tuple[Array, float]:
    """(F, e) with F Fᵀ = K up to a positive semi-definite rest whose diagonal is at most e.

    Takes the worst represented pair next, until the rest is next to nothing or `limit` features are
    used. K is never made: one column at a time. No BLAS, and of almost equal pairs the first is taken,
    so that everybody finds the same features whatever the machine or the number of its threads.
    """
    rest, goal = diagonal.copy(), _TOLERANCE * float(diagonal.max())
    rows = np.zeros((diagonal.size, min(limit, diagonal.size)))
    rank = 0
    while rank < rows.shape[1] and rest.max() > goal:
        pivot = int(np.argmax(rest >= rest.max() * (1.0 - 1e-6)))
        made = np.einsum("wm,m->w", rows[:, :rank], rows[pivot, :rank])
        rows[:, rank] = (column(pivot) - made) / math.sqrt(rest[pivot])
        rest = np.maximum(rest - rows[:, rank] ** 2, 0.0)
        rest[pivot] = 0.0
        rank += 1
    return np.ascontiguousarray(rows[:, :rank]), float(rest.max())


def _listed(values: Any) -> Any:
    """A list of what an iterator gives; anything else as it is."""
    return list(values) if isinstance(values, Iterator) else values


def points(name: str, values: Iterable[Any]) -> Points:
    """Points of one dimension or more as tuples of numbers, all alike."""
    array = checks.array(f"{name} to be points of equal length", _listed(values))
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"expected {name} to be at least one point, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInput(f"expected {name} to be finite numbers")
    return tuple(tuple(row) for row in array.tolist())


def shares(values: Iterable[float], count: int) -> tuple[float, ...]:
    """Weights as shares of 1."""
    array = checks.array("weights to be numbers", _listed(values))
    if array.shape != (count,):
        raise InvalidInput(f"expected {count} weights, one for each context, got {array.size}")
    if not (np.isfinite(array).all() and array.min() >= 0.0 and array.sum() > 0.0):
        raise InvalidInput("expected weights to be finite, none below 0, and not all 0")
    total = float(array.sum())
    # Shares stay what they are, so that a round trip through JSON changes nothing.
    return tuple((array if abs(total - 1.0) < 1e-12 else array / total).tolist())


@register_jitable(forceinline=True)
def bounded(reward: float, bound: float) -> float:
    """A reward as it is stored: clipped to ±`bound`, a missing one (NaN) exactly 0.

    On a grid of bound·2⁻²⁰, so that sums are exact for bounds that are powers of two.
    """
    if reward != reward:
        return 0.0
    share = min(max(reward / bound, -1.0), 1.0)
    return math.floor(share * 1048576.0 + 0.5) / 1048576.0 * bound


class _Testing(ProblemTesting[KernelContexts]):
    """For audits of policies on `KernelContexts`."""

    def example(self, horizon: int | None, *, size: int = 3) -> KernelContexts:
        """Two contexts of which one never comes, as many actions as its size, rewards in ±2, and fewer
        features than pairs.
        """
        return KernelContexts(
            SquaredExponential(0.7),
            ((0.0,), (2.0,)),
            tuple((x,) for x in np.linspace(0.0, 1.0, size).tolist()),
            weights=(1.0, 0.0),
            max_reward=2.0,
            max_rank=3,
            horizon=horizon,
        )

    def size_in_words(self, problem: KernelContexts) -> str:
        """Its actions."""
        return counted(len(problem.actions), "action")

    def extreme_people(self, problem: KernelContexts) -> tuple[tuple[int, float], ...]:
        """Both ends in the rarest context first, then in others; inside, beyond, far beyond, none."""
        order = [int(i) for i in np.argsort(problem.context_weights(), kind="stable")[:6]]
        rare, common, bound = order[0], order[-1], float(problem.max_reward)
        ends = [(context, sign * bound) for context in order for sign in (1.0, -1.0)]
        odd = (0.3 * bound, 3.0 * bound, -1e9, 1e300, math.inf, -math.inf, problem.missing)
        return (*ends, *((rare, reward) for reward in odd), (common, problem.missing))

    def reward_inside(self, problem: KernelContexts, share: float, chance: np.random.Generator) -> float:
        return float(problem.max_reward) * (2.0 * share - 1.0)

    def context_inside(self, problem: KernelContexts, chance: np.random.Generator) -> int:
        return int(chance.integers(len(problem.contexts)))


KernelContexts.testing = _Testing()
