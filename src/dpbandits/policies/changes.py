"""Arms that come and go: public acts, each written down with the decision before which it was done.

A state with a field `away` (a flag for every arm there is room for) never chooses an arm that is away.
Its open batch stays open, rounds in flight still fill it, and what is known of it is kept. Who is in
play is a function of public acts alone, so a guarantee holds as it stands; it says that they are public.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.episodes import NEXT

if TYPE_CHECKING:
    from dpbandits.policies.learner import Learner


class Change(NamedTuple):
    """An arm that came or went."""

    decided: int  # decisions made before
    act: str  # "add", "retire" or "revive"
    arm: int


def arms_known(learner: "Learner") -> int:
    """How many arms were ever in play; the others are room for more."""
    declared: int = getattr(learner.problem, "arms", None) or 0
    return declared + sum(one.act == "add" for one in learner.changes)


def arms_away(learner: "Learner") -> Any:
    """The arms not in play after all changes so far; None where none may come or go."""
    if getattr(learner._public, "away", None) is None:
        if learner.changes:
            raise InvalidInput(f"{type(learner.policy).__name__} cannot change arms")
        return None
    slots: int = getattr(learner.problem, "slots", 0)
    known: int = getattr(learner.problem, "arms", 0)
    away = np.arange(slots) >= known
    for one in learner.changes:
        checks.one_of(("add", "retire", "revive"), act=one.act)
        checks.integer(least=known if one.act == "add" else 0, arm=one.arm)
        known += one.act == "add"
        if one.arm >= known or known > slots:
            raise InvalidInput(f"there is no arm {one.arm} to {one.act}")
        away[one.arm] = one.act == "retire"
    return away


def change(learner: "Learner", act: str, arm: int) -> Change:
    """Do it, or say why it cannot be done."""
    away: Any = getattr(learner._public, "away", None)
    if away is None:
        raise InvalidInput(
            f"{type(learner.policy).__name__} cannot {act} arms; those that play them in batches can, "
            "such as NoiseAwareIMED and LazyThompson"
        )
    checks.integer(least=0, arm=arm)
    known = arms_known(learner)
    if act == "add":
        if arm >= away.size:
            raise InvalidInput(
                f"all {away.size} arms are in use; room for more is declared: Arms({known}, capacity=…)"
            )
    elif arm >= known:
        raise InvalidInput(f"expected arm to be below {known}, got {arm}")
    elif away[arm] == (act == "retire"):
        raise InvalidInput(f"arm {arm} is {'out of' if away[arm] else 'in'} play already")
    elif act == "retire" and (~away).sum() == 1:
        raise InvalidInput(f"arm {arm} is the last in play")
    put_away(learner._public, arm, act == "retire")
    return Change(learner.decided, act, int(arm))


def put_away(public: Any, arm: int, away: bool) -> None:
    """Out of play or into it; an episode under way with this arm is reconsidered."""
    public.away[arm] = away
    if "episode" in public._fields and public.episode[NEXT] == arm:
        public.episode[NEXT] = -1
