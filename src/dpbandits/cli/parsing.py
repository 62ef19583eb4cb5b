"""What users type, as the library's own objects."""

import dataclasses
from typing import Any

from dpbandits import checks
from dpbandits.environments import BernoulliArms, Environment, KernelWorld, TruncatedExponentialArms
from dpbandits.errors import InvalidInput
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


def environment(kind: str, means: str, rates: str) -> Environment:
    """The world named on the command line."""
    checks.known("environment", kind, ENVIRONMENTS)
    if kind == "exponential" and means != FIVE_ARMS:
        raise InvalidInput("exponential arms have --rates, not --means")
    if kind in ("squared-exponential", "matern"):
        if means != FIVE_ARMS:
            raise InvalidInput(f"--means are for bernoulli arms, not for --env {kind}")
        return KernelWorld.standard(kind)
    if kind == "bernoulli":
        return BernoulliArms(numbers(means, "means"))
    return TruncatedExponentialArms(numbers(rates, "rates"))


def policy(text: str, privacy: Budget) -> Policy:
    """``modified-thompson`` or ``modified-thompson:prepulls=2000,calibration=paper``.

    A policy that has no private form is taken as it is, whatever the budget of the comparison.
    """
    name, _, rest = text.partition(":")
    kind = policy_named(name)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, _, value = part.partition("=")
        checks.known(f"option of {name}", key, fields)
        values[key] = _value(value, str(fields[key].type))
    wanted: Budget = NonPrivate() if kind.accepts == (NonPrivate,) else privacy
    return kind(**({"privacy": wanted} | values))


def _value(text: str, kind: str) -> Any:
    """A field's value: a whole number (1e5 included), a number, or a word."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "int" in kind else value
