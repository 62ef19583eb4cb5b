"""Broadcasts and messages of the local model as bytes: strict JSON, versioned, read with suspicion.

Each side knows the policy and the problem itself and compares; nothing is taken from the other side
but what is checked here or by the policy. In particular a broadcast cannot change how much noise a
person adds: what follows from the recipe must be as the recipe says.
"""

import json
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import beyond_limits, leaves
from dpbandits.errors import InvalidInput

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy
    from dpbandits.problems import Problem

Array = NDArray[np.float64]
FORMAT = 1
# No generator gets further from the location than this many scales: 36.8 for Laplace, 13.7 for Gaussian.
NOISE_REACH = 40.0


def pack(kind: str, policy: "Policy", problem: "Problem", rounds: int, **content: Any) -> bytes:
    """A broadcast or a message, with what it belongs to."""
    record = {
        "kind": kind,
        "format": FORMAT,
        "policy": policy.to_dict(),
        "problem": problem.to_dict(),
        "rounds": rounds,
    }
    return json.dumps(record | content, allow_nan=False).encode()


def unpack(kind: str, policy: "Policy", problem: "Problem", data: Any, *fields: str) -> dict[str, Any]:
    """The same back, or one sentence about what is wrong with it."""
    if not isinstance(data, bytes | bytearray | memoryview | str):
        raise InvalidInput(f"expected a {kind} as bytes, got {type(data).__name__}")
    try:
        text = data if isinstance(data, str) else bytes(data).decode()
        record = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not a {kind} of dpbandits: {error}") from None
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise InvalidInput(f"not a {kind} of dpbandits")
    version = record.get("format")
    if version != FORMAT:
        raise InvalidInput(
            f"a {kind} of format {checks.shown(version)} came; this version reads format {FORMAT}"
        )
    for own in (policy, problem):
        name = "policy" if own is policy else "problem"
        if record.get(name) != own.to_dict():
            raise InvalidInput(
                f"the {kind} is for the {name} {checks.shown(record.get(name))}, not {own!r}"
            )
    expected = {"kind", "format", "policy", "problem", "rounds", *fields}
    if set(record) != expected:
        raise InvalidInput(f"a {kind} has the fields {sorted(expected)}, got {sorted(record)}")
    checks.integer(least=0, rounds=record["rounds"])
    return record


def listed(value: Any) -> Any:
    """Numbers and arrays, alone or in a tuple, as JSON has them."""
    if isinstance(value, tuple):
        return [listed(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


def listed_state(public: Any) -> dict[str, Any]:
    """Every array and number of a state by its name."""
    return {name: listed(value) for name, value in leaves(public, sent=True)}


def fill(public: Any, given: Any) -> None:
    """Put a broadcast's arrays into a fresh state; numbers that follow from the recipe must agree."""
    own = dict(leaves(public, sent=True))
    if not isinstance(given, dict) or set(given) != set(own):
        raise InvalidInput(f"expected the broadcast to state {sorted(own)}")
    found = {name: _array(name, value, given[name]) for name, value in own.items()}
    for name, value in own.items():
        if not isinstance(value, np.ndarray) and found[name] != value:
            raise InvalidInput(f"the broadcast says {name} = {given[name]}, the recipe gives {value}")
    for name, value in own.items():
        if isinstance(value, np.ndarray):
            value[...] = found[name]
    with np.errstate(all="ignore"):
        beyond = next(beyond_limits(public), None)
    if beyond is not None:
        raise InvalidInput(f"the broadcast says of {beyond} what messages cannot have led to")


def _array(name: str, own: Any, given: Any) -> Any:
    wanted = np.asarray(own)
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    kinds = {"f": "fi", "i": "i", "b": "b"}[wanted.dtype.kind]
    if array.shape != wanted.shape or (array.size and array.dtype.kind not in kinds):
        raise InvalidInput(
            f"expected {name} of the broadcast to be {wanted.dtype} numbers of shape {wanted.shape}"
        )
    if not np.isfinite(array.astype(wanted.dtype)).all():
        raise InvalidInput(f"expected {name} of the broadcast to be finite")
    return array.astype(wanted.dtype)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def noisy_vector(content: Any, size: int, bound: float, scale: float) -> tuple[Array]:
    """The content of a message: one vector, each number within reach of noise around ±bound."""
    vector = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not (isinstance(vector, list) and len(vector) == size):
        raise InvalidInput(f"expected the content of a message to be a list of {size} numbers")
    values = np.array([checks.number("content", value) for value in vector])
    limit = 1.001 * bound + NOISE_REACH * scale
    if not (np.abs(values) <= limit).all():
        raise InvalidInput(f"expected the numbers of a message to be at most {limit:g} in size")
    return (values,)
