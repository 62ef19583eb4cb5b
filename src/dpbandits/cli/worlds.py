"""Worlds as typed after `--env`."""

import dataclasses
import typing
from typing import Any

from dpbandits import worlds
from dpbandits.errors import InvalidInput
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.notation import named, options, split_name
from dpbandits.policies import Policy
from dpbandits.problems import Arms, KernelContexts, LinearProblem, MatroidBases, Problem
from dpbandits.worlds import (
    BernoulliArms,
    Environment,
    KernelWorld,
    LoggedArms,
    LoggedContexts,
    ShiftingArms,
    TruncatedExponentialArms,
)

# What a world is where its options are not given; others have defaults of their own.
_STANDARD: dict[str, Environment] = {
    "bernoulli-arms": BernoulliArms((0.75, 0.625, 0.5, 0.375, 0.25)),
    "shifting-arms": ShiftingArms(((0.75, 0.5, 0.25), (0.25, 0.5, 0.75)), (50_000,)),
    "truncated-exponential-arms": TruncatedExponentialArms((0.1, 1.0, 2.0, 5.0, 10.0)),
    "matroid-arms": TABLE_2,
    "kernel-world": KernelWorld.standard(),
}
# Worlds that are read from a log of the user's.
LOGGED = (LoggedArms.name(), LoggedContexts.name())
_USUAL: dict[str, Any] = {
    "bernoulli-arms": Arms,
    "sphere-contexts": LinearProblem,
    "matroid-arms": MatroidBases,
    "kernel-world": KernelContexts,
}


def environment_kinds() -> dict[str, type[Environment]]:
    """Every world by its command-line name."""
    kinds = (getattr(worlds, name) for name in worlds.__all__)
    playable = (kind for kind in kinds if issubclass(kind, Environment) and not kind.abstract)
    return {kind.name(): kind for kind in playable}


def environment(
    text: str, *, for_logs: str = "write --data log.parquet --action item --reward click"
) -> Environment:
    """A world with its options: ``sphere-contexts:dim=5,gap=0`` or ``bernoulli-arms:means=.9 .5``.

    `for_logs` says what to do instead where a world of a log is named.
    """
    name, rest = split_name(text)
    kinds = environment_kinds()
    name = named("world", name, kinds)
    if name in LOGGED:
        raise InvalidInput(f"{name} is read from a log: {for_logs}")
    standard = _STANDARD.get(name)
    values = options(name, kinds[name], rest)
    return dataclasses.replace(standard, **values) if standard else _made(name, kinds[name], values)


def _made(name: str, kind: type[Environment], values: dict[str, Any]) -> Environment:
    for field in dataclasses.fields(kind):
        given = field.name in values or field.default is not dataclasses.MISSING
        if not given and field.default_factory is dataclasses.MISSING:
            raise InvalidInput(f"{name} needs its {field.name}: write {name}:{field.name}=…")
    return kind(**values)


def check_fits(policy: Policy, world: Environment) -> None:
    """A policy of another problem is refused with the world that fits it."""
    problem, wanted = world.problem(None), policy.problem_kind
    if not isinstance(problem, wanted):
        raise InvalidInput(
            f"{policy.name()} cannot play on {world.name()}, whose problem is {type(problem).__name__}; "
            f"{_fitting(world, wanted)}"
        )


def _fitting(world: Environment, wanted: type[Problem]) -> str:
    """What to type for a world of another problem; of a log there are two."""
    if isinstance(world, LoggedContexts) and issubclass(wanted, Arms):
        return "leave out --features"
    if isinstance(world, LoggedArms) and issubclass(wanted, LinearProblem):
        return "say what is known of people, --features 'age=18..90,device=phone|desktop'"
    usual = next(name for name, kind in _USUAL.items() if issubclass(wanted, kind))
    return f"say --env {usual}" + (" instead of --data" if world.name() in LOGGED else "")


def worlds_of(problem: type[Problem]) -> list[str]:
    """The worlds of a kind of problem, as typed after `--env`."""
    made = {name: typing.get_type_hints(kind.problem) for name, kind in environment_kinds().items()}
    return [name for name, hints in made.items() if issubclass(hints["return"], problem)]
