"""Datagrams of probes: what `mpx serve` is asked, and what a copy is answered."""

from mpx.endpoints.ftp.extensions import echo

TOKEN = bytes(range(8))
ASKED = echo.question(TOKEN, 7)
DIP = echo.ask_to_dip(TOKEN, 8, 0.02, 0.5)
SEEDS = [ASKED, echo.answer(ASKED, 0.5), DIP, echo.answer_dip(DIP, 0.25), b"", ASKED[:-1]]
ALLOWED = ()


def parse(data: bytes) -> None:
    """Read it as a question, as an answer, and as both about slower data; an answer is never a question."""
    echo.token_in(data)
    if echo.is_question(data):
        answered = echo.answer(data, 0.0)
        assert not echo.is_question(answered)
        assert len(answered) == len(data)
    found = echo.parse_answer(data)
    assert found is None or 0 <= found.held_s < 3600
    dip = echo.parse_dip(data)
    if dip is not None:
        assert 0 < dip.seconds <= echo.MOST_DIP_S
        assert echo.LEAST_DIP_SHARE <= dip.share < 1
        assert echo.parse_dip(echo.answer_dip(data, 0.0)) is None
    dipped = echo.parse_dipped(data, TOKEN)
    assert dipped is None or 0 <= dipped[1] <= 1
