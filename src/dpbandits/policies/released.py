r"""What may be read of a learner: a record made of released values only.

**Why it may be published.** Decisions are functions of `public`, of a person's own context and of free
randomness, and `public` is made of released values, counts of decisions and declared facts; replay
(`audit/replay.py`) finds it equal, bit for bit, on streams in which one person is replaced and the
results of all draws are forced. A record is a function of `public` and of the numbers of decisions and
of closed rounds. So it is post-processing of the very releases that the guarantee pays for: record and
decisions together are as private as the decisions are. In the joint model the decision for a person is
shown to her alone, since it may tell her context; a record has no such part, and may be read by
everybody. In the local model all that a server holds is made of messages.

**Intervals** are for noise *and* sampling, at about 95 %. For rewards in [0, 1] whose released sum over
n rounds has a mean x (brought back into [0, 1]) and noise of deviation s, they are Agresti & Coull's:

    c ± √(1.96² p(1 − p)/(n + 4) + z² s²),   c = (xn + 2)/(n + 4),   z = 1.96, or 2.12 for Laplace noise,

p being c moved towards ½ by s. They are about rewards as they are stored, where a missing one counts ½,
and, where batches are forgotten, about the last. Adaptive play leaves alone what looks bad, so that the
means of what is seldom played are rather too low than too high. Intervals, and `sure`, are for one look,
not for the best of many.

**How sure.** What leads is best with probability 1 − Σ_j P[j is ahead of it] at least, for errors that
are Gaussian (or as heavy in the tails as Laplace noise); 0 while nothing is known of some j.

**The last bits.** All numbers are rounded to about 2⁻¹² of their noise (`mechanisms/rounding.py`), and
ends, leader and `sure` are made of what was rounded.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits.mechanisms.rounding import rounded_to
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.matroids.greedy import rebuild, start_greedy
from dpbandits.sums.batches import Batches
from dpbandits.sums.binary_tree import Tree

Array = NDArray[np.float64]
Z, LAPLACE_Z = 1.96, 2.12  # 95 % of Gaussian and of Laplace noise lie within this many deviations
_ROWS = 40  # of a table


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """What a policy's released values say, with intervals of about 95 %; NaN for nothing yet.

    `what` the entries are: "arm", "item", "action", "parameter" (in blocks where each arm has its own)
    or "pair" (a row for each context, an entry for each action).
    """

    what: str
    mean: Array
    low: Array
    high: Array
    plays: NDArray[np.int64] | None = None  # rounds behind each mean, where that is public
    active: NDArray[np.bool_] | None = None  # what may be chosen still, where some may not
    # The arm or action of the largest mean, the best basis, or an action for each context.
    leading: tuple[int, ...] = ()
    # The probability, at least, that nothing else is better; None where that is not computed.
    sure: float | None = None
    # Of a policy that searches for the best arm, once it has stopped: the arm, and the decisions made.
    recommendation: int | None = None
    stopped: int | None = None

    def first(self, count: int) -> "Reading":
        """Without what there is only room for."""
        arrays = {name: getattr(self, name) for name in ("mean", "low", "high", "plays", "active")}
        return replace(self, **{name: one[:count] for name, one in arrays.items() if one is not None})


@dataclass(frozen=True, kw_only=True, eq=False)
class Released(Reading):
    """A learner's public record: `learner.released()`. Covered by the guarantee that it names."""

    rounds: int  # closed
    decided: int
    guarantee: Guarantee
    spent: Budget | None  # None for nothing so far, or where nothing is promised
    public_rows: int = 0  # of a history that is public, behind these numbers too

    @classmethod
    def of(
        cls,
        reading: Reading,
        guarantee: Guarantee,
        rounds: int,
        decided: int,
        spent: Budget | None,
        public_rows: int = 0,
    ) -> "Released":
        """A reading with what a learner knows."""
        facts: dict[str, Any] = {"rounds": rounds, "decided": decided, "spent": spent}
        facts["public_rows"] = public_rows
        return cls(**vars(reading), guarantee=guarantee, **facts)

    def __str__(self) -> str:
        lines = self._table()
        if self.leading:
            sure = "" if self.sure is None else f", at least {min(99, int(100.0 * self.sure))} % sure"
            lines.append(f"leading: {', '.join(map(str, self.leading))}{sure}")
        if self.recommendation is not None:
            lines.append(f"recommended: {self.recommendation}, after {self.stopped:,} decisions")
        # Of items a round is behind several, or behind none.
        counted = self.plays is not None and self.what != "item"
        behind = f"; {self._behind():,} are behind these numbers" if counted else ""
        if behind and self.public_rows:
            behind += ", with those that are public"
        lines.append(f"{self.rounds:,} rounds closed of {self.decided:,} decided{behind}")
        if self.what in ("arm", "item"):
            lines.append(
                "Rounds that were closed without an answer, if any, count as rewards of ½ here."
            )
        lines.append(f"{self.guarantee}")
        if self.guarantee.is_private:
            spent = "nothing" if self.spent is None else self.spent
            lines.append(
                f"The same holds for this record, made of released values only; spent: {spent}."
            )
        return "\n".join(lines)

    def _behind(self) -> int:
        """Rounds that were learned from and released."""
        assert self.plays is not None
        return int(self.plays.sum())

    def _table(self) -> list[str]:
        """A row for each entry, the first of many."""
        rounds, width = "" if self.plays is None else "rounds", len(f"{self.what}  ")
        lines = [f"{self.what}  {'mean':>9}   {'95 % interval':^22}{rounds:>9}".rstrip()]
        for place in list(np.ndindex(self.mean.shape))[:_ROWS]:
            told = "  nothing yet"
            if math.isfinite(self.mean[place]):
                ends = f"{self.low[place]:.4g} to {self.high[place]:.4g}"
                plays = "" if self.plays is None else f"{self.plays[place]:9,}"
                told = f"{self.mean[place]:9.4g}   {ends:^22}{plays}"
            if self.active is not None and not self.active[place]:
                told = f"{told}   out of play"
            lines.append(f"{', '.join(map(str, place)):<{width}}{told}".rstrip())
        if self.mean.size > _ROWS:
            lines.append(f"… and {self.mean.size - _ROWS:,} more")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The same for machines, as JSON has it: None for NaN."""
        return {
            "what": self.what,
            "mean": _listed(self.mean),
            "low": _listed(self.low),
            "high": _listed(self.high),
            "plays": None if self.plays is None else self.plays.tolist(),
            "active": None if self.active is None else self.active.tolist(),
            "leading": list(self.leading),
            "sure": self.sure,
            "recommendation": self.recommendation,
            "stopped": self.stopped,
            "rounds": self.rounds,
            "decided": self.decided,
            "public_rows": self.public_rows,
            "spent": None if self.spent is None else self.spent.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }


def _listed(values: Array) -> Any:
    return np.where(np.isfinite(values), values.astype(object), None).tolist()  # type: ignore[call-overload]


def of_sums(
    what: str,
    total: Any,
    size: Any,
    variance: Any,
    *,
    laplace: bool = False,
    plays: Any = None,
    active: Any = None,
    matroid: Any = None,
) -> Reading:
    """What released sums of (reward − ½) over `size` rounds say, their noise being of this variance.

    `plays` is shown in place of the size, where that is an effective one. With a matroid's state the
    best basis leads.
    """
    known, size = np.asarray(size) > 0, np.asarray(size, np.float64)
    n = np.where(known, size, 1.0)
    noise = np.sqrt(variance) / n
    mean = np.where(known, rounded_to(total / n + 0.5, noise), math.nan)
    inside = np.clip(mean, 0.0, 1.0)
    centre = (inside * n + 2.0) / (n + 4.0)
    moved = centre + np.sign(0.5 - centre) * np.minimum(noise, np.abs(0.5 - centre))
    sampling = np.sqrt(moved * (1.0 - moved) / (n + 4.0))
    half = np.hypot(Z * sampling, (LAPLACE_Z if laplace else Z) * noise)
    reading = Reading(
        what=what,
        mean=inside,
        low=np.maximum(centre - half, 0.0),
        high=np.minimum(centre + half, 1.0),
        plays=np.array(np.where(known, size if plays is None else plays, 0), np.int64),
        active=active,
    )
    deviation = np.hypot(sampling, noise)
    if matroid is None:
        return replace(reading, **_leader(reading, mean, deviation, np.hypot, laplace))
    return replace(reading, **_basis(inside, deviation, laplace, matroid))


def of_last_batches(what: str, batches: Batches, size: Any, **others: Any) -> Reading:
    """What the last batch of each slot says, where everything before it is forgotten."""
    variance = batches.scale**2 * (2.0 if batches.laplace else 1.0)
    return of_sums(what, batches.last[:, 0], size, variance, laplace=batches.laplace, **others)


def of_tree(what: str, tree: Tree, size: Any, **others: Any) -> Reading:
    """What the prefix of each slot's tree says, of so many rounds.

    Its noise is drawn anew with every leaf, and a slot is left alone when that was low: so the interval
    is for the lowest of n draws, √(2 ln n) deviations away, in place of one.
    """
    variance = tree.variance * (1.0 + 2.0 * np.log(np.maximum(size, 1)) / Z**2)
    return of_sums(what, tree.total[:, 0], size, variance, laplace=tree.laplace, **others)


def of_values(
    what: str, mean: Any, half: Any, *, bound: float = math.inf, active: Any = None
) -> Reading:
    """Estimates with half-widths of their own, within ±`bound`."""
    mean, half = rounded_to(mean, half), rounded_to(half, half)
    inside = np.clip(mean, -bound, bound)
    low, high = np.clip(mean - half, -bound, bound), np.clip(mean + half, -bound, bound)
    reading = Reading(what=what, mean=inside, low=low, high=high, active=active)
    if what == "parameter":
        return reading
    # Their errors may be opposite: the deviation of a difference is at most the sum.
    return replace(reading, **_leader(reading, mean, half / Z, np.add, laplace=False))


def _leader(
    reading: Reading, mean: Array, deviation: Array, together: np.ufunc, laplace: bool
) -> dict[str, Any]:
    """The largest mean of each row; of a single row also how sure that is."""
    known = np.isfinite(mean)
    active = np.ones(mean.shape, np.bool_) if reading.active is None else reading.active
    best = np.argmax(np.where(known & active, mean, -math.inf), axis=-1)
    if not (known & active).any():
        return {}
    if mean.ndim > 1:
        return {"leading": tuple(best.tolist())}
    others = active & (np.arange(mean.size) != best)
    gap = reading.mean[best] - reading.mean[others]
    doubt = _overtakes(gap, together(deviation[best], deviation[others]), laplace)
    return {"leading": (int(best),), "sure": max(0.0, 1.0 - float(np.sum(doubt)))}


def _basis(mean: Array, deviation: Array, laplace: bool, matroid: Any) -> dict[str, Any]:
    """The best basis of the means, unknown items last, and how sure that is.

    A basis is best if no item outside is better than one of its circuit inside. With the item first and
    then those of the basis, the heaviest first, the one that cannot join is the lightest of the circuit;
    all that are as heavy are counted, which is at least the circuit.
    """
    if not np.isfinite(mean).any():
        return {}
    greedy = start_greedy(matroid, mean.size)
    rebuild(greedy, np.where(np.isfinite(mean), mean, -1.0))
    basis, doubt = greedy.basis.copy(), 0.0
    for item in greedy.order[greedy.inside[greedy.order] == 0]:
        matroid.clear()
        matroid.join(int(item))
        place = next(
            (place for place, one in enumerate(basis) if not matroid.join(int(one))), basis.size - 1
        )
        rivals = basis[: place + 1]
        spread = np.hypot(deviation[item], deviation[rivals])
        doubt += float(np.sum(_overtakes(mean[rivals] - mean[item], spread, laplace)))
    return {"leading": tuple(sorted(basis.tolist())), "sure": max(0.0, 1.0 - doubt)}


def _overtakes(gap: Array, deviation: Array, laplace: bool) -> Array:
    """How likely what is behind by the gap is really ahead; 1 where nothing is known of it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = gap / deviation
    tail = scipy.special.ndtr(-ratio)
    if laplace:  # beyond 1.7 deviations its tail is the heavier one
        tail = np.maximum(tail, 0.5 * np.exp(-math.sqrt(2.0) * ratio))
    return np.where(np.isnan(ratio), 1.0, tail)
