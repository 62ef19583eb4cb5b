"""`dpbandits list`."""

from types import ModuleType
from typing import Any

import typer

from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.cli.worlds import LOGGED, worlds_of
from dpbandits.notation import named
from dpbandits.policies import LocalPolicy, Policy, arms, kernel, linear, matroid, policy_kinds
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Arms, KernelContexts, LinearProblem, MatroidBases

_SYMBOLS = ("ε", "(ε, δ)", "μ", "ρ", "(α, γ)")
GROUPS: dict[str, tuple[ModuleType, Any]] = {
    "arms": (arms, Arms),
    "linear": (linear, LinearProblem),
    "matroids": (matroid, MatroidBases),
    "kernels": (kernel, KernelContexts),
}


_COLUMNS = """\
trust: who sees raw data. central: the learner; all its decisions are protected.
  joint: the learner; the decisions for everyone else are. local: nobody.
horizon: whether it must know the number of rounds.
guarantee: proved (on its page), claimed, or none.
privacy: the budgets it accepts."""


def row(name: str, kind: type[Policy]) -> dict[str, Any]:
    """What is told about one policy."""
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


def list_policies(
    problem: str = typer.Option(None, help=f"Only those for one problem: {', '.join(GROUPS)}."),
    as_json: bool = JSON,
) -> None:
    """Every policy by its problem: the privacy it accepts, whom it trusts, how sure its guarantee is."""
    wanted = GROUPS if problem is None else [named("problem", problem, GROUPS)]
    kinds = {
        group: [kind for kind in policy_kinds().values() if kind.__name__ in GROUPS[group][0].__all__]
        for group in wanted
    }
    if as_json:
        print_json([row(kind.name(), kind) for group in kinds.values() for kind in group])
        return
    for group, members in kinds.items():
        print_rows([_shown(row(kind.name(), kind)) for kind in members], group.capitalize())
        worlds = worlds_of(GROUPS[group][1])
        said = f"Worlds for `compare --env`: {', '.join(name for name in worlds if name not in LOGGED)}"
        if logged := [name for name in worlds if name in LOGGED]:
            said += f"; of your log, `compare --data`: {', '.join(logged)}"
        console().print(f"{said}\n", style="dim")
    console().print(f"{_COLUMNS}\nOptions and paper: dpbandits show NAME", style="dim")


def _shown(told: dict[str, Any]) -> dict[str, Any]:
    """What fits into 80 columns; the paper is on the policy's page."""
    budgets = (symbol.replace(" ", "") for symbol in _SYMBOLS if symbol in told["privacy"])
    columns = {key: told[key] for key in ("policy", "trust", "horizon", "guarantee")}
    return columns | {"privacy": " ".join(budgets) or "none"}
