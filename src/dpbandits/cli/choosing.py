"""The policies of a comparison: those asked for at each budget, and their twins."""

import contextlib
from collections.abc import Sequence

from dpbandits.cli.worlds import check_fits
from dpbandits.errors import InvalidInput
from dpbandits.notation import policy, policy_kind, typed
from dpbandits.policies import LocalPolicy, Policy, policy_kinds
from dpbandits.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP
from dpbandits.recommend import recommend
from dpbandits.worlds import Environment

TWIN = " (twin)"  # after the name of a policy that is played as one


def choose(
    names: Sequence[str],
    wanted: Sequence[Budget],
    world: Environment,
    rounds: int | None = None,
    *,
    twins: bool,
) -> tuple[dict[str, Policy], list[str]]:
    """By label, the policies asked for (or all) at the budgets that they accept, each with its twin.

    Of all, the recommended one has the settings with which it is recommended for so many rounds. Also
    sentences about what was left out. With several budgets, `none` stands for the twins.
    """
    private = [held for held in wanted if not isinstance(held, NonPrivate)]
    budgets = private or list(wanted)
    found: dict[str, Policy] = {}
    notes = [] if names else _left_out(budgets, world)
    for held in budgets:
        for name in _accepted(names, held, budgets, notes) if names else _fitting(held, world):
            one = policy(name, held) if names else _as_recommended(policy(name, held), world, rounds)
            check_fits(one, world)
            label = f"{one.name()}{name[name.index(':') :] if ':' in name else ''}"
            if len(budgets) > 1 and not one.takes_no_budget():
                label = f"{label}, {held}"
            if one in found.values():
                if one.takes_no_budget() and held is not budgets[0]:
                    continue
                raise InvalidInput(f"{label} was given twice")
            found[label] = one
    if not found:
        asked = " or ".join(map(typed, budgets))
        raise InvalidInput(
            f"no policy for {world.name()} accepts --privacy {asked}; see `dpbandits list`"
        )
    return (_with_twins(found) if twins or len(private) < len(wanted) else found), notes


def _as_recommended(one: Policy, world: Environment, rounds: int | None) -> Policy:
    """A policy as it is, or with the settings with which it is recommended."""
    with contextlib.suppress(InvalidInput):  # nothing is, for this problem and budget
        found: Policy = recommend(world.problem(rounds), one.privacy).policy
        return found if type(found) is type(one) else one
    return one


def _fitting(held: Budget, world: Environment) -> list[str]:
    """All that accept the budget and trust the server."""
    return [name for name, kind in _of_world(world).items() if isinstance(held, kind.accepts)]


def _of_world(world: Environment) -> dict[str, type[Policy]]:
    """All that can play there and trust the server."""
    problem = type(world.problem(None))
    return {
        name: kind
        for name, kind in policy_kinds().items()
        if issubclass(problem, kind.problem_kind)
        and not issubclass(kind, LocalPolicy)  # another trust: asked for by name
    }


def _left_out(budgets: Sequence[Budget], world: Environment) -> list[str]:
    """A sentence about the policies that do not accept a budget, and what they do accept."""
    private = {name: kind for name, kind in _of_world(world).items() if not kind.takes_no_budget()}
    found: dict[tuple[str, ...], list[Budget]] = {}
    for held in budgets:
        refusing = tuple(name for name, kind in private.items() if not isinstance(held, kind.accepts))
        if refusing and not isinstance(held, NonPrivate):
            found.setdefault(refusing, []).append(held)
    said = []
    for refusing, refused in found.items():
        they, do = ("it", "does") if len(refusing) == 1 else ("they", "do")
        asked = " or ".join(map(typed, refused))
        sentence = f"left out, because {they} {do} not accept {asked}: {', '.join(refusing)}"
        with_delta = all(issubclass(ApproxDP, private[name].accepts) for name in refusing)
        if with_delta and all(isinstance(held, PureDP) for held in refused):
            sentence += f"; {they} {do} with delta=1e-6"
        said.append(sentence)
    return said


def _accepted(
    names: Sequence[str], held: Budget, budgets: Sequence[Budget], notes: list[str]
) -> list[str]:
    """Those that accept this budget; of the others a note, if they accept another one."""
    found = []
    for name in names:
        kind = policy_kind(name)
        others = any(isinstance(one, kind.accepts) for one in budgets)
        if isinstance(held, kind.accepts) or kind.takes_no_budget() or not others:
            found.append(name)
        else:
            notes.append(f"{name} does not accept {typed(held)}, and is left out there")
    return found


def _with_twins(chosen: dict[str, Policy]) -> dict[str, Policy]:
    found = dict(chosen)
    for label, one in chosen.items():
        twin = one.twin() if not isinstance(one.privacy, NonPrivate) else None
        if twin is not None and twin not in found.values():
            short = f"{twin.name()}{TWIN}"
            found[f"{label}{TWIN}" if short in found else short] = twin
    return found
