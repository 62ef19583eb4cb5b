"""What users type, as the library's own objects."""

import collections.abc
import dataclasses
import enum
import re
import types
import typing
import unicodedata
from collections.abc import Iterable
from typing import Any, NoReturn

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy, policy_kinds
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.problems import Kernel, KernelContexts, LinearProblem, Problem
from dpbandits.wording import short_exponent
from dpbandits.worlds import KernelWorld

PRIVACY_HELP = "eps=1 · eps=1,delta=1e-6 · mu=1 · rho=0.5 · order=8,divergence=4 · none"
DEFAULT_HELP = (
    f"{PRIVACY_HELP}. Unless given eps=1; on linear and kernel problems, and for policies that do not "
    "accept that, eps=1,delta=1e-6 (or mu=1)."
)
_BUDGETS: dict[tuple[str, ...], type[Budget]] = {
    ("eps",): PureDP,
    ("eps", "delta"): ApproxDP,
    ("mu",): GaussianDP,
    ("rho",): ZeroConcentratedDP,
    ("order", "divergence"): RenyiDP,
}
_LETTERS = {
    "epsilon": "eps",
    "ε": "eps",
    "δ": "delta",
    "μ": "mu",
    "ρ": "rho",
    "alpha": "order",
    "α": "order",
    "gamma": "divergence",
    "γ": "divergence",
}

_LOOKS_LIKE_DELTA = 1e-4  # no budget that anything can be learned with


def number(text: str, name: str) -> float:
    """A number as typed, 1e5 included."""
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"expected {name} to be a number, got {text!r}") from None


def whole(text: str, name: str) -> int:
    """A whole number as typed, 1e5 included."""
    value = number(text, name)
    if not value.is_integer():
        raise InvalidInput(f"expected {name} to be a whole number, got {text!r}")
    return int(value)


def budget(text: str) -> Budget:
    """``eps=1,delta=1e-6`` and its like; Greek letters, blanks and any order are understood."""
    words = _words(text)
    if words == ["none"]:
        return NonPrivate()
    if all(_is_number(word) for word in words):
        _refuse_bare_numbers(text, words)
    values = dict(zip(words[::2], words[1::2], strict=False))
    for names, kind in _BUDGETS.items():
        if len(words) == 2 * len(names) and set(values) == set(names):
            return kind(*(number(values[name], name) for name in names))
    raise InvalidInput(f"cannot read the privacy {text!r}; write one of: {PRIVACY_HELP}")


def budgets(texts: Iterable[str]) -> list[Budget]:
    """Several at once: ``eps=0.1,1,10,none``, ``eps=1,4,delta=1e-6``, or several such texts.

    >>> [str(held) for held in budgets(["eps=0.1,1,none", "mu=1"])]
    ['0.1-DP', '1-DP', 'not private', '1-GDP']
    """
    found: list[Budget] = []
    for text in texts:
        for held in _several(text):
            if held in found:
                raise InvalidInput(f"the privacy {typed(held)} was given twice")
            found.append(held)
    return found


def _several(text: str) -> list[Budget]:
    """The budgets of one text: each letter with its numbers, as far as they are of one kind."""
    words = _words(text)
    if all(_is_number(word) for word in words):
        _refuse_bare_numbers(text, words)
    found: list[Budget] = []
    lists: dict[str, list[str]] = {}
    for word in words:
        if _is_number(word) and lists:
            lists[list(lists)[-1]].append(word)
            continue
        joins = word not in lists and any({*lists, word} <= set(names) for names in _BUDGETS)
        if lists and not joins:
            found += _of_kind(text, lists)
            lists = {}
        if word == "none":
            found.append(NonPrivate())
        else:
            lists[word] = []
    return found + _of_kind(text, lists) if lists else found


def _of_kind(text: str, lists: dict[str, list[str]]) -> list[Budget]:
    """One for each number of the first letter; the second has one number, or as many."""
    names = next((names for names in _BUDGETS if set(names) == set(lists)), None)
    if names is None and "none" in _words(text):
        raise InvalidInput(f"cannot read the privacy {text!r}: give none by itself, --privacy none")
    if names is None or not all(lists.values()):
        raise InvalidInput(f"cannot read the privacy {text!r}; write some of: {PRIVACY_HELP}")
    columns = [[number(word, name) for word in lists[name]] for name in names]
    size = max(map(len, columns))
    if any(len(column) not in (1, size) for column in columns):
        raise InvalidInput(f"cannot read the privacy {text!r}: give one {names[1]}, or one for each")
    if names == ("eps",) and size == 2 and columns[0][1] < _LOOKS_LIKE_DELTA:
        one, other = lists["eps"]
        raise InvalidInput(f"cannot read the privacy {text!r}; write eps={one},delta={other}")
    rows = zip(*(column * (size // len(column)) for column in columns), strict=True)
    return [_BUDGETS[names](*row) for row in rows]


def default_budget(problem: type[Problem], kinds: Iterable[type[Policy]] = ()) -> Budget:
    """The budget where none is given: ε = 1, with δ = 1e-6 where that is not accepted; or μ = 1."""
    weaker = [ApproxDP(1.0, 1e-6), GaussianDP(1.0)]
    pure_last = issubclass(problem, LinearProblem | KernelContexts)  # few policies there have it
    budgets = [*weaker, PureDP(1.0)] if pure_last else [PureDP(1.0), *weaker]
    private = [kind for kind in kinds if not kind.takes_no_budget()]
    accepted = (one for one in budgets if all(isinstance(one, kind.accepts) for kind in private))
    return next(accepted, budgets[0])


def typed(held: Budget | type[Budget]) -> str:
    """A budget as one types it, ``eps=1,delta=1e-6``; a kind of budget with dots for its numbers."""
    kinds = {kind: names for names, kind in _BUDGETS.items()}
    names = kinds.get(held if isinstance(held, type) else type(held))
    if names is None:
        return "none"
    values = ["…"] * len(names)
    if not isinstance(held, type):
        values = [short_exponent(f"{value:g}") for value in vars(held).values()]
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def policy_kind(text: str) -> type[Policy]:
    """The policy that is meant, whatever its options."""
    name, _ = split_name(text)
    if _is_number(name):
        raise InvalidInput(
            f"no policy is called {name!r}; quote a list of numbers, '…:means=.9 .5', or use commas"
        )
    kinds = policy_kinds()
    return kinds[named("policy", name, kinds)]


def _words(text: str) -> list[str]:
    """The letters, as one spelling of each, and the numbers of a privacy."""
    plain = unicodedata.normalize("NFKC", text).strip(" \t,()").lower()
    return [_LETTERS.get(word, word) for word in re.split(r"[\s,=:]+", plain)]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _refuse_bare_numbers(text: str, numbers: list[str]) -> NoReturn:
    meant = f"eps={numbers[0]} for ε-DP or mu={numbers[0]} for μ-GDP"
    if len(numbers) == 2:
        meant = f"eps={numbers[0]},delta={numbers[1]}"
    raise InvalidInput(f"cannot read the privacy {text!r}; write {meant}")


def named(kind: str, text: str, names: Iterable[str]) -> str:
    """The name that was meant: `LazyUCB`, `lazy_ucb` and `lazy-ucb` are one."""
    known = {_letters(name): name for name in names}
    return known.get(_letters(text)) or checks.known(kind, text, known.values())


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def policy(text: str, privacy: Budget) -> Policy:
    """``modified-thompson`` or ``modified-thompson:prepulls=2000,calibration=paper``.

    A policy that has no private form is taken as it is, whatever the budget of the comparison.
    """
    kind = policy_kind(text)
    name, values = kind.name(), options(kind.name(), kind, split_name(text)[1])
    if "privacy" in values:
        raise InvalidInput(f"write --privacy {values['privacy']} instead of {text}")
    if kind.takes_no_budget():
        return kind(privacy=NonPrivate(), **values)
    if not isinstance(privacy, kind.accepts):
        accepted = " or ".join(map(typed, kind.accepts))
        raise InvalidInput(f"{name} accepts --privacy {accepted}; got {typed(privacy)}")
    return kind(privacy=privacy, **values)


def split_name(text: str) -> tuple[str, str]:
    """A name, and the options after its colon."""
    name, _, rest = text.partition(":")
    return name.strip(), rest


def options(name: str, kind: type[Any], text: str) -> dict[str, Any]:
    """``dim=5,gap=0`` as values of the fields of a recipe; ``means=.9 .5`` as several numbers.

    Rows of numbers are written with bars between: ``means=.9 .5 | .5 .9``.
    """
    fields = [field.name for field in dataclasses.fields(kind)]
    hints, values = typing.get_type_hints(kind), {}
    # At commas before another option only: `means=.9,.5` is two numbers as well.
    for part in re.split(r",(?=[^,=]*=)", text) if text.strip() else ():
        key, sign, value = part.partition("=")
        field = named(f"option of {name}", key.strip(), fields)
        if not sign or not value.strip():
            raise InvalidInput(f"{name} was given no value for its {field}: write {name}:{field}=…")
        if field in values:
            raise InvalidInput(f"{name} was given its {field} twice")
        values[field] = _value(value.strip(), hints[field], f"{field} of {name}")
    return values


def _value(text: str, hint: Any, name: str) -> Any:
    """A field's value: a word it knows, true or false, a number (1e5 included), or several."""
    kinds = _alternatives(hint)
    if text.lower() == "none" and type(None) in kinds:
        return None
    if bool in kinds:
        checks.one_of(("true", "false"), **{name: text.lower()})
        return text.lower() == "true"
    if str in kinds or text in kinds or Budget in kinds:
        return text
    for kind in kinds:
        if kind is Kernel:
            return KernelWorld.standard(text).kernel
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            members = {member.name.lower(): member for member in kind}
            return members[named(name, text, members)]
        if _is_sequence(kind):
            return _numbers(text, typing.get_args(kind)[:1], name)
        if any(map(_is_sequence, typing.get_args(kind)[:1])):
            return tuple(_numbers(row, (float,), name) for row in text.strip("|").split("|"))
    if float in kinds:
        return number(text, name)
    if int in kinds:
        return whole(text, name)
    if all(isinstance(kind, str) for kind in kinds):  # words, none of them this: the recipe says which
        return text
    raise InvalidInput(f"the {name} can only be set in Python, not on the command line")


def _alternatives(hint: Any) -> set[Any]:
    """The kinds of value a type allows, and the words it knows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return set().union(*map(_alternatives, typing.get_args(hint)))
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return {hint}


def _is_sequence(kind: Any) -> bool:
    """Whether it holds numbers."""
    origin = typing.get_origin(kind)
    of_numbers = typing.get_args(kind)[:1] in ((int,), (float,))
    return isinstance(origin, type) and issubclass(origin, collections.abc.Iterable) and of_numbers


def _numbers(text: str, of: tuple[Any, ...], name: str) -> tuple[float, ...]:
    read = whole if of == (int,) else number
    return tuple(read(part, name) for part in re.split(r"[\s,]+", text.strip(" \t,()[]")))
