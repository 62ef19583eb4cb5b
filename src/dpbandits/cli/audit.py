"""`dpbandits audit`."""

from pathlib import Path

import typer

from dpbandits.audit import Replay, replay
from dpbandits.cli.output import JSON, check_writable, console, print_json, print_rows, stoppable
from dpbandits.cli.parsing import PRIVACY_HELP, budget, policy, whole
from dpbandits.privacy.budgets import GaussianDP, PureDP


def audit(
    name: str = typer.Argument(help="A policy, as for `compare`; with --sampling also `all`."),
    privacy: str = typer.Option("mu=1", help=PRIVACY_HELP),
    rounds: int = typer.Option(
        None, help="Length of the replayed streams: 48, or less where rounds are costly."
    ),
    controls: bool = typer.Option(True, help="Also replay policies that are wrong on purpose."),
    sampling: bool = typer.Option(False, "--sampling", help="Sample instead of replaying."),
    runs: str = typer.Option("2e5", help="How many runs to sample."),
    form: str = typer.Option(
        "simulated", help="What is sampled: simulated, plain, compiled, reloaded, local."
    ),
    error: float = typer.Option(1e-3, help="The rate at which sampling may refute a true claim."),
    seed: int = typer.Option(0, help="Of sampled runs."),
    report: Path = typer.Option(None, help="Also write what was sampled, and how, to this .md file."),
    store: Path = typer.Option(None, help="Also put the sampled results into this .json file."),
    as_json: bool = JSON,
) -> None:
    """Replay a policy on every neighbour of extreme streams: the exact privacy cost of its releases.

    Batches are made short for this, so that several end; streams of over 100 rounds are tried at 20
    positions. Ends with status 1 if the guarantee is not kept, if no neighbour comes near it (then
    nothing was tested), or if a control was not caught.

    With --sampling, play two neighbouring streams many times and tell them apart: a lower bound for ε or
    μ of what is executed. Ends with status 1 if that is above the claim.
    """
    if sampling:
        from dpbandits.cli.sampling import audit_by_sampling, private_policies  # slow to import

        check_writable(report=(report, {".md"}), store=(store, {".json"}))
        subjects = private_policies() if name == "all" else [policy(name, budget(privacy))]
        if not audit_by_sampling(
            subjects, whole(runs, "runs"), form, error, seed, as_json, report, store
        ):
            raise typer.Exit(1)
        return
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
