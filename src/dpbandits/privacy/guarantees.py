"""A guarantee: a budget, what one neighbour may change, and who is trusted; in one sentence."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpbandits.errors import NotComparable, NotImplied
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, NonPrivate, rounded_up


class Unit(Enum):
    """What a neighbouring stream may differ in: the value replaced in one round."""

    REWARD = "one reward"
    ROUND = "one person's context and reward"
    REWARD_VECTOR = "one round's vector of rewards"


class Trust(Enum):
    """Who sees raw data, and whose output is protected."""

    CENTRAL = "all decisions together are"
    JOINT = "the decisions for everyone else together are"
    LOCAL = "every message a person sends is"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is promised, with its conditions.

    `horizon` is the last round it covers (None: any number of rounds), `reason` says why there is
    no guarantee when there is none, `public` lists what is declared public and so not protected.
    """

    budget: Budget
    unit: Unit
    trust: Trust
    horizon: int | None = None
    public: tuple[str, ...] = ()
    status: str = "proved"
    reason: str = ""

    @property
    def is_private(self) -> bool:
        """Whether anything at all is promised."""
        return not isinstance(self.budget, NonPrivate)

    def __str__(self) -> str:
        if not self.is_private:
            return f"No privacy guarantee: {self.reason or 'none was asked for'}."
        also = ""
        if isinstance(self.budget, GaussianDP):
            also = f" (so ({rounded_up(self.budget.epsilon(1e-6))}, 1e-06)-DP)"
        rounds = "for any number of rounds" if self.horizon is None else f"up to round {self.horizon:,}"
        claimed = "" if self.status == "proved" else f"; {self.status}, not proved"
        public = f"; public by declaration: {', '.join(self.public)}" if self.public else ""
        return (
            f"{self.trust.value.capitalize()} {self.budget}{also} under replacement of "
            f"{self.unit.value}, {rounds}, if each person takes part in one round and the seed "
            f"stays secret{public}{claimed}."
        )

    def short(self) -> str:
        """The budget for a table; one that hides next to nothing is said to be none."""
        delta = self.budget.delta if isinstance(self.budget, ApproxDP) else 1e-6
        if self.is_private and self.budget.epsilon_for(delta) > 100.0:
            return f"none ({self.budget})"
        return str(self.budget) if self.is_private else "none"

    def implies(self, other: "Guarantee") -> bool:
        """Whether this guarantee is at least as strong; different units or trust do not compare."""
        if (self.unit, self.trust) != (other.unit, other.trust):
            raise NotComparable(
                f"a guarantee for {self.unit.value} ({self.trust.name.lower()}) and one for "
                f"{other.unit.value} ({other.trust.name.lower()}) protect different things"
            )
        if not other.is_private:
            return True
        if self.horizon is not None and (other.horizon is None or self.horizon < other.horizon):
            return False
        if not set(self.public) <= set(other.public) or self.status not in ("proved", other.status):
            return False
        try:
            self.budget.within(other.budget)
        except NotImplied:
            return False
        return True

    def to_dict(self) -> dict[str, Any]:
        """The same, for machines."""
        return {
            "budget": self.budget.to_dict(),
            "unit": self.unit.name.lower(),
            "trust": self.trust.name.lower(),
            "horizon": self.horizon,
            "public": list(self.public),
            "status": self.status,
            "reason": self.reason,
            "sentence": str(self),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Guarantee":
        """The guarantee a record describes; its sentence is made anew."""
        return cls(
            budget=Budget.from_dict(record["budget"]),
            unit=Unit[record["unit"].upper()],
            trust=Trust[record["trust"].upper()],
            horizon=record["horizon"],
            public=tuple(record["public"]),
            status=record["status"],
            reason=record["reason"],
        )
