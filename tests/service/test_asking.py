"""What a request asks for: who is meant, with which context; and what people are told in return."""

import asyncio
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from writers import ARMS, Hand, code_of, leading, woken_by

from dpbandits.problems import LinearContexts
from dpbandits.service.commands import Decide
from dpbandits.service.desk import read_context
from dpbandits.service.hot import _decide_request
from dpbandits.service.refusals import Refusal
from dpbandits.service.run import open_keyring, open_store
from dpbandits.service.running import Running, begin_desk
from dpbandits.service.sealing import Seal
from dpbandits.service.service import Service
from dpbandits.service.terms import Terms


def test_a_name_in_two_spellings_is_one_person(tmp_path: Path) -> None:
    terms = Terms.read({"name": "a", "actions": ["x", "y"], "rounds_per_person": 1})
    store = open_store(str(tmp_path / "service.db"))
    one = Running(1, terms)
    one.take(begin_desk(terms), Seal(1, 0, bytes(32)))

    async def tokens() -> list[bytes]:
        service = Service(store, open_keyring(store, tmp_path / "keyring"))
        names = ("Andr\u00e9", "Andre\u0301", "Andre")
        return [service.decide_command(one, "key", name, None).token for name in names]

    composed, decomposed, other = asyncio.run(tokens())
    store.close()
    assert composed == decomposed != other


@pytest.mark.parametrize("value", [2**64, -(2**64), 10**400, None, 1e308], ids="ABCDE")
def test_whether_a_round_takes_place_does_not_depend_on_a_feature(value: float | None) -> None:
    problem = LinearContexts(dim=2, max_norm=1.0)
    offered, _ = read_context(problem, [[value, 0.0], [0.0, 1.0]])
    assert isinstance(offered, np.ndarray) and offered.shape == (2, 2)
    assert math.isinf(offered[0, 0]) == (value == 10**400)


@pytest.mark.parametrize("text", [b"NaN", b"-Infinity", b"1e400", b"0.5"])
def test_nor_on_how_it_is_written(text: bytes) -> None:
    asked = _decide_request(b'{"request": "r", "context": [[' + text + b", 0.0]]}")
    assert asked.context[0][1] == 0.0
    for broken in (
        b'{"request": "r", "context": [[NaN}',
        b'{"request": NaN}',
        b'{"context": NaN, "x": 1}',
    ):
        with pytest.raises(Refusal):
            _decide_request(broken)


def test_what_was_decided_for_one_person_is_not_told_to_another(tmp_path: Path) -> None:
    with leading(tmp_path, Hand(), {**ARMS, "rounds_per_person": 1}) as writer:

        def asked(token: bytes) -> Any:
            return woken_by(writer, Decide(1, bytes(16), token * 16, None, None))

        first = asked(b"a")
        assert asked(b"a") == (first.opened, True)
        assert code_of(asked(b"b")) == "invalid"
    with leading(tmp_path, Hand()) as writer:
        assert asked(b"a") == (first.opened, True)
        assert code_of(asked(b"b")) == "invalid"
