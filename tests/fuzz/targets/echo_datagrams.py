"""Datagrams of probes: what `mpx serve` is asked, and what a copy is answered."""

from mpx.endpoints.ftp.extensions import echo

TOKEN = bytes(range(8))
ASKED = echo.question(TOKEN, 7)
PULSE = echo.ask_for_pulse(TOKEN, 8, 0.02, 0.5)
SEEDS = [ASKED, echo.answer(ASKED, 0.5), PULSE, echo.answer_pulse(PULSE, 0.25), b"", ASKED[:-1]]
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
    pulse = echo.parse_pulse_request(data)
    if pulse is not None:
        assert 0 < pulse.seconds <= echo.MOST_PULSE_S
        assert echo.LEAST_PULSE_SHARE <= pulse.share < 1
        assert echo.parse_pulse_request(echo.answer_pulse(data, 0.0)) is None
    answer = echo.parse_pulse_answer(data, TOKEN)
    assert answer is None or 0 <= answer[1] <= 1
