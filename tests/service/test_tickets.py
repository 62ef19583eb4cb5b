"""Tickets: what was given out is taken back, and nothing else."""

import base64
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbandits.service.tickets import Tickets

KEY = bytes(range(32))
TICKETS = Tickets(KEY)


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**48 - 1))
def test_what_was_given_is_read(experiment: int, number: int) -> None:
    ticket = TICKETS.give(experiment, number)
    assert len(ticket) == 32 and ticket.isascii()
    assert TICKETS.read(ticket) == (experiment, number)


@given(st.integers(0, 31), st.integers(0, 63))
def test_one_character_changed_is_refused(place: int, letter: int) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    ticket = TICKETS.give(3, 70_000)
    changed = ticket[:place] + letters[letter] + ticket[place + 1 :]
    assert TICKETS.read(changed) == ((3, 70_000) if changed == ticket else None)


@given(st.one_of(st.text(max_size=40), st.binary(max_size=40), st.integers(), st.none(), st.floats()))
def test_anything_else_is_refused(given: object) -> None:
    assert TICKETS.read(given) is None


@pytest.mark.parametrize("cut", range(32))
def test_what_was_cut_short_is_refused(cut: int) -> None:
    ticket = TICKETS.give(1, 1)
    assert TICKETS.read(ticket[:cut]) is None and TICKETS.read(ticket + ticket[:cut] + "A") is None


def test_the_ticket_of_another_key_or_with_a_guessed_code_is_refused() -> None:
    assert TICKETS.read(Tickets(secrets.token_bytes(32)).give(1, 1)) is None
    body = (1).to_bytes(3, "big") + (1).to_bytes(6, "big")
    for _ in range(100):
        assert TICKETS.read(base64.urlsafe_b64encode(body + secrets.token_bytes(15)).decode()) is None


def test_a_ticket_is_good_for_its_own_round_and_experiment_only() -> None:
    """The code of one does not fit to the body of another."""
    one, other = (base64.urlsafe_b64decode(TICKETS.give(*of)) for of in ((1, 2), (2, 1)))
    assert TICKETS.read(base64.urlsafe_b64encode(one[:9] + other[9:]).decode()) is None


def test_a_number_that_has_no_room_is_an_error_and_no_other_ticket() -> None:
    for experiment, number in ((2**24, 0), (0, 2**48), (-1, 0), (0, -1)):
        with pytest.raises(OverflowError):
            TICKETS.give(experiment, number)


@pytest.mark.parametrize(
    "ticket", ["+" * 32, "é" * 32, "A" * 31 + "=", " " * 32, "\ud800" * 32, "//" * 16]
)
def test_other_alphabets_are_refused(ticket: str) -> None:
    assert TICKETS.read(ticket) is None
