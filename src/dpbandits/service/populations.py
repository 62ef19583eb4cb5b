"""What several experiments on the same people cost each of them."""

from collections.abc import Mapping
from typing import Any

from dpbandits.errors import NotImplied
from dpbandits.privacy.accounting import Odometer
from dpbandits.privacy.budgets import Budget, NonPrivate


def population_record(name: str, budgets: Mapping[str, Budget]) -> dict[str, Any]:
    """What all experiments on a population cost a person who takes part in each of them."""
    total, count = _added_up(list(budgets.values())), len(budgets)
    if count == 1:
        sentence = f"It is the only experiment on {name}, so a person's total there is its own."
    elif total is None:
        sentence = (
            f"The budgets of the {count} experiments on {name} are of kinds that do not add up: each "
            "holds by itself."
        )
    elif isinstance(total, NonPrivate):
        sentence = (
            f"Of the {count} experiments on {name} not every one promises something, so nothing is "
            "promised for all of them together."
        )
    else:
        every = "both" if count == 2 else f"all {count}"
        sentence = (
            f"A person who takes part in {every} experiments on {name} is protected by {total} in all, "
            "for what each of them protects."
        )
    return {
        "name": name,
        "experiments": list(budgets),
        "budgets": [budget.to_dict() for budget in budgets.values()],
        "together": None if total is None else total.to_dict(),
        "sentence": sentence,
    }


def _added_up(budgets: list[Budget]) -> Budget | None:
    total = Odometer()
    try:
        for budget in budgets:
            total.spend(budget)
        return total.spent
    except NotImplied:
        return None
