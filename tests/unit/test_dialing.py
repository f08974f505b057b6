"""Tickets and openings of data connections: what one side writes the other reads, and nothing else holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.extensions import dialing
from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket, new_ticket, parse_opening, parse_ticket

TICKETS = st.builds(Ticket, st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32))
NUMBERS = st.integers(0, 2**32 - 1)


@given(TICKETS)
def test_a_ticket_is_read_as_it_was_written(ticket: Ticket) -> None:
    assert parse_ticket(ticket.text) == ticket


@given(TICKETS, st.sampled_from(Direction), NUMBERS, st.floats(0, 1e9))
def test_an_opening_is_read_as_it_was_written(
    ticket: Ticket, direction: Direction, number: int, age_s: float
) -> None:
    sent = ticket.opening(direction, number, age_s)
    opening = parse_opening(sent)
    assert (opening.direction, opening.ticket_id, opening.number) == (direction, ticket.id, number)
    assert opening.age_s == pytest.approx(min(age_s, (2**32 - 1) / 1000), abs=0.001)
    assert opening.is_of(ticket)
    assert not opening.is_of(Ticket(ticket.id, bytes(32)) if any(ticket.key) else new_ticket())


@given(st.integers(0, dialing.BYTES - 1), st.integers(1, 255))
def test_no_byte_of_an_opening_can_be_changed(at: int, change: int) -> None:
    ticket = new_ticket()
    sent = bytearray(ticket.opening(Direction.UP, 7, 1.0))
    sent[at] ^= change
    try:
        opening = parse_opening(bytes(sent))
    except ValueError:
        return
    assert not opening.is_of(ticket)


@given(st.binary(max_size=100))
def test_noise_is_no_opening(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an opening"):
        parse_opening(data)


@pytest.mark.parametrize("text", ["", "MPX-DATA", "MPX-DATA 00 11", f"MPX-DATA {'0' * 32} {'g' * 64}"])
def test_what_is_no_ticket(text: str) -> None:
    with pytest.raises(ValueError, match="no ticket"):
        parse_ticket(text)


def test_a_ticket_is_never_shown() -> None:
    ticket = new_ticket()
    assert ticket.key.hex() not in repr(ticket)
    assert repr(ticket.key) not in repr(ticket)
