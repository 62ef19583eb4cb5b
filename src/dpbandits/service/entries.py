"""What a ledger's entries look like, and the bytes that are hashed.

The bytes are JSON in UTF-8 with sorted keys, no blanks and no number that is not whole: those are texts
of decimals, `"0.25"`. So every language hashes an entry alike (it is what RFC 8785 would write), and no
two entries share their bytes.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from dpbandits.checks import MOST_ROUNDS
from dpbandits.errors import InvalidInput, LedgerError
from dpbandits.extras import extra

with extra("serve"):
    import msgspec

_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+", re.ASCII)
_EXACT = 2**53  # beyond it, other languages read whole numbers wrongly

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_ROUNDS)]
# What `dpbandits verify` prints: nothing in it may steer a terminal.
Name = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]
Record = dict[str, Any]


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    """Fields that must all be there, and no others."""


class Entry(_Fields):
    """An entry; its `hash` is over all but itself and the signature, and is what is signed."""

    experiment: Name
    number: Count  # from 0
    at: Count  # whole seconds since 1970
    kind: str
    body: Record
    previous: str  # the hash of the entry before; empty for the first
    hash: str
    signature: str


class Terms(_Fields):
    """What was agreed on about rounds and people."""

    in_flight: Count
    patience: str | None
    population: Name | None


class Population(_Fields):
    """The experiments on the same people when this one was opened, itself among them."""

    name: Name
    experiments: list[Name]
    budgets: list[Record]  # of each
    together: Record | None  # None where they do not add up
    sentence: str


class Opened(_Fields):
    """The first entry: all that the guarantee follows from."""

    policy: Record
    problem: Record
    labels: list[str]
    terms: Terms
    guarantee: Record
    noise: Literal["exact", "float"]
    seeded: bool
    version: Name
    key: str  # the public one, that all entries are signed under
    population: Population | None
    follows: Name | None  # the experiment that this one succeeds


class Reading(_Fields):
    """`Released`, without its guarantee; values are in rows where they are of pairs."""

    what: str
    mean: list[Any]
    low: list[Any]
    high: list[Any]
    plays: list[Any] | None
    active: list[Any] | None
    leading: list[int]
    sure: str | None
    recommendation: Count | None  # of a policy that searches, once it has stopped
    stopped: Count | None
    rounds: Count
    decided: Count
    public_rows: Count
    spent: Record | None


class Page(_Fields):
    """What was public at a moment."""

    decided: Count
    closed: Count
    epoch: Count
    generation: Count
    released: Reading | None
    shares: list[Count] | None  # decisions by label


class Resumed(_Fields):
    """The service was started again, or another process took over."""

    epoch: Count
    version: str


class Changed(_Fields):
    """An action came or went."""

    act: Literal["add", "retire", "revive"]
    label: str
    decided: Count


class Stopped(_Fields):
    """Ended on purpose."""

    decided: Count
    closed: Count


class Abandoned(_Fields):
    """Ended because it could not go on."""

    reason: str


Body = Opened | Page | Resumed | Changed | Stopped | Abandoned
BODIES: dict[str, type[Body]] = {
    "opened": Opened,
    "page": Page,
    "resumed": Resumed,
    "changed": Changed,
    "stopped": Stopped,
    "abandoned": Abandoned,
}


def fixed(value: float) -> str:
    """A number as a text of decimals, the shortest that is read back as the same number.

    >>> fixed(1.0), fixed(1e-6), fixed(-2.5e20)
    ('1.0', '0.000001', '-250000000000000000000.0')
    """
    if not math.isfinite(value):
        raise InvalidInput("a ledger holds finite numbers only")
    text = format(Decimal(repr(float(value) + 0.0)), "f")  # + 0.0: there is one zero
    return text if "." in text else f"{text}.0"


def written(value: Any) -> Any:
    """Plain values as entries hold them: what is not whole as decimals."""
    if isinstance(value, float):
        return fixed(value)
    if isinstance(value, dict):
        return {key: written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [written(one) for one in value]
    return value


def restored(value: Any) -> Any:
    """The values again. A text that looks like decimals is one: no option of a recipe does.

    >>> restored(written({"epsilon": 0.5, "rewards": "binary"}))
    {'epsilon': 0.5, 'rewards': 'binary'}
    """
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    if isinstance(value, dict):
        return {key: restored(one) for key, one in value.items()}
    if isinstance(value, list):
        return [restored(one) for one in value]
    return value


def canonical(value: Any) -> bytes:
    """The bytes that are hashed.

    >>> canonical({"b": [1, None, "é"], "a": True}).decode()
    '{"a":true,"b":[1,null,"é"]}'
    """
    try:
        _refuse_inexact(value)
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError):
        raise LedgerError("an entry holds what cannot be hashed") from None


def _refuse_inexact(value: Any) -> None:
    """Numbers that languages write or read in different ways."""
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > _EXACT):
        raise ValueError
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_inexact(one)


def digest(entry: Mapping[str, Any]) -> str:
    """The hash of an entry, in hexadecimal: over all but itself and the signature."""
    hashed = {name: one for name, one in entry.items() if name not in ("hash", "signature")}
    return hashlib.sha256(canonical(hashed)).hexdigest()
