"""Who may do what: API keys with scopes, experiments and rates.

Keys are 256 random bits, so a plain SHA-256 of them tells nothing and is all that is kept. One event
loop asks, and one process decides, so the rates are exact and need no lock.
"""

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.service.refusals import Refusal

SCOPES = ("decide", "reward", "admin", "metrics")
_LONGEST_WAIT = 86_400.0  # seconds that a caller is told to wait, however low the rate
LEAST_BURST = 10.0  # a page that asks for several decisions at once is not an attack


def new_key() -> str:
    """A fresh key; shown once, and kept only as its digest."""
    return "dpb_" + secrets.token_urlsafe(32)


def digest(text: str) -> bytes:
    """What is kept of a key."""
    return sha256(text.encode()).digest()


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """What one key may do. `experiments` None: all; `rate` in requests a second, None: no limit."""

    name: str
    digest: bytes = field(repr=False)
    scopes: frozenset[str]
    experiments: frozenset[str] | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput("expected an API key to have a name")
        if len(self.digest) != sha256().digest_size:
            raise InvalidInput("expected the digest of an API key to be 32 bytes, as `digest` gives")
        if not self.scopes:
            raise InvalidInput(f"expected an API key to have at least one scope of {', '.join(SCOPES)}")
        for scope in self.scopes:
            checks.one_of(SCOPES, scope=scope)
        if self.rate is not None:
            checks.positive(rate=self.rate)

    def permits(self, scope: str, experiment: str | None) -> bool:
        """Whether the key may do this. `experiment` None: something that concerns them all."""
        if scope not in self.scopes and "admin" not in self.scopes:
            return False
        return self.experiments is None or experiment in self.experiments

    def require(self, scope: str, experiment: str | None) -> None:
        """Refuse what the key may not do."""
        if not self.permits(scope, experiment):
            raise Refusal("out-of-scope")


class Bucket:
    """Tokens that drip in at a rate, up to a burst of two seconds' worth; each request takes one."""

    __slots__ = ("at", "burst", "rate", "tokens")

    def __init__(self, rate: float, now: float) -> None:
        self.rate, self.at = rate, now
        self.burst = self.tokens = max(2.0 * rate, LEAST_BURST)

    def take(self, now: float) -> float:
        """Take a token; returns 0, or the seconds until there is one."""
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1.0:
            return min((1.0 - self.tokens) / self.rate, _LONGEST_WAIT)
        self.tokens -= 1.0
        return 0.0


class Access:
    """The keys in force. Asked for every request that needs one; used by one event loop only."""

    def __init__(
        self, keys: Iterable[ApiKey] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._keys: dict[bytes, tuple[ApiKey, Bucket | None]] = {}
        self.replace(keys)

    def replace(self, keys: Iterable[ApiKey]) -> None:
        """These keys from now on. A key that stays keeps what is left of its rate."""
        self._keys = {key.digest: (key, self._bucket(key)) for key in keys}

    def _bucket(self, key: ApiKey) -> Bucket | None:
        if key.rate is None:
            return None
        _, held = self._keys.get(key.digest, (None, None))
        return held if held is not None and held.rate == key.rate else Bucket(key.rate, self._clock())

    def identify(self, authorization: bytes | None) -> ApiKey:
        """Whose request it is, by its header `Authorization: Bearer …`; takes one token of its rate."""
        if authorization is None or authorization[:7].lower() != b"bearer ":
            raise Refusal("no-key")
        found = self._keys.get(sha256(authorization[7:].strip()).digest())
        if found is None:
            raise Refusal("unknown-key")
        key, bucket = found
        if bucket is not None and (wait := bucket.take(self._clock())):
            raise Refusal("too-many", retry_after=wait)
        return key

    def check(self, authorization: bytes | None, scope: str, experiment: str | None) -> ApiKey:
        """The key of a request that may do this; a request out of scope costs a token too.

        `experiment` None is what concerns them all: a key that is limited to some may not do it. Where
        the experiment is known only later, by a ticket: `identify` first, then `key.require`.
        """
        key = self.identify(authorization)
        key.require(scope, experiment)
        return key
