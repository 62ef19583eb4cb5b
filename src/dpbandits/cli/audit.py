"""`dpbandits audit`."""

import typer

from dpbandits.audit import Replay, replay
from dpbandits.cli.output import JSON, console, print_json, print_rows, stoppable
from dpbandits.cli.parsing import PRIVACY_HELP, budget, policy
from dpbandits.privacy.budgets import GaussianDP, PureDP


def audit(
    name: str = typer.Argument(help="A policy, as for `compare`."),
    privacy: str = typer.Option("mu=1", help=PRIVACY_HELP),
    rounds: int = typer.Option(
        None, help="Length of the replayed streams: 48, or less where rounds are costly."
    ),
    controls: bool = typer.Option(True, help="Also replay policies that are wrong on purpose."),
    as_json: bool = JSON,
) -> None:
    """Replay a policy on every neighbour of extreme streams: the exact privacy cost of its releases.

    Batches are made short for this, so that several end; streams of over 100 rounds are tried at 20
    positions. Ends with status 1 if the guarantee is not kept, if no neighbour comes near it (then
    nothing was tested), or if a control was not caught.
    """
    from dpbandits.audit.broken import broken_policies  # slow to import

    subject = policy(name, budget(privacy))
    rounds = rounds or subject.problem_kind.replay_rounds
    problem = subject.problem_kind.example(rounds)
    guarantee = subject.guarantee(problem)
    with stoppable(""), console().status(f"replaying {name} and the controls, some seconds"):
        found = replay(subject.small(), problem, rounds=rounds, thorough=rounds <= 100)
        broken = [
            one
            for one in broken_policies(GaussianDP(1.0))
            if controls and isinstance(problem, one.problem_kind)
        ]
        own = problem.example(problem.replay_rounds)
        caught = {
            type(one).__name__: (one, replay(one, own, rounds=problem.replay_rounds)) for one in broken
        }
    kept = found.passed and not any(result.private for _, result in caught.values())
    if as_json:
        print_json(
            {
                "policy": subject.to_dict(),
                "guarantee": guarantee.to_dict(),
                "replay": _record(found),
                "controls": {label: _record(result) for label, (_, result) in caught.items()},
                "passed": kept,
            }
        )
    else:
        console().print(f"[bold]{name}[/]: {guarantee}\n", soft_wrap=True)
        console().print(f"Replay: {found}", soft_wrap=True)
        unit = "ε" if isinstance(guarantee.budget, PureDP) else "μ"
        console().print(
            f"(Costs in {unit}, on a small problem, whose bounds, if any, are unusual on purpose.)\n",
            style="dim",
        )
        if caught:
            print_rows(
                [
                    {
                        "control": (type(one).__doc__ or "").split("\n")[0],
                        "caught": not result.private,
                        "by": result.failure or f"cost {result.cost:.4g} of {result.limit:.4g}",
                    }
                    for one, result in caught.values()
                ],
                "Policies that are wrong on purpose",
            )
        console().print("[bold green]passed[/]" if kept else "[bold red]FAILED[/]")
    if not kept:
        raise typer.Exit(1)


def _record(found: Replay) -> dict[str, object]:
    return {
        "cost": found.cost,
        "limit": found.limit,
        "neighbours": found.neighbours,
        "worst": found.worst,
        "failure": found.failure,
        "passed": found.passed,
    }
