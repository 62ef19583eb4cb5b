"""The ledger: what an experiment promised and made public, in a chain that anybody can check.

Each entry holds the hash of the one before and is signed, so that none can be changed, left out or put
in between; from the recipes in the first one the guarantee is derived anew (`verification.py`). That
noise was drawn cannot be seen here: it rests on the code and its audit. And whoever holds the key can
write another ledger altogether, which only a key or a hash noted earlier gives away: so every decision's
answer carries one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpbandits.extras import extra
from dpbandits.policies import Policy, Released
from dpbandits.privacy.budgets import Budget
from dpbandits.problems import Problem
from dpbandits.service.entries import canonical, digest, fixed, written
from dpbandits.service.populations import population_record
from dpbandits.service.verification import Verdict, verify
from dpbandits.version import __version__

with extra("serve"):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "Signer",
    "Verdict",
    "canonical",
    "fixed",
    "make_entry",
    "opened_body",
    "page_body",
    "population_record",
    "verify",
]


class Signer:
    """Signs entries with the Ed25519 key of a seed of 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public_key(self) -> str:
        """What signatures are checked with."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, hashed: str) -> str:
        """The signature of a hash."""
        return self._key.sign(bytes.fromhex(hashed)).hex()


def make_entry(
    signer: Signer,
    *,
    experiment: str,
    number: int,
    at: int,
    kind: str,
    body: Mapping[str, Any],
    previous: str,
) -> dict[str, Any]:
    """The next entry, hashed and signed."""
    entry: dict[str, Any] = {
        "experiment": experiment,
        "number": number,
        "at": at,
        "kind": kind,
        "body": written(dict(body)),
        "previous": previous,
    }
    hashed = digest(entry)
    return entry | {"hash": hashed, "signature": signer.sign(hashed)}


def opened_body(
    *,
    experiment: str,
    policy: Policy,
    problem: Problem,
    labels: Sequence[str],
    in_flight: int,
    patience: float | None,
    noise: str,
    key: str,
    population: str | None = None,
    budgets: Mapping[str, Budget] | None = None,
    follows: str | None = None,
) -> dict[str, Any]:
    """The body of the first entry; `budgets` are those of the other experiments on the population."""
    guarantee = policy.guarantee(problem)
    together = {**(budgets or {}), experiment: guarantee.budget}
    record = None if population is None else population_record(population, together)
    body: dict[str, Any] = written(
        {
            "policy": policy.to_dict(),
            "problem": problem.to_dict(),
            "labels": list(labels),
            "terms": {
                "in_flight": in_flight,
                "patience": None if patience is None else float(patience),
                "population": population,
            },
            "guarantee": guarantee.to_dict(),
            "noise": noise,
            "seeded": False,
            "version": __version__,
            "key": key,
            "population": record,
            "follows": follows,
        }
    )
    return body


def page_body(
    *,
    decided: int,
    closed: int,
    epoch: int,
    generation: int,
    released: Released | None,
    shares: Sequence[int] | None,
) -> dict[str, Any]:
    """The body of a page: what is public now."""
    record = None if released is None else released.to_dict()
    if record is not None:
        del record["guarantee"]  # it is in the first entry
    body = {"decided": decided, "closed": closed, "epoch": epoch, "generation": generation}
    shown = None if shares is None else [int(share) for share in shares]
    return {**body, "released": written(record), "shares": shown}
