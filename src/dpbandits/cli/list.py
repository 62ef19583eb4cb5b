"""`dpbandits list`."""

from typing import Any

from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.policies import LocalPolicy, Policy, policy_kinds
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.privacy.guarantees import Trust


def row(name: str, kind: type[Policy]) -> dict[str, Any]:
    """What `list` tells about one policy."""
    return {
        "policy": name,
        "problem": kind.problem_kind.__name__,
        "privacy": [budget.symbol for budget in kind.accepts],
        "trust": str(Trust.LOCAL if issubclass(kind, LocalPolicy) else kind.problem_kind.trust),
        "horizon": "needed" if kind.needs_horizon else "any",
        "guarantee": _status(kind),
        "paper": kind.paper,
    }


def _status(kind: type[Policy]) -> str:
    """How sure its guarantee is. Thompson sampling has one without a budget; others then have none."""
    if kind.takes_no_budget():
        held = kind(privacy=NonPrivate()).guarantee(kind.problem_kind.testing.example(1000))
        return held.status if held.is_private else "none"
    return kind.status


def list_policies(as_json: bool = JSON) -> None:
    """Every policy: its problem, the privacy it accepts, its paper."""
    rows = [row(name, kind) for name, kind in policy_kinds().items()]
    if as_json:
        print_json(rows)
        return
    print_rows([one | {"privacy": " · ".join(one["privacy"])} for one in rows])
    console().print("Details: dpbandits show NAME", style="dim")
