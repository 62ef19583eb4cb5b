"""The catalogue of refusals is complete, well formed, and says what to do."""

import json
import re
from http import HTTPStatus
from typing import get_args

import pytest

from dpbandits.service.refusals import CATALOGUE, Code, Refusal

CODES = list(CATALOGUE)


def test_the_catalogue_has_every_code() -> None:
    assert set(get_args(Code)) == set(CATALOGUE)


@pytest.mark.parametrize("code", CODES)
def test_each_is_a_problem_document(code: Code) -> None:
    refusal = Refusal(code)
    assert json.loads(refusal.body()) == {
        "type": f"urn:dpbandits:problem:{code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
    }
    assert HTTPStatus(refusal.status) >= 400


@pytest.mark.parametrize("code", CODES)
def test_each_says_what_to_do_in_one_sentence(code: Code) -> None:
    problem = CATALOGUE[code]
    assert re.fullmatch(r"[A-Z`].{20,}\.", problem.detail)
    assert ". " not in problem.detail
    assert problem.title[-1] != "."


@pytest.mark.parametrize("code", CODES)
def test_headers(code: Code) -> None:
    refusal = Refusal(code)
    headers = dict(refusal.headers())
    assert len(headers) == len(refusal.headers())
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"cache-control"] == b"no-store"
    assert int(headers[b"content-length"]) == len(refusal.body())
    assert (b"retry-after" in headers) == (code in {"too-many", "busy", "not-ready", "standby"})
    assert (b"www-authenticate" in headers) == (refusal.status == 401)


@pytest.mark.parametrize(("asked", "sent"), [(0.02, 1), (1, 1), (1.2, 2), (30, 30)])
def test_retry_after_is_in_whole_seconds(asked: float, sent: int) -> None:
    refusal = Refusal("too-many", retry_after=asked)
    assert refusal.retry_after == sent
    assert (b"retry-after", b"%d" % sent) in refusal.headers()


def test_a_detail_replaces_the_sentence_and_counts_in_bytes() -> None:
    refusal = Refusal("invalid", detail="Send ε as a number.")
    body = refusal.body()
    assert json.loads(body)["detail"] == "Send ε as a number."
    assert int(dict(refusal.headers())[b"content-length"]) == len(body) > len(body.decode())


def test_allow_names_the_methods() -> None:
    assert (b"allow", b"GET, POST") in Refusal("wrong-method", allow="GET, POST").headers()


def test_an_unknown_code_cannot_be_made() -> None:
    with pytest.raises(KeyError):
        Refusal("teapot")  # type: ignore[arg-type]
