"""The writer: one thread that applies what waits, commits it, and only then answers.

Apply in memory → one transaction for all that waits → answer. If a commit fails, or nobody knows whether
it did, nothing of it is answered: what is in memory is thrown away and read back from the database, and
callers repeat with the same request key. So memory is never ahead of the disk for longer than a commit,
and nobody has seen a decision that a crash could undo.

A fold (`desk.py`) comes after a number of decisions, at which a batch is cut, or after some seconds:
never because a reward came. After it the keyring forgets the old key, within ten seconds.
"""

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from dpbandits.errors import (
    DPBanditsError,
    HorizonReached,
    InvalidInput,
    PrivacyError,
    ServiceError,
)
from dpbandits.service.batch import Batch, encode
from dpbandits.service.clock import Clock
from dpbandits.service.commands import Act, Answer, Asked, Change, Command, Open, Stop
from dpbandits.service.desk import Desk
from dpbandits.service.forwarding import Forwarder
from dpbandits.service.ledger import Signer
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.opening import open_experiment
from dpbandits.service.recovery import recover
from dpbandits.service.refusals import Refusal, trace_of
from dpbandits.service.running import Running, begin_desk
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Fenced, Store, first_line
from dpbandits.service.terms import Terms

log = logging.getLogger("dpbandits.service")

MOST_WAITING = 4000
_BATCH = 512  # commands in one transaction
_KEYS_KEPT = 3600.0  # seconds, of request keys, and at least as long as a round is open
_FOLD_EVERY = 10.0
_MOST_PERIODS = 6  # of them that a fold may wait where very many rounds are open
_PAGE_EVERY = 60.0
_BEAT_EVERY = 2.0
_SILENT = 8.0  # seconds without a sign of life after which a standby takes over


Waiting = tuple[Any, Command]  # a future of the caller's kind, and what it waits for


class Writer:
    """Holds all experiments; `submit` from any thread, answers come by `deliver`."""

    def __init__(
        self,
        store: Store,
        keyring: Keyring,
        deliver: Callable[[Sequence[tuple[Any, Answer]]], None],
        *,
        declared: Sequence[Terms] = (),
        clock: Clock | None = None,
        fail: Callable[[str], None] | None = None,
    ) -> None:
        self.store, self.keyring, self.deliver = store, keyring, deliver
        self.signer = Signer(keyring.secret_for("ledger"))
        self.clock, self._declared = clock or Clock(), declared
        self._fail = fail or (lambda sentence: None)
        self.state = "starting"  # then standby, recovering, ready, failed, stopped
        self.running: dict[str, Running] = {}  # by name; replaced as a whole
        self.by_id: dict[int, Running] = {}
        self._waiting: deque[Waiting] = deque()
        self._arrived = threading.Event()
        self._stopping = False
        self._folded_at: dict[int, float] = {}
        self._looked_at: dict[int, float] = {}  # the last moment at which a fold may have been due
        self._leads, self._checked_at = False, 0.0
        self.forwarder = Forwarder(keyring)
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._beating = threading.Thread(target=self._beat_regularly, name="beat", daemon=True)
        self._ended = threading.Event()

    # From other threads

    def start(self) -> None:
        """Begin; `state` tells when it is ready."""
        self._thread.start()
        self.forwarder.start()
        self._beating.start()

    def stop(self) -> None:
        """Fold everything, so that another version may go on, and end."""
        self._stopping = True
        self._arrived.set()
        self._thread.join()
        self._ended.set()
        self.forwarder.stop()
        self._beating.join()
        self.store.close()

    @property
    def is_ready(self) -> bool:
        """Whether it decides."""
        return self.state == "ready" and not self.forwarder.is_late

    def submit(self, future: Any, command: Command) -> None:
        """Have a command carried out; its answer comes to the future."""
        if not self.is_ready:
            raise Refusal("standby" if self.state == "standby" else "not-ready")
        if len(self._waiting) >= MOST_WAITING:
            raise Refusal("busy")
        self._waiting.append((future, command))
        if not self._arrived.is_set():
            self._arrived.set()

    # The thread

    def _run(self) -> None:
        pause = 0.05
        while not self._stopping:
            try:
                self._lead()
                pause = 0.05
                self._serve()
            except Fenced:
                log.warning("another process writes now; standing by")
                self._lose("standby")
            except ServiceError as error:
                self._lose("failed")
                self._fail(str(error))
                return
            except (sa.exc.SQLAlchemyError, OSError) as error:
                if _is_broken_disk(error):
                    self._lose("failed")
                    self._fail("the disk does not keep what it is given: not going on")
                    return
                log.warning("the database cannot be used (%s); trying again", first_line(error))
                self._lose("recovering")
                time.sleep(pause)
                pause = min(2.0 * pause, 2.0)
            except Exception as error:
                log.error("the writer failed\n%s", trace_of(error))
                self._lose("failed")
                self._fail("the writer failed; its log says why")
                return
        self._close_down()

    def _lead(self) -> None:
        """Become the writer, and get back to where the last one was."""
        stood_by = False
        while not self.store.acquire():
            if self.store.is_sqlite:
                raise ServiceError(
                    f"{self.store.database} is in use by another process: stop that one, or use "
                    "PostgreSQL, where others stand by"
                )
            self.state, stood_by = "standby", True
            self.store.end_silent_writer(_SILENT)
            time.sleep(0.5)
            if self._stopping:
                raise Fenced
        self.state, self._leads = "recovering", True
        self.store.beat()  # before others look: the last sign of life may be old
        self._publish(recover(self.store, self.keyring, self.signer, self.clock))
        for terms in self._declared:
            self._open_declared(terms)
        for one in self.running.values():
            if one.is_running:
                one.desk.warm_up()
                # Whoever was here before may not have come to tell the keyring.
                self.forwarder.reached(one.id, one.seal, one.head)
        now = self.clock.now()
        self._folded_at = dict.fromkeys(self.by_id, now)
        if stood_by:
            log.warning("this process decides now")
        self.state = "ready"

    def _serve(self) -> None:
        while not self._stopping:
            self._arrived.wait(0.25)
            self._arrived.clear()
            self._catch_up()

    def _catch_up(self) -> None:
        """What is due by the clock, and all that waits."""
        self._keep_time(self.clock.now())
        while self._waiting:
            now = self.clock.now()
            self._keep_time(now)
            self._do_batch(now)

    def _close_down(self) -> None:
        self._lose_waiting()
        if self.state == "ready":
            try:
                for one in self.running.values():
                    if one.is_running:
                        self._fold(one, self.clock.now(), last=True)
            except (Fenced, sa.exc.SQLAlchemyError, OSError) as error:
                log.warning("not stopped cleanly: the log will be replayed (%s)", first_line(error))
        self.state = "stopped"

    def _lose(self, state: str) -> None:
        """Throw away what is in memory; those who wait repeat what they asked."""
        self.state, self._leads = state, False
        self.store.drop()
        self._publish([])
        self._lose_waiting()

    def _lose_waiting(self) -> None:
        lost = []
        while self._waiting:
            lost.append((self._waiting.popleft()[0], Refusal("not-ready")))
        self.deliver(lost)

    def _publish(self, found: Iterable[Running]) -> None:
        running = {one.terms.name: one for one in found}
        self.by_id = {one.id: one for one in running.values()}
        self.running = running

    # Batches

    def _do_batch(self, now: float) -> None:
        """Carry out what waits, in one transaction, and answer."""
        first, command = self._waiting[0]
        if isinstance(command, Act):
            self._waiting.popleft()
            self._do_act(first, command)
            return
        batch, answers = self._take_batch(), []
        try:
            with self.store.writing() as db:
                pending = Batch(self, db, now, [command for _, command in batch])
                for future, command in batch:
                    answers.append((future, pending.answer(command)))
                    if pending.due is not None:
                        break
                self._waiting.extendleft(reversed(batch[len(answers) :]))
                heads = pending.write()
        except BaseException:
            self.deliver([(future, Refusal("not-ready")) for future, _ in batch])
            raise
        for one, head in heads:
            one.head = head
            one.count()
            self.forwarder.reached(one.id, one.seal, head)
        pending.committed()
        self.deliver(answers)
        if pending.due is not None and pending.due.is_running:
            self._fold(pending.due, now)

    def _take_batch(self) -> list[tuple[Any, Asked]]:
        """What waits before the operator's next act."""
        batch = list[tuple[Any, Asked]]()
        while self._waiting and len(batch) < _BATCH:
            future, command = self._waiting[0]
            if isinstance(command, Act):
                break
            batch.append((future, command))
            self._waiting.popleft()
        return batch

    def _keep_time(self, now: float) -> None:
        """What is due by the clock, before anything is decided at this time.

        A fold closes what its own moment closes, a multiple of some seconds after the last, and not what
        the moment would at which this thread came to it: that may be earlier because a reward woke it.
        For the same reason each moment is looked at once, before any later decision.
        """
        if now - self._checked_at >= _BEAT_EVERY:
            self.store.check_connection()
            self._checked_at = now
        for one in self.running.values():
            periods = (now - self._folded_at[one.id]) // _FOLD_EVERY
            due = self._folded_at[one.id] + periods * _FOLD_EVERY
            if one.is_running and periods >= 1.0 and due > self._looked_at.get(one.id, 0.0):
                self._looked_at[one.id] = due
                if one.desk.is_idle(due):
                    self._folded_at[one.id] = due
                elif one.desk.is_fold_cheap() or periods >= _MOST_PERIODS:
                    self._fold(one, due)

    def _fold(self, one: Running, now: float, *, last: bool = False) -> None:
        """A snapshot in place of the log, under the next key, with fresh generators."""
        after = one.seal.next()
        data = one.desk.fold(now)
        entry = None
        if (last or now - one.ledger.page_at >= _PAGE_EVERY) and self._has_news(one):
            entry = one.entry(self.signer, "page", one.page(), now)
        kept = max(_KEYS_KEPT, one.terms.patience or 0.0)
        with self.store.writing() as db:
            self.store.move_head(db, one.id, one.epoch, one.head, one.head)
            self.store.fold(db, one.id, one.sealed(after, data))
            self.store.forget_keys(db, one.id, int(now - kept))
            if entry is not None:
                self.store.write_ledger(db, one.id, entry)
        one.take(one.desk, after)
        if entry is not None:
            one.ledger = one.ledger.after(entry)
        self._folded_at[one.id] = now
        self.forwarder.reached(one.id, after, one.head)

    def _has_news(self, one: Running) -> bool:
        page = one.ledger.page
        told = (0, 0) if page is None else (page["decided"], page["closed"])
        return told != (one.desk.decided, one.desk.closed)

    # Acts of the operator

    def _do_act(self, future: Any, command: Act) -> None:
        try:
            match command:
                case Open(terms, follows, desk):
                    answer: Any = self._open_asked(terms, follows, desk)
                case Stop(name):
                    answer = self._stop(self._named(name))
                case Change(name, act, label):
                    answer = self._change(self._named(name), act, label)
        except Refusal as refusal:
            answer = refusal
        except BaseException:  # what is in memory may be ahead of the disk
            self.deliver([(future, Refusal("not-ready"))])
            raise
        self.deliver([(future, answer)])

    def _named(self, name: str) -> Running:
        one = self.running.get(name)
        if one is None:
            raise Refusal("no-such-experiment")
        one.refuse_unless_running()
        return one

    def _open(
        self, terms: Terms, follows: str | None = None, desk: Desk | LocalDesk | None = None
    ) -> str:
        if terms.name in self.running:
            raise Refusal("exists")
        now = self.clock.now()
        if desk is None:
            desk = begin_desk(terms)
            desk.warm_up()
        with self.store.writing() as db:
            one = open_experiment(
                self.store,
                db,
                self.keyring,
                terms,
                desk,
                now=now,
                others=[other.terms for other in self.running.values()],
                follows=follows,
            )
        self._folded_at[one.id] = now
        self._publish([*self.running.values(), one])
        log.info("%s begins: %s", terms.name, desk.guarantee)
        return terms.name

    def _open_asked(self, *asked: Any) -> str:
        try:
            return self._open(*asked)
        except (InvalidInput, PrivacyError):  # nothing was changed
            raise Refusal("cannot-change") from None
        except ServiceError as error:  # nor here: a new key could not be put into the keyring
            log.error("%s", error)
            raise Refusal("not-ready") from None

    def _open_declared(self, terms: Terms) -> None:
        """One from a file, unless it is there; an experiment never changes."""
        known = self.running.get(terms.name)
        if known is None:
            try:
                self._open(terms)
            except DPBanditsError as error:
                raise ServiceError(f"{terms.name} cannot begin: {error}") from error
        else:
            terms.refuse_other_than(known.terms)

    def _stop(self, one: Running) -> str:
        """Close and release what there is, publish it, and erase all that is not public."""
        now, desk = self.clock.now(), one.desk
        if isinstance(desk, Desk):
            with suppress(HorizonReached):  # then all that may be released was
                desk.learner.close()
        page = one.entry(self.signer, "page", one.page(), now)
        ledger = one.ledger.after(page)
        body = {"decided": desk.decided, "closed": desk.closed}
        counts = desk.decided, desk.closed
        place = one.id, one.terms, "stopped", one.epoch, one.head
        ended = Running(*place, ledger, counts, one.facts)
        entry = ended.entry(self.signer, "stopped", body, now)
        with self.store.writing() as db:
            self.store.move_head(db, one.id, one.epoch, one.head, one.head)
            self.store.write_ledger(db, one.id, page)
            self.store.write_ledger(db, one.id, entry)
            self.store.end(db, one.id, "stopped")
        ended.ledger = ledger.after(entry)
        self.forwarder.forget(one.id)
        self._publish([ended if other is one else other for other in self.running.values()])
        return one.terms.name

    def _change(self, one: Running, act: str, label: str) -> str:
        desk = one.desk
        if isinstance(desk, LocalDesk):
            raise Refusal("cannot-change")
        event = desk.change(act, label)
        body = {"act": act, "label": label, "decided": desk.decided}
        entry, head = one.entry(self.signer, "changed", body, self.clock.now()), one.head + 1
        with self.store.writing() as db:
            self.store.move_head(db, one.id, one.epoch, one.head, head)
            self.store.append(db, one.id, head, one.seal.close("log", head, encode([event])))
            self.store.write_ledger(db, one.id, entry)
        one.head, one.ledger = head, one.ledger.after(entry)
        one.take(desk, one.seal)
        return label

    # Signs of life, in a thread of their own: a long log or a compiler must not look like death

    def _beat_regularly(self) -> None:
        while not self._ended.wait(_BEAT_EVERY):
            if self._leads:
                with suppress(sa.exc.SQLAlchemyError):
                    self.store.beat()


def _is_broken_disk(error: Exception) -> bool:
    """Whether SQLite could not write or sync for another reason than a full disk.

    After a failed fsync the page cache may hold what the disk does not: only a new process may go on.
    """
    cause = getattr(error, "orig", error)
    code = getattr(cause, "sqlite_errorcode", 0)
    no_room = (sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_NOMEM)
    return bool(code & 0xFF == sqlite3.SQLITE_IOERR and code not in no_room)
