"""API keys: who is let in, to what, and how often."""

import math
import re
from typing import Any

import pytest

from dpbandits.errors import InvalidInput
from dpbandits.service.access import Access, ApiKey, digest, new_key
from dpbandits.service.refusals import Refusal


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def key_of(secret: str, *scopes: str, **terms: Any) -> ApiKey:
    return ApiKey(name="site", digest=digest(secret), scopes=frozenset(scopes), **terms)


def refused(
    access: Access, header: bytes | None, scope: str = "decide", experiment: str | None = "a"
) -> Refusal:
    with pytest.raises(Refusal) as caught:
        access.check(header, scope, experiment)
    return caught.value


def test_keys_are_long_random_and_kept_as_digests() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch(r"dpb_[A-Za-z0-9_-]{43}", key) for key in keys)
    assert len(digest(new_key())) == 32
    assert "digest" not in repr(key_of("secret", "decide"))


@pytest.mark.parametrize("header", [b"Bearer secret", b"bearer secret", b"BEARER  secret "])
def test_the_right_key_is_let_in(header: bytes) -> None:
    key = key_of("secret", "decide")
    assert Access([key]).check(header, "decide", "a") is key


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "no-key"),
        (b"", "no-key"),
        (b"secret", "no-key"),
        (b"Basic secret", "no-key"),
        (b"Bearer", "no-key"),
        (b"Bearer ", "unknown-key"),
        (b"Bearer secre", "unknown-key"),
        (b"Bearer secret2", "unknown-key"),
        (b"Bearer secret secret", "unknown-key"),
        (b"Bearer \xff\x00", "unknown-key"),
        (b"Bearer " + digest("secret"), "unknown-key"),
    ],
)
def test_others_are_not(header: bytes | None, code: str) -> None:
    assert refused(Access([key_of("secret", "admin")]), header).code == code


@pytest.mark.parametrize("scope", ["decide", "reward", "admin", "metrics"])
def test_a_scope_allows_itself_only_and_admin_all(scope: str) -> None:
    for held in ("decide", "reward", "metrics"):
        assert key_of("secret", held).permits(scope, "a") == (scope == held)
    assert key_of("secret", "admin").permits(scope, "a")
    assert key_of("secret", "decide", "reward").permits(scope, "a") == (scope in {"decide", "reward"})


def test_a_key_of_one_experiment_is_good_for_that_one_only() -> None:
    access = Access([key_of("secret", "admin", experiments=frozenset({"a"}))])
    access.check(b"Bearer secret", "decide", "a")
    assert refused(access, b"Bearer secret", "decide", "b").code == "out-of-scope"
    # Nor for what concerns all of them, such as making keys.
    assert refused(access, b"Bearer secret", "admin", None).code == "out-of-scope"
    Access([key_of("secret", "admin")]).check(b"Bearer secret", "admin", None)


def test_a_key_is_identified_before_the_experiment_is_known() -> None:
    key = Access([key_of("secret", "reward", experiments=frozenset({"a"}))]).identify(b"Bearer secret")
    key.require("reward", "a")
    with pytest.raises(Refusal, match="Key out of scope"):
        key.require("reward", "b")


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 10), (5, 10), (20, 40)])
def test_a_rate_allows_a_burst_and_then_its_rate(rate: float, burst: int) -> None:
    clock = Clock()
    access = Access([key_of("secret", "decide", rate=rate)], clock=clock)
    for _ in range(burst):
        access.check(b"Bearer secret", "decide", "a")
    refusal = refused(access, b"Bearer secret")
    assert refusal.code == "too-many"
    assert refusal.retry_after == max(1, math.ceil(1 / rate))
    clock.now += 1.0001 / rate
    access.check(b"Bearer secret", "decide", "a")
    assert refused(access, b"Bearer secret").code == "too-many"
    clock.now += 1e6  # a long silence is worth one burst, not more
    for _ in range(burst):
        access.check(b"Bearer secret", "decide", "a")
    assert refused(access, b"Bearer secret").code == "too-many"


def test_what_is_out_of_scope_costs_a_token_too() -> None:
    access = Access([key_of("secret", "decide", rate=1)], clock=Clock())
    codes = [refused(access, b"Bearer secret", "admin").code for _ in range(11)]
    assert codes == ["out-of-scope"] * 10 + ["too-many"]


def test_one_key_does_not_use_up_anothers_rate() -> None:
    access = Access([key_of("one", "decide", rate=1), key_of("two", "decide", rate=1)], clock=Clock())
    for _ in range(10):
        access.check(b"Bearer one", "decide", "a")
    assert refused(access, b"Bearer one").code == "too-many"
    access.check(b"Bearer two", "decide", "a")


def test_replacing_keys() -> None:
    clock = Clock()
    old, limited = key_of("old", "decide"), key_of("limited", "decide", rate=1)
    access = Access([old, limited], clock=clock)
    for _ in range(10):
        access.check(b"Bearer limited", "decide", "a")
    access.replace([limited, key_of("new", "decide")])
    assert refused(access, b"Bearer old").code == "unknown-key"
    access.check(b"Bearer new", "decide", "a")
    # A key that stays has not earned a new burst by it; one whose rate is changed has.
    assert refused(access, b"Bearer limited").code == "too-many"
    access.replace([key_of("limited", "decide", rate=2)])
    access.check(b"Bearer limited", "decide", "a")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"digest": b"short"},
        {"scopes": frozenset()},
        {"scopes": frozenset({"root"})},
        {"rate": 0},
        {"rate": math.inf},
    ],
)
def test_a_key_that_cannot_be_right_is_not_made(wrong: dict[str, Any]) -> None:
    right = {"name": "site", "digest": digest("secret"), "scopes": frozenset({"decide"})}
    ApiKey(**right)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        ApiKey(**(right | wrong))
