"""Adding budgets up: composition, and a filter that stops before the limit is passed.

All of it holds under fully adaptive composition, where each release and *its budget* may depend on
what was released before: pure ε adds (Rogers et al. 2016), ρ adds (Feldman & Zrnic 2021), μ² adds
(Smith & Thakurta 2022). (ε, δ) budgets have no such filter here: state them as Gaussian ones.
"""

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager

from dpbandits import checks
from dpbandits.engine import forks
from dpbandits.errors import BudgetExhausted, InvalidInput, NotImplied, PrivacyError
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

# From the strongest statement to the weakest: each implies the ones after it.
_LADDER: tuple[type[Budget], ...] = (PureDP, GaussianDP, ZeroConcentratedDP, RenyiDP)
# Sums of floats differ from the true sum by about this much; a tie is not a breach.
_TIE = 1e-12


def compose(budgets: Iterable[Budget]) -> Budget:
    """What several adaptive releases about the same person cost together.

    Kinds that differ meet in the strongest one that all of them imply.

    >>> compose([GaussianDP(3.0), GaussianDP(4.0)])
    GaussianDP(mu=5.0)
    >>> compose([PureDP(1.0), GaussianDP(1.0)])
    GaussianDP(mu=1.5867...)
    """
    parts = checks.sequence("budgets", budgets)
    if not parts:
        raise InvalidInput("expected at least one budget to compose")
    for part in parts:
        _refuse_other(part)
    if any(isinstance(part, NonPrivate) for part in parts):
        return NonPrivate()
    if all(isinstance(part, PureDP | ApproxDP) for part in parts) and any(
        isinstance(part, ApproxDP) for part in parts
    ):
        return _compose_approx(parts)
    orders = {part.order for part in parts if isinstance(part, RenyiDP)}
    if len(orders) > 1:
        raise NotImplied("Rényi budgets compose at one common order only")
    order = orders.pop() if orders else None
    kinds = [type(part) for part in parts]
    if any(kind not in _LADDER for kind in kinds):
        raise NotImplied("an (ε, δ) budget composes only with (ε, δ) and ε budgets")
    kind = _LADDER[max(_LADDER.index(kind) for kind in kinds)]
    at_order = order if kind is RenyiDP else None
    return _total(kind, [part.implies(kind, order=at_order) for part in parts], order)


def _refuse_other(value: object) -> None:
    if not isinstance(value, Budget):
        raise InvalidInput(f"expected a budget such as PureDP(1.0), got {checks.shown(value)}")


def _sum(sizes: list[float]) -> float:
    try:
        return math.fsum(sizes)
    except OverflowError:
        raise NotImplied("the budgets add up to more than a number can say") from None


def _compose_approx(parts: list[Budget]) -> Budget:
    deltas = [part.delta for part in parts if isinstance(part, ApproxDP)]
    total = math.fsum(deltas)
    if total >= 1.0:
        raise NotImplied(f"the deltas add up to {total:.4g}: nothing is left of the guarantee")
    return ApproxDP(_sum([part.size for part in parts]), total)


def _total(kind: type[Budget], parts: list[Budget], order: float | None) -> Budget:
    sizes = [part.size for part in parts]
    if kind is PureDP:
        return PureDP(_sum(sizes))
    if kind is GaussianDP:
        return GaussianDP(math.hypot(*sizes))
    if kind is ZeroConcentratedDP:
        return ZeroConcentratedDP(_sum(sizes))
    assert order is not None
    return RenyiDP(order, _sum(sizes))


def grouped(budget: Budget, times: float) -> Budget:
    """What several data of one person cost together, `times` what one of them costs.

    For `times` of them, replaced at once, this is group privacy and holds whatever was released: ε and μ
    are multiplied (Dong, Roth & Su 2022), ρ is by the square (Bun & Steinke 2016), and each step from
    neighbour to neighbour adds δ e^(ε·steps before) to δ. Where `times` is the multiplier of a mechanism
    (`sums/`), ε and μ are multiplied by that.

    >>> grouped(GaussianDP(0.5), 4)
    GaussianDP(mu=2.0)
    >>> grouped(ApproxDP(0.5, 1e-6), 2)
    ApproxDP(epsilon=1.0, delta=2.6487...e-06)
    """
    checks.positive(times=times)
    match budget:
        case NonPrivate():
            return budget
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon * times)
        case GaussianDP(mu=mu):
            return GaussianDP(mu * times)
        case ZeroConcentratedDP(rho=rho):
            return ZeroConcentratedDP(rho * times * times)
        case ApproxDP(epsilon=epsilon, delta=delta) if float(times).is_integer():
            steps = (math.exp(epsilon * step) for step in range(int(times)))
            total = delta * math.fsum(steps) if epsilon * times < 700.0 else math.inf
            if total < 1.0:
                return ApproxDP(epsilon * times, total)
            raise NotImplied(f"nothing is left of {budget} for {times:g} rounds of one person")
    raise NotImplied(f"nothing is known to follow from {budget} for several rounds of one person")


class Odometer:
    """A running total of what has been spent; it reads, it does not stop anything.

    Sums are paired up like the digits of a binary counter: a million small costs do not drift. It may be
    used from several threads; not from a signal handler that came in the middle of `spend`, nor in a
    forked copy of the process, where the same remainder would be spent again.
    """

    _lock: AbstractContextManager[bool]

    def __init__(self) -> None:
        self._sums: tuple[
            Budget | None, ...
        ] = ()  # replaced as a whole: an interrupt leaves the old one
        self._forks, self._busy = forks.times(), False
        forks.own_lock(self)

    @property
    def spent(self) -> Budget | None:
        """The composition of everything spent so far; None before the first release."""
        parts = _known(self._sums)
        return compose(parts) if parts else None

    def spend(self, cost: Budget) -> None:
        """Count one release."""
        if self._forks != forks.times():
            raise PrivacyError("this total does not survive a fork: both copies would spend the same")
        with self._lock:
            if self._busy:
                raise PrivacyError("something is being spent already, by what was interrupted here")
            self._busy = True
            try:
                self._sums = self._with(cost)
            finally:
                self._busy = False

    def _with(self, cost: Budget) -> tuple[Budget | None, ...]:
        """The sums with one more cost."""
        after = compose([*_known(self._sums), cost])
        if isinstance(after, NonPrivate):
            return (after,)
        sums = list(self._sums)
        for level, held in enumerate(sums):
            if held is None:
                sums[level] = cost
                return tuple(sums)
            sums[level], cost = None, compose([held, cost])
        return (*sums, cost)


def _known(sums: tuple[Budget | None, ...]) -> list[Budget]:
    return [part for part in sums if part is not None]


class Filter(Odometer):
    """An odometer with a limit: a release that would pass it is refused and nothing changes.

    The limit may be ε-DP, μ-GDP or ρ-zCDP; each cost must imply the limit's kind.

    >>> guard = Filter(GaussianDP(1.0))
    >>> guard.spend(GaussianDP(0.8))
    >>> guard.remaining
    GaussianDP(mu=0.6...)
    """

    def __init__(self, limit: Budget) -> None:
        super().__init__()
        if not isinstance(limit, PureDP | GaussianDP | ZeroConcentratedDP):
            raise InvalidInput(f"a filter's limit is ε-DP, μ-GDP or ρ-zCDP, not {checks.shown(limit)}")
        self.limit = limit

    @property
    def remaining(self) -> Budget | None:
        """The largest single cost that would still be let through; None when nothing is left."""
        so_far = self.spent
        spent = 0.0 if so_far is None else so_far.size / self.limit.size
        left = 1.0 - spent
        if left <= _TIE:
            return None
        if isinstance(self.limit, GaussianDP):
            left = math.sqrt(left * (1.0 + spent))
        return type(self.limit)(self.limit.size * left)

    def spend(self, cost: Budget) -> None:
        """Count one release, or refuse it with `BudgetExhausted`."""
        _refuse_other(cost)
        super().spend(cost)

    def _with(self, cost: Budget) -> tuple[Budget | None, ...]:
        asked = cost.implies(type(self.limit))
        if compose([*_known(self._sums), asked]).size > self.limit.size * (1.0 + _TIE):
            raise BudgetExhausted(spent=self.spent, asked=cost, limit=self.limit)
        return super()._with(asked)
