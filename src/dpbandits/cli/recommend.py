"""`dpbandits recommend`."""

import dataclasses
import sys
from typing import Any

import numpy as np
import typer

from dpbandits import checks
from dpbandits.cli.command import given
from dpbandits.cli.output import JSON, console, print_budget, print_json, print_rows, spelled
from dpbandits.errors import InvalidInput
from dpbandits.expectation import Expectation
from dpbandits.notation import DEFAULT_HELP, budget, default_budget, named, typed, whole
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearContexts,
    MatroidBases,
    Problem,
    UniformMatroid,
)
from dpbandits.recipes import Recipe
from dpbandits.recommend import recommend as choose
from dpbandits.wording import counted, short_exponent
from dpbandits.worlds import KernelWorld

# Each option of a problem, and the option it goes with.
_GOES_WITH = {"rank": "items", "contexts": "kernel", "actions": "kernel"}


def recommend(
    ctx: typer.Context,
    arms: int = typer.Option(
        None, help="Number of arms, 5 unless given. With --features: each arm has its own parameters."
    ),
    features: int = typer.Option(
        None, help="Number of features of each action, for a linear problem instead of arms."
    ),
    items: int = typer.Option(None, help="Instead of arms: number of items to choose several of."),
    rank: int = typer.Option(2, help="With --items: how many are chosen in each round."),
    kernel: str = typer.Option(
        None, help="For kernel bandits in place of arms: squared-exponential or matern, length scale .2."
    ),
    contexts: int = typer.Option(20, help="With --kernel: contexts, evenly on [0, 1]."),
    actions: int = typer.Option(20, help="With --kernel: actions, evenly on [0, 1]."),
    privacy: str = typer.Option(None, help=DEFAULT_HELP),
    trust: str = typer.Option(
        None,
        help="central or joint: a learner may see raw data, and all decisions are protected (arms, "
        "items) or those for everyone else (features, kernels). local: nobody may hold raw data.",
    ),
    rounds: str = typer.Option(None, help="Number of rounds, where known."),
    rounds_per_person: int = typer.Option(
        None, help="People return: at most this many rounds of one person are learned from."
    ),
    rate: float = typer.Option(
        None,
        help="For arms and a number of rounds: the average reward, where it is small and public; 0.01 "
        "where one in a hundred clicks.",
    ),
    simulation: bool = typer.Option(
        True, help="Simulate what to expect: some seconds, the first time longer."
    ),
    as_json: bool = JSON,
) -> None:
    """The policy to use for a problem and a budget, why, and what to expect of it."""
    _refuse_ignored(ctx)
    horizon = None if rounds is None else whole(rounds, "rounds")
    if horizon is not None:
        checks.integer(least=1, rounds=horizon)
    problem: Problem = Arms(5 if arms is None else arms, horizon=horizon)
    if features is not None:
        problem = LinearContexts(features, arms=arms, horizon=horizon)
    if items is not None:
        if rank > items:
            raise InvalidInput(f"cannot choose {rank} of {items} items: expected --rank at most --items")
        problem = MatroidBases(UniformMatroid(items, rank), horizon=horizon)
    if kernel is not None:
        problem = _kernel_problem(kernel, contexts, actions, horizon)
    if rounds_per_person is not None:
        problem = dataclasses.replace(problem, rounds_per_person=rounds_per_person)
    wanted = default_budget(type(problem)) if privacy is None else budget(privacy)
    whom = None if trust is None else Trust(named("trust", trust, [str(one) for one in Trust]))
    _refuse_unknown(problem, wanted, whom)
    found = choose(problem, wanted, trust=whom, rate=rate)
    guarantee = found.policy.guarantee(problem)
    if as_json:
        answer: dict[str, Any] = {"policy": found.policy.to_dict(), "reason": found.reason}
        answer["guarantee"] = guarantee.to_dict()
        if simulation:
            answer["expected"] = dataclasses.asdict(found.expect(problem))
        print_json(answer)
        return
    print_budget(wanted)
    console().print(f"[bold]{found.policy.name()}[/]: {found.reason}\n\n{guarantee}\n")
    started = "problem" if kernel is not None else _python(problem)  # grids are long
    line = f"{_python(found.policy)}.start({started})"
    console().print(f"In Python:\n{line}\n", style="dim", soft_wrap=True)
    if simulation:
        # The answer is there; what follows takes longer where code must be compiled first.
        print("simulating what to expect …", file=sys.stderr)
        expected = found.expect(problem, progress=True)
        _print_expected(expected, found.policy.name(), warn="little better" not in found.reason)


def _refuse_unknown(problem: Problem, wanted: Budget, whom: Trust | None) -> None:
    """What is not there yet, or not without more, in the words of the command line."""
    if whom is Trust.LOCAL and isinstance(problem, MatroidBases):
        raise InvalidInput("there is no local policy for items yet")
    pure = isinstance(wanted, PureDP) and whom is not Trust.LOCAL
    if isinstance(problem, LinearContexts) and pure and problem.horizon is None:
        raise InvalidInput(
            f"at {typed(wanted)} linear policies need the number of rounds: say --rounds 1e5"
        )


def _refuse_ignored(ctx: typer.Context) -> None:
    """Each problem has options of its own."""
    kinds = given(ctx, "features", "items", "kernel")
    if len(kinds) > 1:
        raise InvalidInput(f"{' and '.join(kinds)} are different problems; give one of them")
    if given(ctx, "arms") and kinds and kinds != ["--features"]:
        raise InvalidInput(f"--arms does not go with {kinds[0]}")
    for name, needed in _GOES_WITH.items():
        if given(ctx, name) and not given(ctx, needed):
            raise InvalidInput(f"--{name} goes with --{needed}; leave it out, or give --{needed}")
    if given(ctx, "rate") and not given(ctx, "rounds"):
        raise InvalidInput("--rate goes with --rounds; leave it out, or give --rounds")


def _kernel_problem(kernel: str, contexts: int, actions: int, rounds: int | None) -> KernelContexts:
    checks.integer(least=1, contexts=contexts, actions=actions)
    kind = KernelWorld.standard(kernel).kernel
    grids = (tuple((x,) for x in np.linspace(0.0, 1.0, n).tolist()) for n in (contexts, actions))
    return KernelContexts(kind, *grids, horizon=rounds)


def _print_expected(expected: Expectation, policy: str, *, warn: bool) -> None:
    """A table, and a sentence where little is learned, unless the reason has said so."""
    regrets = {policy: expected.regret, "the same without privacy": expected.without_privacy}
    rows = [
        {"what to expect": label, "regret": round(regret), "gain, %": 100.0 * expected.gain(regret)}
        for label, regret in {**regrets, "uniform play": expected.uniform}.items()
        if regret is not None
    ]
    print_rows(rows)
    played = f"{expected.played()}, mean of {counted(expected.runs, 'run')}"
    console().print(
        f"Simulated on {expected.instance}, {played}. Gain: the share of what the best action gains "
        "over uniform play. Yours may differ: `dpbandits compare` takes other worlds.",
        style="dim",
    )
    if warn and expected.is_little:
        console().print(f"\n{expected.warning()}")


def _python(recipe: Recipe) -> str:
    """A recipe as one would write it, without what is usual."""
    places, named = [], []
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        if field.default is dataclasses.MISSING and not field.kw_only:
            places.append(_literal(value))
        elif value != field.default:
            named.append(f"{field.name}={_literal(value)}")
    return f"{spelled(type(recipe))}({', '.join(places + named)})"


def _literal(value: Any) -> str:
    if isinstance(value, Recipe):
        return _python(value)
    return f"{value:_}" if type(value) is int else short_exponent(repr(value))
