"""What to do with an experiment that cannot go on: end it as it is, and begin another in its place.

Its database may be older than what was answered, or the key of its data lost. Playing on would draw the
same noise again on other data, so nothing is played on. Those who took part in both are protected by
both budgets together, and the ledgers say so.
"""

import time
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from dpbandits.errors import InvalidInput, ServiceError
from dpbandits.service.clock import Clock
from dpbandits.service.commands import Open
from dpbandits.service.ledger import Signer
from dpbandits.service.recovery import directory
from dpbandits.service.refusals import Refusal
from dpbandits.service.running import Running
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Store
from dpbandits.service.terms import Terms
from dpbandits.service.writer import Writer


def abandon(store: Store, keyring: Keyring, name: str, reason: str) -> Running:
    """End an experiment without going on with it: nothing more is released."""
    one = next((one for one in directory(store) if one.terms.name == name), None)
    if one is None:
        raise InvalidInput(f"no experiment is called {name!r:.80}")
    if one.has_ended:
        raise InvalidInput(f"{name} has ended already")
    if not store.acquire():
        raise ServiceError("a service is running on this database: stop it first")
    signer = Signer(keyring.secret_for("ledger"))
    entry = one.entry(signer, "abandoned", {"reason": reason}, Clock().now())
    with store.writing() as db:
        store.belongs_to(db, keyring.name)
        store.write_ledger(db, one.id, entry)
        store.end(db, one.id, "abandoned")
    keyring.forget(one.id)
    return one


def succeed(store: Store, keyring: Keyring, name: str, successor: str, reason: str) -> None:
    """End an experiment as it is, and begin another with the same terms."""
    found = directory(store)
    keyring.refuse_older([one.id for one in found])  # before anything is erased
    before = next((one.terms for one in found if one.terms.name == name), None)
    terms = None if before is None else follower(before, successor)
    abandon(store, keyring, name, reason)
    assert terms is not None
    writer = Writer(store, keyring, _deliver)
    writer.start()
    try:
        while writer.state not in ("ready", "failed"):
            time.sleep(0.01)
        done: Future[Any] = Future()
        writer.submit(done, Open(terms, name))
        if isinstance(answer := done.result(), Refusal):
            raise ServiceError(answer.detail)
    finally:
        writer.stop()


def follower(before: Terms, /, name: str, **others: Any) -> Terms:
    """The terms of a successor: on the same people, so that budgets add up."""
    declared = {**before.declared, **others, "name": name}
    declared.setdefault("population", before.name)
    terms = Terms.read(declared)
    if terms.name == before.name:
        raise InvalidInput("a successor has a name of its own")
    # What was recommended then stays the policy, unless another is asked for.
    same = not {"policy", "privacy", "problem", "actions", "trust"} & others.keys()
    return replace(terms, policy=before.policy) if same and "policy" not in declared else terms


def _deliver(answers: Any) -> None:
    for future, answer in answers:
        future.set_result(answer)
