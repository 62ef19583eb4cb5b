"""What to do with an experiment that cannot go on: end it as it is, and begin another in its place.

Its database may be older than what was answered, or the key of its data lost. Playing on would draw the
same noise again on other data, so nothing is played on. Those who took part in both are protected by
both budgets together, and the ledgers say so.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Connection

from dpbandits.errors import InvalidInput, ServiceError
from dpbandits.service.clock import Clock
from dpbandits.service.ledger import Signer
from dpbandits.service.opening import open_experiment
from dpbandits.service.recovery import directory
from dpbandits.service.running import Running, begin_desk
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Store
from dpbandits.service.terms import Terms


def abandon(store: Store, keyring: Keyring, name: str, reason: str) -> None:
    """End an experiment without going on with it: nothing more is released."""
    found = _alone(store, keyring)
    one = _named(found, name)
    if one.has_ended:
        raise InvalidInput(f"{name} has ended already")
    with store.writing() as db:
        store.belongs_to(db, keyring.name)
        _end(store, db, keyring, one, reason)
    keyring.forget(one.id)


def succeed(store: Store, keyring: Keyring, name: str, successor: str, reason: str) -> None:
    """End an experiment as it is, and begin another with the same terms, or do neither.

    One that has ended already may have a successor too. Others that cannot go on do not matter here.
    """
    found = _alone(store, keyring)
    keyring.refuse_older([one.id for one in found])  # before anything is erased
    before = _named(found, name)
    terms = follower(before.terms, successor)
    if any(one.terms.name == terms.name for one in found):
        raise InvalidInput(f"there is an experiment called {terms.name}: names are never used twice")
    desk, others = begin_desk(terms), [one.terms for one in found]
    with store.writing() as db:
        store.belongs_to(db, keyring.name)
        if not before.has_ended:
            _end(store, db, keyring, before, reason)
        now = Clock().now()
        open_experiment(store, db, keyring, terms, desk, now=now, others=others, follows=name)
    keyring.forget(before.id)


def _alone(store: Store, keyring: Keyring) -> list[Running]:
    """All experiments, while no service works on them."""
    if store.keyring_name() not in (None, keyring.name):
        raise ServiceError("the keyring belongs to another database")
    if not store.acquire():
        raise ServiceError("a service is running on this database: stop it first")
    return directory(store)


def _named(found: list[Running], name: str) -> Running:
    one = next((one for one in found if one.terms.name == name), None)
    if one is None:
        raise InvalidInput(f"no experiment is called {name!r:.80}")
    return one


def _end(store: Store, db: Connection, keyring: Keyring, one: Running, reason: str) -> None:
    signer = Signer(keyring.secret_for("ledger"))
    entry = one.entry(signer, "abandoned", {"reason": reason}, Clock().now())
    store.write_ledger(db, one.id, entry)
    store.end(db, one.id, "abandoned")


def follower(before: Terms, /, name: str, **others: Any) -> Terms:
    """The terms of a successor: on the same people, so that budgets add up."""
    declared = {**before.declared, **others, "name": name}
    terms = Terms.read(declared)
    if terms.population is None:
        terms = replace(terms, population=before.name)
    if terms.name == before.name:
        raise InvalidInput("a successor has a name of its own")
    # What was recommended then stays the policy, unless another is asked for.
    same = not {"policy", "privacy", "problem", "actions", "trust"} & others.keys()
    return replace(terms, policy=before.policy) if same and "policy" not in declared else terms
