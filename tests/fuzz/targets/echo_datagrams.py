"""Datagrams of probes: what `mpx serve` is asked, and what a copy is answered."""

from mpx import echo_wire

TOKEN = bytes(range(8))
ASKED = echo_wire.question(TOKEN, 7)
DIP = echo_wire.ask_to_dip(TOKEN, 8, 0.02, 0.5)
SEEDS = [ASKED, echo_wire.answer(ASKED, 0.5), DIP, echo_wire.answer_dip(DIP, 0.25), b"", ASKED[:-1]]
ALLOWED = ()


def parse(data: bytes) -> None:
    """Read it as a question, as an answer, and as both about slower data; an answer is never a question."""
    echo_wire.token_in(data)
    if echo_wire.is_question(data):
        answered = echo_wire.answer(data, 0.0)
        assert not echo_wire.is_question(answered)
        assert len(answered) == len(data)
    found = echo_wire.parse_answer(data)
    assert found is None or 0 <= found.held_s < 3600
    dip = echo_wire.parse_dip(data)
    if dip is not None:
        assert 0 < dip.seconds <= echo_wire.MOST_DIP_S
        assert echo_wire.LEAST_DIP_SHARE <= dip.share < 1
        assert echo_wire.parse_dip(echo_wire.answer_dip(data, 0.0)) is None
    dipped = echo_wire.parse_dipped(data, TOKEN)
    assert dipped is None or 0 <= dipped[1] <= 1
