"""What users type, as the library's own objects."""

import dataclasses
from typing import Any, get_type_hints

from dpbandits import checks, worlds
from dpbandits.errors import InvalidInput
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.policies import Policy, policy_named
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.worlds import (
    BernoulliArms,
    Environment,
    KernelWorld,
    MatroidArms,
    TruncatedExponentialArms,
)

PRIVACY_HELP = "eps=1 · eps=1,delta=1e-6 · mu=1 · rho=0.5 · order=8,divergence=4 · none"
_BUDGETS: dict[tuple[str, ...], type[Budget]] = {
    ("eps",): PureDP,
    ("eps", "delta"): ApproxDP,
    ("mu",): GaussianDP,
    ("rho",): ZeroConcentratedDP,
    ("order", "divergence"): RenyiDP,
}
ENVIRONMENTS = ("bernoulli", "exponential", "squared-exponential", "matern")
FIVE_ARMS = ".75,.625,.5,.375,.25"


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


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Numbers with commas between."""
    return tuple(number(part, name) for part in text.split(",") if part.strip())


def budget(text: str) -> Budget:
    """``eps=1,delta=1e-6`` and its like."""
    if text.strip() == "none":
        return NonPrivate()
    pairs = [part.partition("=") for part in text.split(",")]
    keys = tuple(key.strip() for key, _, _ in pairs)
    if keys not in _BUDGETS or not all(sign for _, sign, _ in pairs):
        raise InvalidInput(f"cannot read the privacy {text!r}; write one of: {PRIVACY_HELP}")
    return _BUDGETS[keys](*(number(value, key) for key, _, value in pairs))


def environment_kinds() -> dict[str, type[Environment]]:
    """Every world by its command-line name; the two of arms have short ones."""
    kinds = (getattr(worlds, name) for name in worlds.__all__)
    playable = (kind for kind in kinds if issubclass(kind, Environment) and not kind.abstract)
    found = {kind.name(): kind for kind in playable}
    short = {"bernoulli": BernoulliArms, "exponential": TruncatedExponentialArms}
    return short | {name: kind for name, kind in found.items() if kind not in short.values()}


def environment(text: str, means: str, rates: str) -> Environment:
    """``bernoulli``, or another world with its options: ``sphere-contexts:dim=5,gap=0``."""
    name, _, rest = text.partition(":")
    kinds = environment_kinds()
    kind = kinds[checks.known("environment", name, kinds)]
    if kind is TruncatedExponentialArms and means != FIVE_ARMS:
        raise InvalidInput("exponential arms have --rates, not --means")
    if kind is not BernoulliArms and means != FIVE_ARMS:
        raise InvalidInput(f"only bernoulli arms have --means, {name} has none")
    if kind is BernoulliArms:
        return BernoulliArms(numbers(means, "means"))
    if kind is TruncatedExponentialArms:
        return TruncatedExponentialArms(numbers(rates, "rates"))
    if kind is MatroidArms:
        if rest:
            raise InvalidInput("matroid-arms are seven vectors here; others are made in Python")
        return TABLE_2
    if kind is KernelWorld:
        key, _, value = rest.partition("=")
        if rest and key != "kernel":
            raise InvalidInput(f"write {name}:kernel=matern; other worlds of kernels are made in Python")
        return KernelWorld.standard(value or "squared-exponential")
    options = _options(name, kind, rest)
    for field in dataclasses.fields(kind):
        given = field.name in options or field.default is not dataclasses.MISSING
        if not given and field.default_factory is dataclasses.MISSING:
            raise InvalidInput(f"{name} needs its {field.name}: write {name}:{field.name}=…")
    return kind(**options)


def policy(text: str, privacy: Budget) -> Policy:
    """``modified-thompson`` or ``modified-thompson:prepulls=2000,calibration=paper``.

    A policy that has no private form is taken as it is, whatever the budget of the comparison.
    """
    name, _, rest = text.partition(":")
    kind = policy_named(name)
    values = _options(name, kind, rest)
    wanted: Budget = NonPrivate() if kind.takes_no_budget() else privacy
    return kind(**({"privacy": wanted} | values))


def _options(name: str, kind: type[Any], text: str) -> dict[str, Any]:
    """``dim=5,gap=0`` as values of the fields of a recipe."""
    fields = {f.name: f for f in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for part in text.split(",") if text else ():
        key, _, value = part.partition("=")
        checks.known(f"option of {name}", key, fields)
        values[key] = _value(value, str(hints[key]))
    return values


def _value(text: str, kind: str) -> Any:
    """A field's value: true or false, a whole number (1e5 included), a number, or a word."""
    if "bool" in kind and text in ("true", "false"):
        return text == "true"
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "int" in kind else value
