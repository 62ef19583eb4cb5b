"""Privacy budgets: how much one person's data may show.

Two verbs are kept apart on purpose:

- ``held.implies(kind)`` *weakens* a guarantee that is held into another definition;
- ``wanted.to_gaussian()`` gives a μ whose Gaussian guarantee *suffices* for a wanted budget.

They are not inverse: (ε, δ)-DP implies no μ-GDP at all, yet some μ suffices for every (ε, δ).

Policies are played at an ε, or at a μ that suffices, from 1e-12 to 1e12 (`LEAST`, `LARGEST`).
"""

import decimal
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted, InvalidInput, NotImplied
from dpbandits.privacy import curves
from dpbandits.recipes import Recipe
from dpbandits.wording import short_exponent

# Two numbers closer than this (relative) are one number computed in two ways.
ROUNDING = 1e-12
# What is better by no more than this was made to be the same, on the safe side.
_SLACK = 1e-9
# Between these a policy can be played: its noise and batches are much larger than rounding errors.
LEAST, LARGEST = 1e-12, 1e12

_Kind = TypeVar("_Kind", bound="Budget")


def rounded_up(value: float) -> str:
    """Four digits, rounded up, so that what is printed is never better than what is held."""
    return _four_digits(value, 1.0 - ROUNDING, decimal.ROUND_CEILING)


def rounded_down(value: float) -> str:
    """The same, of what is worse the smaller it is."""
    return _four_digits(value, 1.0 + ROUNDING, decimal.ROUND_FLOOR)


def _four_digits(value: float, hair: float, rounding: str) -> str:
    exact = decimal.Context(prec=30).multiply(decimal.Decimal(value), decimal.Decimal(hair))
    digits = float(decimal.Context(prec=4, rounding=rounding).plus(exact))
    return short_exponent(f"{digits:.4g}")


@dataclass(frozen=True)
class Budget(Recipe):
    """Base of every budget; larger `size` means less private, within one kind."""

    abstract: ClassVar[bool] = True
    symbol: ClassVar[str]

    @property
    def size(self) -> float:
        """The number that says how much."""
        raise NotImplementedError

    def _delta_at(self, epsilon: float) -> float:
        raise NotImplied(f"{self} implies no (ε, δ)-DP guarantee at ε = {epsilon:g}")

    def _epsilon_at(self, delta: float) -> float:
        raise NotImplied(f"{self} implies no (ε, δ)-DP guarantee at δ = {delta:g}")

    def _weakened(self, kind: "type[Budget]", order: float) -> "Budget | None":
        """This guarantee in a kind other than its own and other than (ε, δ), if one follows."""
        return None

    def to_gaussian(self) -> "GaussianDP":
        """The weakest Gaussian guarantee that suffices for this budget (calibration only)."""
        raise NotImplied(f"no Gaussian noise suffices for {self}")

    def refuse_unplayable(self) -> None:
        """Refuse what no noise can be calibrated to: see `LEAST` and `LARGEST`."""
        if isinstance(self, NonPrivate):
            return
        size = self.epsilon if isinstance(self, PureDP) else self.to_gaussian().mu
        if not LEAST <= size <= LARGEST:
            symbol = "ε" if isinstance(self, PureDP) else "μ that suffices"
            raise BudgetNotAccepted(
                f"expected a budget whose {symbol} is within {LEAST:g} and {LARGEST:g}, got {self!r}"
            )

    def delta_at(self, epsilon: float) -> float:
        """The least δ such that (ε, δ)-DP follows from this guarantee."""
        checks.not_negative(epsilon=epsilon)
        return self._delta_at(float(epsilon))

    def epsilon_at(self, delta: float) -> float:
        """The least ε such that (ε, δ)-DP follows from this guarantee; inf where none does."""
        checks.open_unit(delta=delta)
        return self._epsilon_at(float(delta))

    def implies(
        self, kind: type[_Kind], *, delta: float | None = None, order: float | None = None
    ) -> _Kind:
        """This guarantee, where it is held, in another definition: the strongest known to follow.

        `ApproxDP` needs the `delta` to state it at, `RenyiDP` the `order`.

        >>> GaussianDP(1.0).implies(ApproxDP, delta=1e-6)
        ApproxDP(epsilon=4.88655..., delta=1e-06)
        >>> GaussianDP(1.0).implies(ZeroConcentratedDP)
        ZeroConcentratedDP(rho=0.5)
        """
        if not (isinstance(kind, type) and issubclass(kind, Budget)):
            raise InvalidInput(f"expected a kind of budget such as GaussianDP, got {checks.shown(kind)}")
        implied = self._implied(kind, delta, order)
        assert isinstance(implied, kind)
        return implied

    def _implied(self, kind: "type[Budget]", delta: float | None, order: float | None) -> "Budget":
        if kind is ApproxDP and delta is None and isinstance(self, ApproxDP):
            delta = self.delta
        if kind is RenyiDP and order is None and isinstance(self, RenyiDP):
            order = self.order
        if kind is NonPrivate:
            return NonPrivate()
        if kind is ApproxDP:
            if delta is None:
                raise InvalidInput("state the delta: implies(ApproxDP, delta=1e-6)")
            epsilon = self.epsilon_at(delta)
            if math.isinf(epsilon):
                raise NotImplied(f"{self} implies no (ε, δ)-DP guarantee at δ = {delta:g}")
            return ApproxDP(epsilon, float(delta))
        if kind is RenyiDP:
            if order is None:
                raise InvalidInput("state the order: implies(RenyiDP, order=8)")
            checks.above_one(order=order)
            order = float(order)
        if kind is type(self) and kind is not RenyiDP:
            return self
        found = self._weakened(kind, math.nan if order is None else order)
        if found is None:
            raise NotImplied(f"{self} implies no guarantee of kind {kind.__name__}")
        return found

    def within(self, wanted: "Budget") -> "Budget":
        """This held guarantee in the kind that was wanted.

        Exactly `wanted` where that is met to rounding, the stronger one where there is slack. Where
        it is *not* met this is an error: what is printed must be what is delivered.
        """
        if isinstance(wanted, NonPrivate):
            return self
        if not self._meets(wanted, 1.0 + ROUNDING):
            raise NotImplied(f"{self} is weaker than the {wanted} that was asked for")
        if not self._meets(wanted, 1.0 - _SLACK):
            return wanted
        return self._as(wanted)

    def _meets(self, wanted: "Budget", factor: float) -> bool:
        """Whether `wanted`, made larger by a factor, follows from this guarantee."""
        if isinstance(wanted, ApproxDP):
            # In ε and δ at once: near ε = 0 the least rounding of δ moves ε by much.
            return self.delta_at(wanted.epsilon * factor) <= wanted.delta * factor
        return self._as(wanted).size <= wanted.size * factor

    def _as(self, wanted: "Budget") -> "Budget":
        delta = wanted.delta if isinstance(wanted, ApproxDP) else None
        order = wanted.order if isinstance(wanted, RenyiDP) else None
        return self.implies(type(wanted), delta=delta, order=order)


@dataclass(frozen=True)
class PureDP(Budget):
    """ε-DP: no event becomes more than e^ε times as likely."""

    symbol: ClassVar[str] = "ε"

    epsilon: Annotated[float, "The log-likelihood ratio of any outcome, at most."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(epsilon=self.epsilon)

    def __str__(self) -> str:
        return f"{rounded_up(self.epsilon)}-DP"

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def _delta_at(self, epsilon: float) -> float:
        return curves.approx_delta(self.epsilon, 0.0, epsilon)

    def _epsilon_at(self, delta: float) -> float:
        return curves.approx_epsilon(self.epsilon, 0.0, delta)

    def _weakened(self, kind: type[Budget], order: float) -> Budget | None:
        if kind is GaussianDP:
            return GaussianDP(curves.pure_mu(self.epsilon))
        if kind is ZeroConcentratedDP:
            return ZeroConcentratedDP(curves.pure_rho(self.epsilon))
        if kind is RenyiDP:
            return RenyiDP(order, curves.pure_renyi(order, self.epsilon))
        return None


@dataclass(frozen=True)
class ApproxDP(Budget):
    """(ε, δ)-DP: P(E) ≤ e^ε P'(E) + δ for every event E."""

    symbol: ClassVar[str] = "(ε, δ)"

    epsilon: Annotated[float, "The log-likelihood ratio of any outcome, but for a chance of delta."]
    delta: Annotated[
        float, "The chance that epsilon does not hold; well below 1 over the number of people."
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.not_negative(epsilon=self.epsilon)
        checks.open_unit(delta=self.delta)

    def __str__(self) -> str:
        return f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})-DP"

    @property
    def size(self) -> float:
        """ε, at this δ."""
        return self.epsilon

    def to_gaussian(self) -> "GaussianDP":
        """The largest μ whose curve passes below (ε, δ)."""
        return GaussianDP(curves.gaussian_mu(self.epsilon, math.log(self.delta)))

    def _delta_at(self, epsilon: float) -> float:
        return curves.approx_delta(self.epsilon, self.delta, epsilon)

    def _epsilon_at(self, delta: float) -> float:
        return curves.approx_epsilon(self.epsilon, self.delta, delta)


@dataclass(frozen=True)
class GaussianDP(Budget):
    """μ-GDP: at most as distinguishable as N(0, 1) and N(μ, 1) (Dong, Roth & Su 2022).

    >>> round(GaussianDP(1.0).epsilon_at(1e-6), 6)
    4.886554
    """

    symbol: ClassVar[str] = "μ"

    mu: Annotated[float, "As hard to tell apart as two unit normals this far from each other."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(mu=self.mu)

    def __str__(self) -> str:
        return f"{rounded_up(self.mu)}-GDP"

    @property
    def size(self) -> float:
        """μ."""
        return self.mu

    def to_gaussian(self) -> "GaussianDP":
        """Itself."""
        return self

    def _delta_at(self, epsilon: float) -> float:
        return math.exp(curves.gaussian_log_delta(epsilon, self.mu))

    def _epsilon_at(self, delta: float) -> float:
        return curves.gaussian_epsilon(math.log(delta), self.mu)

    def _weakened(self, kind: type[Budget], order: float) -> Budget | None:
        if kind is ZeroConcentratedDP:
            return ZeroConcentratedDP(self.mu * self.mu / 2.0)
        if kind is RenyiDP:
            return RenyiDP(order, order * self.mu * self.mu / 2.0)
        return None


@dataclass(frozen=True)
class ZeroConcentratedDP(Budget):
    """ρ-zCDP: every Rényi divergence of order α is at most αρ (Bun & Steinke 2016).

    Its (ε, δ) curve is the best known conversion (Canonne, Kamath & Steinke 2020).
    """

    symbol: ClassVar[str] = "ρ"

    rho: Annotated[float, "The Rényi divergence of every order, divided by that order, at most."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(rho=self.rho)

    def __str__(self) -> str:
        return f"{rounded_up(self.rho)}-zCDP"

    @property
    def size(self) -> float:
        """ρ."""
        return self.rho

    def to_gaussian(self) -> GaussianDP:
        """μ = √(2ρ)."""
        return GaussianDP(math.sqrt(2.0 * self.rho))

    def _delta_at(self, epsilon: float) -> float:
        return math.exp(curves.concentrated_log_delta(self.rho, epsilon))

    def _epsilon_at(self, delta: float) -> float:
        return curves.concentrated_epsilon(self.rho, math.log(delta))

    def _weakened(self, kind: type[Budget], order: float) -> Budget | None:
        return RenyiDP(order, order * self.rho) if kind is RenyiDP else None


@dataclass(frozen=True)
class RenyiDP(Budget):
    """(α, γ)-RDP: the Rényi divergence of one order α is at most γ (Mironov 2017)."""

    symbol: ClassVar[str] = "(α, γ)"

    order: Annotated[float, "The order α of the divergence, above 1."]
    divergence: Annotated[float, "The Rényi divergence of that order, at most."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.above_one(order=self.order)
        checks.positive(divergence=self.divergence)

    def __str__(self) -> str:
        # A smaller order follows from a larger one, not the other way round.
        return f"({rounded_down(self.order)}, {rounded_up(self.divergence)})-RDP"

    @property
    def size(self) -> float:
        """γ, at this order."""
        return self.divergence

    def to_gaussian(self) -> GaussianDP:
        """μ = √(2γ/α)."""
        return GaussianDP(math.sqrt(2.0 * self.divergence / self.order))

    def _delta_at(self, epsilon: float) -> float:
        return math.exp(curves.renyi_log_delta(self.order, self.divergence, epsilon))

    def _epsilon_at(self, delta: float) -> float:
        return curves.renyi_epsilon(self.order, self.divergence, math.log(delta))

    def _weakened(self, kind: type[Budget], order: float) -> Budget | None:
        # Rényi divergence grows with the order, so a guarantee holds at every smaller one.
        follows = kind is RenyiDP and order <= self.order
        return RenyiDP(order, self.divergence) if follows else None


@dataclass(frozen=True)
class NonPrivate(Budget):
    """No privacy asked for: noise exactly 0, on the same schedule."""

    symbol: ClassVar[str] = "none"

    def __str__(self) -> str:
        return "not private"

    @property
    def size(self) -> float:
        """Infinite."""
        return math.inf


# Every kind that Gaussian noise can be calibrated to.
GAUSSIAN_KINDS: tuple[type[Budget], ...] = (GaussianDP, ApproxDP, ZeroConcentratedDP, RenyiDP)
# What policies accept: with Gaussian noise; with one Laplace draw for each reward, which meets μ-GDP at
# the ε that suffices; with either noise, by the budget.
GAUSSIAN_OR_NONE: tuple[type[Budget], ...] = (*GAUSSIAN_KINDS, NonPrivate)
LAPLACE_OR_NONE: tuple[type[Budget], ...] = (PureDP, GaussianDP, NonPrivate)
EVERY_KIND: tuple[type[Budget], ...] = (PureDP, *GAUSSIAN_KINDS, NonPrivate)
# The same; without a budget, a policy keeps the schedule of the first.
GAUSSIAN_FIRST: tuple[type[Budget], ...] = (*GAUSSIAN_KINDS, PureDP, NonPrivate)
