"""A guarantee: a budget, what one neighbour may change, and who is trusted; in one sentence."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from dpbandits.errors import NotComparable, NotImplied
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, NonPrivate, rounded_up


class Unit(Enum):
    """What a neighbouring stream may differ in: the value replaced in one round.

    Where people are distinguished, it is that in all rounds of one person that are learned from.
    """

    REWARD = "one reward"
    ROUND = "one person's context and reward"
    REWARD_VECTOR = "one round's vector of rewards"

    def of(self, rounds: int) -> str:
        """The values of at most this many rounds."""
        if rounds == 1:
            value = {Unit.ROUND: "context and reward", Unit.REWARD_VECTOR: "vector of rewards"}
            return f"the {value.get(self, 'reward')} of at most one round"
        values = "contexts and rewards" if self is Unit.ROUND else "rewards"
        return f"the {values} of at most {rounds} rounds"


class Returning(Enum):
    """How several rounds of one person are paid for together."""

    COUNTED = ""
    APART = ", in different batches"
    GROUPED = ", by group privacy"


class Trust(StrEnum):
    """Who sees raw data, and whose output is protected."""

    CENTRAL = "central"  # a learner sees it; all its decisions are protected
    JOINT = "joint"  # a learner sees it; the decisions for everyone else are
    LOCAL = "local"  # nobody else sees it: people send protected messages


_PROTECTED = {
    Trust.CENTRAL: "all decisions together are",
    Trust.JOINT: "the decisions for everyone else together are",
    Trust.LOCAL: "every message a person sends is",
}


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is promised, with its conditions.

    `horizon` is the last round it covers (None: any number of rounds), `reason` says why there is
    no guarantee when there is none, `public` lists what is declared public and so not protected, and
    `unprotected` says in clauses of their own what else is not.
    `rounds_per_person` is from how many rounds of one person is learned at most (None: people are not
    told apart, and it is promised to those who take part once), `returning` how they are paid for.
    """

    budget: Budget
    unit: Unit
    trust: Trust
    horizon: int | None = None
    public: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    status: str = "claimed"
    reason: str = ""
    rounds_per_person: int | None = None
    returning: Returning = Returning.COUNTED

    @property
    def is_private(self) -> bool:
        """Whether anything at all is promised."""
        return not isinstance(self.budget, NonPrivate)

    @property
    def why_none(self) -> str:
        """Why there is no guarantee, where there is none."""
        return self.reason or "none was asked for"

    def __str__(self) -> str:
        if not self.is_private:
            return f"No privacy guarantee: {self.why_none}."
        also = ""
        if isinstance(self.budget, GaussianDP):
            also = f", so ({rounded_up(self.budget.epsilon_at(1e-6))}, 1e-6)-DP,"
        rounds = "for any number of rounds" if self.horizon is None else f"up to round {self.horizon:,}"
        claimed = "" if self.status == "proved" else f"; {self.status}, not proved"
        public = f"; public by declaration: {', '.join(self.public)}" if self.public else ""
        public += "".join(f"; {clause}" for clause in self.unprotected)
        subject, replaced, condition, limits = self._for_whom()
        return (
            f"{subject.capitalize()} {self.budget}{also} under replacement of {replaced}, {rounds}, "
            f"if {condition} and the seed stays secret{limits}{public}{claimed}."
        )

    def _for_whom(self) -> tuple[str, str, str, str]:
        """What is private, what is replaced, on what condition about people, and what is not covered."""
        k = self.rounds_per_person
        if k is None:
            return _PROTECTED[self.trust], self.unit.value, "each person takes part in one round", ""
        subject, done, condition = _PROTECTED[self.trust], "learned from", "`person` tells people apart"
        limits = "; who takes part when is not protected"
        if self.trust is Trust.JOINT:
            limits += (
                ", and her own later decisions, which she alone sees, may depend on her earlier data"
            )
        if self.trust is Trust.LOCAL:
            subject, done = "all messages of one person together are", "reported by"
            condition = f"no person sends more than {'one message' if k == 1 else f'{k} messages'}"
        values = f"{self.unit.of(k)}{self.returning.value}"
        return subject, f"everything {done} one person ({values})", condition, limits

    def short(self) -> str:
        """The budget for a table; one that hides next to nothing is said to be none."""
        delta = self.budget.delta if isinstance(self.budget, ApproxDP) else 1e-6
        if self.is_private and self.budget.epsilon_at(delta) > 100.0:
            return f"none: {self.budget}"
        return str(self.budget) if self.is_private else "none"

    def implies(self, other: "Guarantee") -> bool:
        """Whether this guarantee is at least as strong; different units or trust do not compare.

        One for k rounds of a person holds for fewer. It also holds where people are not distinguished,
        for those who take part once: no round costs more than all of hers. The other way round nothing
        follows, not even for k = 1, where people may return and are distinguished.
        """
        if (self.unit, self.trust) != (other.unit, other.trust):
            raise NotComparable(
                f"a guarantee for {self.unit.value} ({self.trust}) and one for "
                f"{other.unit.value} ({other.trust}) protect different things"
            )
        if not other.is_private:
            return True
        if self.horizon is not None and (other.horizon is None or self.horizon < other.horizon):
            return False
        if other.rounds_per_person is not None:
            if self.rounds_per_person is None or self.rounds_per_person < other.rounds_per_person:
                return False
            # With one round there is nothing to keep apart.
            apart = self.returning is Returning.APART and other.rounds_per_person > 1
            if apart and other.returning is not Returning.APART:
                return False
        ours, theirs = ({*one.public, *one.unprotected} for one in (self, other))
        if not ours <= theirs or self.status not in ("proved", other.status):
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
            "trust": self.trust.value,
            "horizon": self.horizon,
            "public": list(self.public),
            "unprotected": list(self.unprotected),
            "status": self.status,
            "reason": self.reason,
            "rounds_per_person": self.rounds_per_person,
            "returning": self.returning.name.lower(),
            "sentence": str(self),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Guarantee":
        """The guarantee a record describes; its sentence is made anew."""
        return cls(
            budget=Budget.from_dict(record["budget"]),
            unit=Unit[record["unit"].upper()],
            trust=Trust(record["trust"]),
            horizon=record["horizon"],
            public=tuple(record["public"]),
            unprotected=tuple(record.get("unprotected", ())),
            status=record["status"],
            reason=record["reason"],
            # Records from before people were distinguished do not mention them.
            rounds_per_person=record.get("rounds_per_person"),
            returning=Returning[record.get("returning", "counted").upper()],
        )
