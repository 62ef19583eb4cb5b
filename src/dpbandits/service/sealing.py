"""Raw data at rest is sealed, under a key that is hashed forward whenever the log is folded.

Each experiment has a chain of keys, key(g + 1) = H(key(g)). The snapshot of generation g and the log
after it are sealed under key(g) with AES-256-GCM. Once the keyring has moved on to g + 1, nothing that
was sealed before can be opened any more, wherever a disk, a backup or a database's own log still has it.

The keyring is one file *outside* the database, readable by its owner only. It also says up to which
generation and log entry decisions were answered: a database older than that is refused, since playing
it on would draw the same noise again on other data. So a keyring is never restored from a backup: not
beside its database, and not alone.
"""

import fcntl
import hashlib
import json
import operator
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpbandits.errors import ServiceError

_NONCE = 12  # bytes
_MOST_STEPS = 10_000_000  # of a chain: more folds than a keyring can be behind


class Seal:
    """The key of one generation of one experiment."""

    def __init__(self, experiment: int, generation: int, key: bytes) -> None:
        self.experiment, self.generation, self.key = experiment, generation, key
        self._cipher = AESGCM(key)

    def close(self, what: str, number: int, data: bytes) -> bytes:
        """Seal what is written, so that it opens only as what it is: a log entry, or a snapshot."""
        # A random nonce: a commit that failed is written again under the same number.
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, self._label(what, number))

    def open(self, what: str, number: int, sealed: bytes) -> bytes:
        """The same back; anything else is refused."""
        nonce, rest = sealed[:_NONCE], sealed[_NONCE:]
        try:
            return self._cipher.decrypt(nonce, rest, self._label(what, number))
        except (InvalidTag, ValueError):
            raise ServiceError(
                f"{what} {number} of experiment {self.experiment} cannot be opened: it was changed, or "
                "the keyring is not the one it was sealed with"
            ) from None

    def next(self) -> "Seal":
        """That of the next generation, from which this one cannot be found."""
        after = hashlib.blake2b(self.key, digest_size=32, person=b"dpbandits-next").digest()
        return Seal(self.experiment, self.generation + 1, after)

    def _label(self, what: str, number: int) -> bytes:
        return f"{what}:{self.experiment}:{self.generation}:{number}".encode()


class Keyring:
    """The file with the service's secret and the newest key of each experiment.

    Other places to keep keys need the same methods: `secret_for`, `begun`, `begin`,
    `refuse_older`, `seal`, `advance`, `forget`.
    """

    def __init__(self, path: str | Path, *, create: bool) -> None:
        self.path = Path(path)
        with self._locked():
            if not self.path.exists():
                if not create:
                    raise ServiceError(
                        f"there is no keyring at {self.path}, and what is in the database cannot be "
                        "opened without it; if it is lost, start anew with another database"
                    )
                self._write({"secret": secrets.token_hex(32), "keys": {}, "begun": 0})
            # Of a process that was killed while it wrote: a copy of keys, which would open all to come.
            self._draft.unlink(missing_ok=True)
            self._secret = bytes.fromhex(self._read()["secret"])

    def secret_for(self, purpose: str) -> bytes:
        """32 bytes for one purpose: tickets, people, the ledger's signature."""
        label = purpose.encode()[:16]
        return hashlib.blake2b(self._secret, digest_size=32, person=label).digest()

    @property
    def name(self) -> str:
        """What the database calls this keyring by, to tell it from others; tells nothing about keys."""
        return self.secret_for("name").hex()[:16]

    @property
    def begun(self) -> int:
        """The highest number of an experiment that was begun with it: later ones have higher ones."""
        with self._locked():
            return int(self._read()["begun"])

    def begin(self, experiment: int) -> Seal:
        """The first key of a new experiment, on disk before anything is sealed with it."""
        first = Seal(experiment, 0, secrets.token_bytes(32))
        with self._changing() as held:
            if str(experiment) in held["keys"]:
                raise ServiceError(
                    f"experiment {experiment} of the keyring {self.path} is in use: it belongs to "
                    "another database"
                )
            held["keys"][str(experiment)] = [0, first.key.hex(), 0]
            held["begun"] = max(held["begun"], experiment)
        return first

    def refuse_older(self, known: Collection[int]) -> None:
        """Refuse a database that has only these experiments, where more were answered from."""
        with self._locked():
            keys = self._read()["keys"]
        # One that nothing was answered from may be left over from a transaction that failed.
        answered = (int(one) for one, (generation, _, head) in keys.items() if generation or head)
        if unknown := sorted(set(answered) - set(known)):
            raise ServiceError(
                f"the database does not know experiment {unknown[0]}, from which decisions were "
                f"answered: it is an older copy, or the keyring {self.path} is that of another one. "
                "Restore a newer copy, or start anew with another database and another keyring"
            )

    def seal(self, experiment: int, generation: int, head: int, *, name: str = "NAME") -> Seal:
        """The key for a database at this generation and log entry, if it is not an older one."""
        instead = f"`dpbandits experiment successor {name} NEW-NAME` begins another in its place"
        with self._locked():
            keys = self._read()["keys"]
        if str(experiment) not in keys:
            raise ServiceError(
                f"the keyring has no key of {name}: it is an older copy, or of another database. "
                f"{instead}"
            )
        known, key, answered = keys[str(experiment)]
        if generation < known or head < answered:
            raise ServiceError(
                f"the database is older than what was answered from {name} (generation {generation:,}, "
                f"entry {head:,}; the keyring knows {known:,} and {answered:,}): playing it on would "
                f"draw the same noise again on other data. Restore a newer copy, or {instead}"
            )
        if generation - known > _MOST_STEPS:
            raise ServiceError(f"the keyring is {generation - known:,} generations behind")
        found = Seal(experiment, known, bytes.fromhex(key))
        while found.generation < generation:
            found = found.next()
        return found

    def advance(self, seals: Mapping[int, tuple[Seal, int]]) -> None:
        """Forget the keys before these, each with the log entry that was reached."""
        with self._changing() as held:
            keys = held["keys"]
            for experiment, (seal, head) in seals.items():
                if str(experiment) not in keys:
                    continue  # forgotten, perhaps by another process: it must not come back
                known, _, answered = keys[str(experiment)]
                if seal.generation >= known and head >= answered:
                    keys[str(experiment)] = [seal.generation, seal.key.hex(), head]

    def forget(self, experiment: int) -> None:
        """Make what is sealed of an experiment unreadable for good."""
        with self._locked():
            known = str(experiment) in self._read()["keys"]
        if known:
            with self._changing() as held:
                held["keys"].pop(str(experiment), None)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        with self._locked():
            held = self._read()
            if bytes.fromhex(held["secret"]) != self._secret:
                raise ServiceError(f"the keyring {self.path} was replaced by another one")
            yield held
            self._write(held)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Against other processes: two that read, change and write would lose each other's keys."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ServiceError(f"the keyring {self.path} cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    @property
    def _draft(self) -> Path:
        return self.path.with_name(f".{self.path.name}.draft")

    def _read(self) -> dict[str, Any]:
        try:
            held = json.loads(self.path.read_bytes())
            bytes.fromhex(held["secret"]), operator.index(held["begun"])
            for generation, key, head in dict(held["keys"]).values():
                operator.index(generation), bytes.fromhex(key), operator.index(head)
        except OSError as error:
            raise ServiceError(f"the keyring {self.path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            raise ServiceError(f"{self.path} is not a keyring, or it is damaged") from None
        return dict(held)

    def _write(self, held: dict[str, Any]) -> None:
        """Replace it as a whole, and be sure of it: the old key must not come back."""
        # Of one name, so that what is left of it by a kill is overwritten; only who has the lock writes.
        draft, how = self._draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            try:
                with os.fdopen(os.open(draft, how, 0o600), "wb") as file:
                    file.write(json.dumps(held).encode())
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(self.path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            inside = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(inside)
            finally:
                os.close(inside)
        except OSError as error:
            raise ServiceError(f"the keyring {self.path} cannot be written: {error.strerror}") from error
