"""`dpbandits privacy`."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import scipy
import typer

from dpbandits import checks
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.errors import InvalidInput, NotImplied
from dpbandits.notation import PRIVACY_HELP, budget
from dpbandits.privacy.accounting import compose, grouped
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    rounded_down,
    rounded_up,
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
    delta: float = typer.Option(
        None, help="The δ at which to state (ε, δ)-DP: 1e-6, or the budget's own, unless given."
    ),
    rounds_per_person: int = typer.Option(
        1, help="What this many rounds of one person cost together, if all are learned from."
    ),
    as_json: bool = JSON,
) -> None:
    """A budget in every definition, and what it buys."""
    checks.integer(least=1, rounds_per_person=rounds_per_person)
    held, facts = budget(text), _facts(budget(text))
    if isinstance(held, NonPrivate) and rounds_per_person > 1:
        raise InvalidInput("--rounds-per-person needs a budget that the rounds can share")
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
        # Rounded so that what is printed is never better than what is held.
        rounded = rounded_down(value) if name == "sufficient_mu" else rounded_up(value)
        console().print(f"{_WORDS[name]}: [bold]{rounded}[/]")
    if people:
        title = f"\nIf {rounds_per_person:,} rounds of one person are learned from"
        columns = ("learned from", "total", "each", "noise ×")
        shown = [
            row | {"total": row["total"] or "nothing follows", "noise": rounded_up(row["noise"])}
            for row in people
        ]
        print_rows([dict(zip(columns, row.values(), strict=True)) for row in shown], title)
        console().print(
            f"total: what they cost together at {held} each; each: what one may cost for {held} in all; "
            "noise ×: how many times the noise of one round that takes."
        )


def _implied(held: Budget, delta: float | None) -> list[dict[str, Any]]:
    """A row per definition: the strongest statement that follows, or that none does."""
    usual = held.delta if isinstance(held, ApproxDP) else 1e-6
    at_delta = usual if delta is None else delta
    checks.open_unit(delta=at_delta)
    wanted: list[tuple[str, type[Budget], dict[str, float]]] = [
        ("pure DP", PureDP, {}),
        ("Gaussian DP", GaussianDP, {}),
        ("zero-concentrated DP", ZeroConcentratedDP, {}),
        ("Rényi DP of order 8", RenyiDP, {"order": 8.0}),
        (f"(ε, δ)-DP at δ = {rounded_up(at_delta)}", ApproxDP, {"delta": at_delta}),
    ]
    rows = []
    for name, kind, at in wanted:
        rows.append({"definition": name, "follows": _or_none(partial(held.implies, kind, **at))})
    return rows


def _at_most(allowed: Budget) -> Budget:
    """An allowance, rounded down: what is printed must be allowed."""
    kept = {"order"}  # of a divergence, which is rounded alone
    sizes = {x.name: getattr(allowed, x.name) for x in dataclasses.fields(allowed) if x.name not in kept}
    return dataclasses.replace(allowed, **{name: float(rounded_down(x)) for name, x in sizes.items()})


def _people(held: Budget, rounds: int) -> list[dict[str, Any]]:
    """What all of a person's rounds cost where one costs this, and what one may cost for all to."""
    if rounds == 1 or isinstance(held, NonPrivate):
        return []
    root = rounds if isinstance(held, PureDP) else math.sqrt(rounds)
    rules: list[tuple[str, Callable[[], Budget], float]] = [
        ("in any batches (group privacy)", lambda: grouped(held, rounds), rounds),
        ("in different, independent batches", lambda: _composed(held, rounds), root),
    ]
    return [
        {
            "learned": rule,
            "total": _or_none(cost),
            "each": str(_at_most(reduced(held, times))),
            "noise": times,
        }
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
