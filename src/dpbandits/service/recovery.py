"""How the writer gets hold of a database, and back to where the last one was.

lock → a new epoch for every experiment, which fences earlier writers → the keyring's word on how far
answers went → snapshot → log, without a gap up to the head, each event played again and compared with
what was answered → a `resumed` entry in the ledger → ready.
"""

import json
import logging

import msgspec
from sqlalchemy.engine import Connection

from dpbandits.errors import DPBanditsError, ServiceError
from dpbandits.policies.saving import fingerprint
from dpbandits.service.clock import Clock
from dpbandits.service.ledger import Signer
from dpbandits.service.running import Facts, LedgerEnd, Running, restore_desk
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Row, Store
from dpbandits.service.terms import Terms
from dpbandits.version import __version__

log = logging.getLogger("dpbandits.service")


def recover(store: Store, keyring: Keyring, signer: Signer, clock: Clock) -> list[Running]:
    """Every experiment, those that run at the point where the last writer was."""
    with store.writing() as db:
        store.belongs_to(db, keyring.name)
        rows = store.claim(db)
    keyring.refuse_older([row.id for row in rows])
    found = [_recovered(store, keyring, signer, clock, row) for row in rows]
    for one in found:
        if one.is_suspended:
            tell_suspended(one)
        if one.has_ended:  # perhaps cut short before its key was forgotten
            keyring.forget(one.id)
    return found


def tell_suspended(one: Running) -> None:
    """What to do, for whoever reads the log."""
    log.error(
        "%s decides no more: the database is older than what was answered from it. Restore a "
        "newer copy, or stop the service and use `dpbandits experiment successor`",
        one.terms.name,
    )


def _recovered(store: Store, keyring: Keyring, signer: Signer, clock: Clock, row: Row) -> Running:
    try:
        terms = Terms.from_dict(json.loads(row.terms))
    except DPBanditsError as error:
        raise ServiceError(f"the terms of {row.name} cannot be read by this version: {error}") from error
    one = Running(row.id, terms, row.state, row.epoch, row.head)
    with store.writing() as db:
        one.ledger = _ledger_end(store, db, row.id)
        if not one.is_running:
            one.counts, one.facts = counts_of(one.ledger), _facts(store, db, row.id)
            return one
        replayed = _replay(store, keyring, clock, db, one)
        entry = one.entry(signer, "resumed", {"epoch": one.epoch, "version": __version__}, clock.now())
        store.move_head(db, one.id, one.epoch, one.head, one.head)
        store.write_ledger(db, one.id, entry)
    one.ledger = one.ledger.after(entry)
    clock.not_before(one.ledger.at)  # otherwise pages would wait for a time that was once too late
    log.info("%s goes on after %s decisions, %s events replayed", row.name, one.desk.decided, replayed)
    return one


def _replay(store: Store, keyring: Keyring, clock: Clock, db: Connection, one: Running) -> int:
    """Bring an experiment back; how many events it took."""
    found = store.snapshot(db, one.id)
    if found is None:
        raise ServiceError(f"the snapshot of {one.terms.name} is missing from the database")
    seal = keyring.seal(one.id, found.generation, one.head, name=one.terms.name)
    data = seal.open("snapshot", found.generation, found.sealed)
    if one.head > found.entry:
        _refuse_other_machine(one.terms.name, json.loads(found.fingerprint))
    desk = restore_desk(one.terms, data)
    one.take(desk, seal)
    entry, replayed = found.entry, 0
    for number, sealed in store.log_after(db, one.id, found.entry):
        entry += 1
        if number != entry:
            raise ServiceError(f"entry {entry:,} of the log of {one.terms.name} is missing")
        for event in msgspec.msgpack.decode(seal.open("log", number, sealed)):
            clock.not_before(desk.replay(event))
            replayed += 1
    if entry != one.head:
        raise ServiceError(
            f"the log of {one.terms.name} ends at entry {entry:,}, but {one.head:,} were answered"
        )
    one.count()
    clock.not_before(desk.now)
    return replayed


def directory(store: Store) -> list[Running]:
    """Every experiment as far as it is public: for a standby, which has none at work."""
    with store.reading() as db:
        found = []
        for row in store.experiments(db):
            terms, end = Terms.from_dict(json.loads(row.terms)), _ledger_end(store, db, row.id)
            facts = _facts(store, db, row.id)
            counts = counts_of(end)
            found.append(Running(row.id, terms, row.state, row.epoch, row.head, end, counts, facts))
        return found


def counts_of(ledger: LedgerEnd) -> tuple[int, int]:
    """Decisions and closed rounds, by the last page."""
    page = ledger.page
    return (0, 0) if page is None else (page["decided"], page["closed"])


def _refuse_other_machine(name: str, was: dict[str, str]) -> None:
    """With a log to replay, all that its bits rest on must be as it was."""
    here = fingerprint()
    changed = [f"{part} {was[part]} (here {here[part]})" for part in was if was[part] != here[part]]
    if changed:
        raise ServiceError(
            f"{name} was not stopped cleanly, and its log must be replayed where it was written: start "
            f"it once with {', '.join(changed)}, stop it with Ctrl-C or SIGTERM, then change"
        )


def _facts(store: Store, db: Connection, experiment: int) -> Facts:
    return Facts.told_by(store.ledger_entries(db, experiment, kinds=("opened", "changed"), limit=10**6))


def _ledger_end(store: Store, db: Connection, experiment: int) -> LedgerEnd:
    """Where its ledger stands: what the last entry and the last page say."""
    last, page = store.last_ledger_entry(db, experiment), store.last_ledger_entry(db, experiment, "page")
    end = LedgerEnd() if page is None else LedgerEnd().after(page)
    return end if last is None else end.after(last)
