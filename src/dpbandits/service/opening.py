"""How an experiment is put into the database: its terms, its first key and snapshot, its first entry."""

from collections.abc import Iterable

from sqlalchemy.engine import Connection

from dpbandits.service.ledger import Signer, opened_body
from dpbandits.service.running import AnyDesk, Running
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Store
from dpbandits.service.terms import Terms


def open_experiment(
    store: Store,
    db: Connection,
    keyring: Keyring,
    terms: Terms,
    desk: AnyDesk,
    *,
    now: float,
    others: Iterable[Terms],
    follows: str | None = None,
) -> Running:
    """Within a transaction; `others` are all experiments there are: their budgets may add up."""
    signer = Signer(keyring.secret_for("ledger"))
    body = opened_body(
        experiment=terms.name,
        policy=terms.policy,
        problem=terms.problem,
        labels=terms.labels,
        in_flight=terms.in_flight,
        patience=terms.patience,
        noise=desk.noise,
        key=signer.public_key,
        population=terms.population,
        budgets={one.name: one.guarantee.budget for one in others if one.is_on(terms.population)},
        follows=follows,
    )
    # A number that no ticket has, not even one of a database that was lost.
    added = store.add_experiment(db, terms.name, terms.to_dict(), after=keyring.begun)
    one = Running(added, terms, epoch=1)
    # On disk before anything is sealed with it; left over if the transaction fails.
    one.take(desk, keyring.begin(added))
    entry = one.entry(signer, "opened", body, now)
    store.fold(db, added, one.sealed(one.seal, desk.snapshot()))
    store.write_ledger(db, added, entry)
    one.ledger = one.ledger.after(entry)
    return one
