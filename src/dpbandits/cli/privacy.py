"""`dpbandits privacy`."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import scipy
import typer

from dpbandits import checks
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.cli.parsing import PRIVACY_HELP, budget
from dpbandits.errors import NotImplied
from dpbandits.privacy.accounting import compose, grouped
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.privacy.calibration import laplace_scale, reduced

_WORDS = {
    "sufficient_mu": "A Gaussian guarantee that suffices for it: μ",
    "gaussian_noise": "Gaussian noise that suffices, per unit of sensitivity",
    "laplace_noise": "Laplace noise that suffices, per unit of sensitivity",
    "attacker_success": "An attacker who must tell two values apart is right with probability at most",
}


def privacy(
    text: str = typer.Argument(metavar="BUDGET", help=PRIVACY_HELP),
    delta: float = typer.Option(1e-6, help="The δ at which to state (ε, δ)-DP."),
    rounds_per_person: int = typer.Option(
        1, help="From how many rounds of one person is learned: what they cost together."
    ),
    as_json: bool = JSON,
) -> None:
    """A budget in every definition, and what it buys."""
    checks.integer(least=1, rounds_per_person=rounds_per_person)
    held, facts = budget(text), _facts(budget(text))
    rows = _implied(held, delta)
    people = _people(held, rounds_per_person)
    if as_json:
        also = {"rounds_per_person": rounds_per_person, "people": people} if people else {}
        print_json({"budget": held.to_dict(), "implies": rows, "buys": facts} | also)
        return
    console().print(f"[bold]{held}[/]\n")
    shown = [row | {"follows": row["follows"] or "nothing follows"} for row in rows]
    print_rows(shown, "The same promise in other definitions")
    if isinstance(held, ApproxDP):
        console().print(
            "An (ε, δ) promise says nothing about outcomes rarer than δ, so no other follows.\n"
        )
    for name, value in facts.items():
        console().print(f"{_WORDS[name]}: [bold]{value:.6g}[/]")
    if people:
        title = f"\n{rounds_per_person} rounds of one person, learned from"
        columns = ("", f"cost, at {held} each", f"may cost each, for {held} in all", "noise times")
        shown = [row | {"total": row["total"] or "nothing follows"} for row in people]
        print_rows([dict(zip(columns, row.values(), strict=True)) for row in shown], title)


def _implied(held: Budget, delta: float) -> list[dict[str, Any]]:
    """A row per definition: the strongest statement that follows, or that none does."""
    at_delta = held.delta if isinstance(held, ApproxDP) else delta
    wanted: list[tuple[str, type[Budget], dict[str, float]]] = [
        ("pure DP", PureDP, {}),
        ("Gaussian DP", GaussianDP, {}),
        ("zero-concentrated DP", ZeroConcentratedDP, {}),
        ("Rényi DP of order 8", RenyiDP, {"order": 8.0}),
        (f"(ε, δ)-DP at δ = {at_delta:g}", ApproxDP, {"delta": at_delta}),
    ]
    rows = []
    for name, kind, at in wanted:
        rows.append({"definition": name, "follows": _or_none(partial(held.implies, kind, **at))})
    return rows


def _people(held: Budget, rounds: int) -> list[dict[str, Any]]:
    """What so many rounds cost where one costs this much, and what one may cost for all to cost it."""
    if rounds == 1 or isinstance(held, NonPrivate):
        return []
    root = rounds if isinstance(held, PureDP) else math.sqrt(rounds)
    rules: list[tuple[str, Callable[[], Budget], float]] = [
        ("in any batches (group privacy)", lambda: grouped(held, rounds), rounds),
        ("in different, independent batches", lambda: _composed(held, rounds), root),
    ]
    return [
        {"learned": rule, "total": _or_none(cost), "each": str(reduced(held, times)), "noise": times}
        for rule, cost, times in rules
    ]


def _composed(held: Budget, rounds: int) -> Budget:
    """Independent releases; an (ε, δ) promise is taken to be met by Gaussian noise."""
    if isinstance(held, ApproxDP):
        total = GaussianDP(held.to_gaussian().mu * math.sqrt(rounds))
        return total.implies(ApproxDP, delta=held.delta)
    return compose([held] * rounds)


def _or_none(statement: Callable[[], Budget]) -> str | None:
    """A budget that follows, in words; None where none does."""
    try:
        return str(statement())
    except NotImplied:
        return None


def _facts(held: Budget) -> dict[str, float]:
    """Numbers a person can picture."""
    if isinstance(held, NonPrivate):
        return {}
    facts = {}
    try:
        facts["sufficient_mu"] = held.to_gaussian().mu
        facts["gaussian_noise"] = 1.0 / facts["sufficient_mu"]
    except NotImplied:
        facts["laplace_noise"] = laplace_scale(1.0, held)
    # The best attacker who must tell two candidates apart, each as likely as the other.
    if isinstance(held, GaussianDP):
        guess = float(scipy.special.ndtr(held.mu / 2.0))
    else:
        guess = 0.5 + held.delta_at(0.0) / 2.0
    facts["attacker_success"] = min(guess, 1.0)
    return {name: value for name, value in facts.items() if math.isfinite(value)}
