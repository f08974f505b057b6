"""What strangers say first: openings and tickets, requests and answers over ssh, tokens, certificates."""

from mpx.endpoints.ftp.extensions import dialing, stdio
from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.endpoints.ftp.token import parse_token
from mpx.errors import UsageError
from mpx.net.der import public_key_info

TICKET = Ticket(bytes(16), bytes(32))
SEEDS = [
    TICKET.opening(Direction.UP, 1, 2.0),
    TICKET.text.encode(),
    stdio.encode_request(stdio.ServeRequest("pem", "secret", (50000, 51000))),
    stdio.encode_request(stdio.LaneRequest("/tmp/x", stdio.DATA)),
    stdio.encode_ready(stdio.Ready("/tmp/x", "192.0.2.7", 2811)),
    b"mpx1." + b"k" * 43 + b"." + b"s" * 43,
    bytes.fromhex("3012300e 0201 01 3000 3000 3000 3000 3000 0300".replace(" ", "")),
]
ALLOWED = ()


def parse(data: bytes) -> None:
    """Read it as each of them; an opening that was not made with the ticket is not of it."""
    text = data.decode("utf-8", "surrogateescape")
    for read, given in (
        (_opening, data),
        (dialing.parse_ticket, text),
        (stdio.parse_length, data[:8]),
        (stdio.parse_request, data[8:]),
        (stdio.parse_ready, data),
        (public_key_info, data),
    ):
        try:
            read(given)  # type: ignore[operator]
        except ValueError as error:
            assert len(str(error)) < 200
    try:
        parse_token(text, "here")
    except UsageError as error:
        assert len(str(error)) < 200


def _opening(data: bytes) -> None:
    opening = dialing.parse_opening(data)
    if opening.is_of(TICKET):
        assert data == TICKET.opening(opening.direction, opening.number, opening.age_s)
