"""`dpbandits`, as it is, with a witness beside it: an entry point of the tests' own.

    python witness.py serve …            the real service; what it decides is noted in the file WITNESS
    python witness.py inspect DB KEYRING what a restart finds in a database, as JSON

**The file** has a line for each decision, with the SHA-256 of all that the learner knew after it: `live`
when it is made, `replayed` when a restart makes it again, `answered` before its answer leaves. It is
written with one system call a line, so a killed process has said all that it did.

**The tally** of what was learned rides in the sealed snapshot: the reward of every round that was closed
with one, and how many rounds of each person were learned from. So it is durable when the learner's own
state is, and not otherwise.

FAULTS, separated by commas, break what a test wants broken; production code has no hooks for them.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import secrets
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

_FAULTS = set(filter(None, os.environ.get("FAULTS", "").split(",")))
_RUN = secrets.token_hex(4)
_SYSCALLS = {"x86_64": (74, 75), "aarch64": (82, 83)}  # fsync and fdatasync


class Tally:
    """What was learned from closed rounds."""

    def __init__(self) -> None:
        self.rewards: list[tuple[int, int, float]] = []  # of which round, of which action, how much
        self.people: Counter[str] = Counter()

    def note(self, opened: Any, learned: bool) -> None:
        if opened.answered:
            self.rewards.append((opened.number, opened.action, float(opened.reward)))
        if opened.person is not None and learned:
            self.people[opened.person.hex()] += 1

    def to_list(self) -> list[Any]:
        return [self.rewards, dict(self.people)]

    @classmethod
    def from_list(cls, told: list[Any]) -> "Tally":
        tally = cls()
        tally.rewards, tally.people = [tuple(one) for one in told[0]], Counter(told[1])
        return tally


def tally_of(rounds: Any) -> Tally:
    """That of a learner's rounds."""
    if not hasattr(rounds, "tally"):
        rounds.tally = Tally()
    found: Tally = rounds.tally
    return found


def watch(path: str) -> None:
    """Note every decision, and what was learned."""
    from dpbandits.policies.rounds import Rounds
    from dpbandits.service.commands import Decided
    from dpbandits.service.desk import Desk
    from dpbandits.service.service import Service

    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    decide, replay, warm_up, ask = Desk.decide, Desk.replay, Desk.warm_up, Service.ask
    doing = ["live"]

    def say(kind: str, experiment: str, number: int, digest: str = "-") -> None:
        os.write(file, f"{_RUN} {kind} {experiment} {number} {digest}\n".encode())

    def watched_decide(self: Any, *given: Any) -> Any:
        answer, event = decide(self, *given)
        if doing[0] != "warming":
            say(doing[0], self.terms.name, answer.number, digest_of(self.learner))
        return answer, event

    def during(kind: str, work: Any) -> Any:
        def watched(*given: Any) -> Any:
            before, doing[0] = doing[0], kind
            try:
                return work(*given)
            finally:
                doing[0] = before

        return watched

    async def watched_ask(self: Any, command: Any) -> Any:
        asked = self.writer.by_id.get(getattr(command, "experiment", None))
        answer = await ask(self, command)
        if isinstance(answer, Decided):
            say("answered", asked.terms.name, answer.opened.number)
        return answer

    Desk.decide = watched_decide  # type: ignore[method-assign, assignment]
    Desk.replay = during("replayed", replay)  # type: ignore[method-assign]
    Desk.warm_up = during("warming", warm_up)  # type: ignore[method-assign]
    Service.ask = watched_ask  # type: ignore[method-assign]
    keep_tally(Rounds, Desk)


def keep_tally(rounds: Any, desk: Any) -> None:
    """Let every learner carry a tally, and its snapshots too."""
    close, snapshot, restore = rounds._close, desk.snapshot, desk.restore

    def close_and_note(self: Any, noise: Any) -> Any:
        oldest, observed = self.open[0], self.observed
        sent = close(self, noise)
        tally_of(self).note(oldest, self.observed > observed)
        return sent

    def snapshot_with_tally(self: Any) -> bytes:
        held = msgspec.msgpack.decode(snapshot(self))
        return msgspec.msgpack.encode({**held, "tally": tally_of(self.learner._rounds).to_list()})

    def restore_with_tally(terms: Any, data: bytes) -> Any:
        found = restore(terms, data)
        found.learner._rounds.tally = Tally.from_list(msgspec.msgpack.decode(data)["tally"])
        return found

    rounds._close = close_and_note
    desk.snapshot = snapshot_with_tally
    desk.restore = staticmethod(restore_with_tally)


def digest_of(learner: Any) -> str:
    """Of all that it knows of closed rounds, released or not."""
    from dpbandits.engine import leaves

    digest = hashlib.sha256()
    for state in (learner._public, learner._secret):
        for name, value in leaves(state):
            digest.update(name.encode())
            digest.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    return digest.hexdigest()


# Faults


def answer_before_commit() -> None:
    """Each transaction is committed by the next one, 20 ms after its answers went out.

    Nor does the service look out for tickets that its database does not know, which would end it.
    """
    from dpbandits.service.desk import Desk
    from dpbandits.service.refusals import Refusal
    from dpbandits.service.store import Fenced, Store

    left: list[Any] = []
    reward = Desk.reward

    def forgiving(self: Any, number: int, value: Any) -> Any:
        if number >= self.decided:
            raise Refusal("closed")
        return reward(self, number, value)

    @contextlib.contextmanager
    def writing(self: Any) -> Iterator[Any]:
        if self._held is None:
            left.clear()
            raise Fenced
        if left:
            time.sleep(0.02)
            left.pop().commit()
        transaction = self._held.begin()
        try:
            yield self._held
        except BaseException:
            transaction.rollback()
            raise
        left.append(transaction)

    Store.writing = writing  # type: ignore[method-assign]
    Desk.reward = forgiving  # type: ignore[method-assign]


def fresh_generators() -> None:
    """A restart draws other noise than was drawn."""
    from dpbandits.service.desk import Desk

    restore = Desk.restore

    def restore_and_renew(terms: Any, data: bytes) -> Any:
        desk = restore(terms, data)
        desk.learner.renew()
        return desk

    Desk.restore = staticmethod(restore_and_renew)  # type: ignore[method-assign]


def blind_replay() -> None:
    """A restart does not compare what it chooses with what was answered."""
    from dpbandits.errors import ServiceError
    from dpbandits.service.desk import Desk

    replay = Desk.replay

    def replay_anything(self: Any, event: Any) -> float:
        try:
            return replay(self, event)
        except ServiceError:
            return float(event[1])

    Desk.replay = replay_anything  # type: ignore[method-assign]


def no_locks() -> None:
    """Everybody may try to write, now and then: two that never waited would only fence each other."""
    from dpbandits.service.store import Store

    def acquire(self: Any) -> bool:
        time.sleep(secrets.randbelow(1000) / 1000.0)
        self.drop()
        self._held = self._writing.connect()
        return True

    Store.acquire = acquire  # type: ignore[method-assign]


def recover_slowly() -> None:
    """As with a long log, or with much to compile."""
    from dpbandits.service import writer

    recover = vars(writer)["recover"]

    def slowly(*given: Any) -> Any:
        time.sleep(2.0)
        found = recover(*given)
        time.sleep(3.0)
        return found

    vars(writer)["recover"] = slowly


def be_brisk() -> None:
    """Fold and move the keyring ten times as often, so that a kill meets both."""
    from dpbandits.service import desk, writer

    desk._FOLD_AFTER = 150
    writer._FOLD_EVERY, writer._PAGE_EVERY = 1.0, 2.0
    forward_often()


def forward_often() -> None:
    """Only the keyring moves more often."""
    from dpbandits.service import forwarding

    forwarding._EVERY, forwarding._WITHIN = 0.3, 1.5


def move_the_clock() -> None:
    """The wall clock is wrong by what a file says. Before anything else is imported."""
    path, true_time = Path(os.environ["CLOCK"]), time.time
    time.time = lambda: true_time() + float(path.read_text())


def lose_syncs() -> None:
    """Once a file is there, the kernel answers EIO whenever the writer syncs."""
    from dpbandits.service.writer import Writer

    path, keep_time = Path(os.environ["BROKEN_DISK"]), Writer._keep_time
    done: list[int] = []

    def keep_time_on_a_broken_disk(self: Any, now: float) -> None:
        if not done and path.exists():
            done.append(_refuse_syncs())
        keep_time(self, now)

    Writer._keep_time = keep_time_on_a_broken_disk  # type: ignore[method-assign]


def _refuse_syncs() -> int:
    """A filter for this thread (seccomp): load the call's number, compare it, EIO or allow."""
    sync, datasync = _SYSCALLS[os.uname().machine]
    rules = [
        (0x20, 0, 0, 0),
        (0x15, 1, 0, sync),
        (0x15, 0, 1, datasync),
        (0x06, 0, 0, 0x0005_0000 | 5),
        (0x06, 0, 0, 0x7FFF_0000),
    ]
    code = b"".join(struct.pack("HBBI", *rule) for rule in rules)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("rules", ctypes.c_char_p))

    kernel, program = ctypes.CDLL(None, use_errno=True), Program(len(rules), code)
    no_new_privileges, set_filter = 38, 22
    if kernel.prctl(no_new_privileges, 1, 0, 0, 0) or kernel.prctl(set_filter, 2, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "seccomp")
    return 1


# What a restart finds


def inspect(database: str, keyring_path: str) -> dict[str, Any]:
    """Every experiment, after recovery."""
    from dpbandits.service.clock import Clock
    from dpbandits.service.ledger import Signer
    from dpbandits.service.recovery import recover
    from dpbandits.service.sealing import Keyring
    from dpbandits.service.store import Store

    store, keyring = Store(database), Keyring(keyring_path, create=False)
    try:
        assert store.acquire()
        found = recover(store, keyring, Signer(keyring.secret_for("ledger")), Clock())
        return {one.terms.name: _described(one) for one in found if one.is_running}
    finally:
        store.close()


def _described(one: Any) -> dict[str, Any]:
    desk = one.desk
    rounds, tally = desk.learner._rounds, tally_of(desk.learner._rounds)
    closed = [(number, str(desk.label(action)), value) for number, action, value in tally.rewards]
    still_open = [
        (opened.number, str(desk.label(opened.action)), float(opened.reward))
        for opened in rounds.open
        if opened.answered
    ]
    return {
        "decided": desk.decided,
        "closed": desk.closed,
        "generation": one.generation,
        "epoch": one.epoch,
        "closed_rewards": closed,
        "open_rewards": still_open,
        "most_of_one_person": max(tally.people.values(), default=0),
        "raw_sums": _raw_sums(desk),
        "retired": list(desk.retired),
        "labels": desk.labels,
    }


def _raw_sums(desk: Any) -> dict[str, float] | None:
    """Of a policy with trees: the exact sum of reward − ½ over all closed rounds of each arm."""
    public, secret = desk.learner._public, desk.learner._secret
    if not (hasattr(secret, "nodes") and hasattr(public, "tree")):
        return None
    sums = {}
    for arm, label in enumerate(desk.labels):
        live = int(public.tree.live[arm])
        sums[label] = float(secret.open[arm, 0] + secret.nodes[arm, :live, 0].sum())
    return sums


def main() -> None:
    """Break what is to be broken, and go on as `dpbandits`."""
    if "clock" in _FAULTS:
        move_the_clock()
    faults = {
        "early": answer_before_commit,
        "fresh": fresh_generators,
        "blind": blind_replay,
        "unlocked": no_locks,
        "brisk": be_brisk,
        "forwarding": forward_often,
        "fsync": lose_syncs,
        "slow": recover_slowly,
    }
    watch(os.environ.get("WITNESS", os.devnull))
    for name in sorted(_FAULTS - {"clock"}):
        faults[name]()
    if sys.argv[1] == "inspect":
        print(json.dumps(inspect(*sys.argv[2:])))
        return
    from dpbandits_command import main as run

    run()


if __name__ == "__main__":
    main()
