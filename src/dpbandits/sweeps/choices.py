"""What users give to a sweep, as the library's own objects with a label each."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.notation import budget as read_budget
from dpbandits.notation import options, policy_kind, split_name
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.recipes import Recipe
from dpbandits.worlds import Environment


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A policy that awaits its budget, or a recipe that has one."""

    kind: type[Policy]
    options: dict[str, Any] = field(default_factory=dict)
    recipe: Policy | None = None

    def made(self, budget: Budget | None = None) -> Policy:
        """The recipe at a budget."""
        return self.kind(privacy=budget or NonPrivate(), **self.options)


def chosen_policies(given: Any) -> dict[str, Choice]:
    """Kinds, names with options as on the command line, and recipes, each by its label."""
    if isinstance(given, str | Policy | type):
        given = [given]
    if isinstance(given, Mapping):
        found = {str(label): _choice(one) for label, one in given.items()}
    else:
        choices = [_choice(one) for one in checks.sequence("policies", given)]
        found = _labelled("policies", [(one.kind.name(), _recipe(one), one) for one in choices])
    if not found:
        raise InvalidInput("expected at least one policy")
    return found


def _choice(given: Any) -> Choice:
    if isinstance(given, Policy):
        return Choice(kind=type(given), recipe=given)
    if isinstance(given, type) and issubclass(given, Policy) and not given.abstract:
        return Choice(kind=given)
    if isinstance(given, str):
        kind = policy_kind(given)
        values = options(kind.name(), kind, split_name(given)[1])
        if "privacy" in values:
            raise InvalidInput(f"write its privacy among the budgets, not in {given}")
        return Choice(kind=kind, options=values)
    raise InvalidInput(f"expected a policy such as NoiseAwareIMED, got {checks.shown(given)}")


def _recipe(choice: Choice) -> str:
    return recipe_text(choice.kind, choice.options if choice.recipe is None else vars(choice.recipe))


def chosen_worlds(given: Any) -> dict[str, Environment]:
    """Each by its label."""
    if isinstance(given, Environment):
        given = [given]
    listed = given.values() if isinstance(given, Mapping) else checks.sequence("environments", given)
    for one in listed:
        if not isinstance(one, Environment):
            raise InvalidInput(
                f"expected environments such as BernoulliArms([.5, .6]), got {checks.shown(one)}"
            )
    if not listed:
        raise InvalidInput("expected at least one environment")
    if isinstance(given, Mapping):
        return {str(label): one for label, one in given.items()}
    return _labelled(
        "environments", [(one.name(), recipe_text(type(one), vars(one)), one) for one in listed]
    )


def chosen_budgets(given: Any) -> list[Budget]:
    """As objects, or as typed: ``eps=1``."""
    listed = [given] if isinstance(given, Budget | str) else checks.sequence("budgets", given)
    found = [read_budget(one) if isinstance(one, str) else one for one in listed]
    for one in found:
        if not isinstance(one, Budget):
            raise InvalidInput(f"expected a budget such as PureDP(1.0), got {checks.shown(one)}")
    if len(set(found)) < len(found):
        raise InvalidInput("a budget was given twice")
    return found


def _labelled(what: str, given: Iterable[tuple[str, str, Any]]) -> dict[str, Any]:
    """By name, or by name and options where a name occurs more than once."""
    listed = list(given)
    names = [name for name, _, _ in listed]
    found = {name if names.count(name) == 1 else text: one for name, text, one in listed}
    if len(found) < len(listed):
        raise InvalidInput(f"two of the {what} are the same: give each once, or a dict with labels")
    return found


def recipe_text(kind: type[Recipe], values: Mapping[str, Any]) -> str:
    """A recipe as typed on the command line: its name, and what is not as usual."""
    parts = []
    for one in dataclasses.fields(kind):
        value = values.get(one.name, one.default)
        default = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
        if value is not dataclasses.MISSING and one.name != "privacy" and value != default:
            parts.append(f"{one.name}={_text(value)}")
    return f"{kind.name()}:{','.join(parts)}" if parts else kind.name()


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    if isinstance(value, Recipe):
        return recipe_text(type(value), vars(value))
    short = f"{value:g}" if isinstance(value, float) else ""
    return short if short and float(short) == value else str(value)
