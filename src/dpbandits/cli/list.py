"""`dpbandits list`."""

from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.policies import Policy, policy_kinds


def row(name: str, kind: type[Policy]) -> dict[str, object]:
    """What `list` tells about one policy."""
    return {
        "policy": name,
        "problem": kind.problem_kind.__name__,
        "privacy": ", ".join(budget.__name__ for budget in kind.accepts),
        "horizon": "needed" if kind.needs_horizon else "any",
        "guarantee": kind.status,
        "paper": kind.paper,
    }


def list_policies(as_json: bool = JSON) -> None:
    """Every policy: its problem, the privacy it accepts, its paper."""
    rows = [row(name, kind) for name, kind in policy_kinds().items()]
    if as_json:
        print_json(rows)
        return
    print_rows(rows)
    console().print("Details: dpbandits show NAME", style="dim")
