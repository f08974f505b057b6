"""Servers that repeat what lets us in, wherever an answer has room for it: nobody is shown it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from web.lying import NAME, SECRET, SMALL, Outcome, copied
from web.scripted_http import Exchange, ScriptedHttp

PLACES = [
    "HTTP/1.1 403 {}\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 500 no: {}\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n{}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: {}\r\n\r\n",
    "HTTP/1.1 307 Go\r\nContent-Length: 0\r\nLocation: http://localhost:1/{}\r\n\r\n",
    "HTTP/1.1 307 Go\r\nContent-Length: 0\r\nLocation: ftp://localhost:1/{}\r\n\r\n",
]


def repeats(place: str) -> Callable[[Exchange], None]:
    def answer(exchange: Exchange) -> None:
        exchange.bye(place.format(exchange.asked.headers["authorization"]).encode())

    return answer


def shows_it_hidden(outcome: Outcome) -> bool:
    """Copies that tell the secret fail in `copied`."""
    return "[secret]" in outcome.text.replace("%5Bsecret%5D", "[secret]")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["PROPFIND", "GET"])
def test_no_answer_shows_the_token_again(
    method: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    with ScriptedHttp({method: repeats(place)}, {NAME: SMALL}, tls=True) as server:
        outcome = copied(f"{server.dav}{NAME}", tmp_path / "file", retries=0)
        assert outcome.code and shows_it_hidden(outcome), outcome
        assert server.asked(method)[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_token_that_looks_like_a_length_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEARER_TOKEN", str(len(SMALL))[0])
    with ScriptedHttp({}, {NAME: SMALL}, tls=True) as server:
        assert copied(f"{server.dav}{NAME}", tmp_path / "file", retries=0).code == 0


def test_a_password_is_not_shown_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_PASSWORD", SECRET)
    with ScriptedHttp({"PROPFIND": repeats(PLACES[0])}, {NAME: SMALL}, tls=True) as server:
        source = f"{server.dav}{NAME}".replace("://", "://alice@")
        outcome = copied(source, tmp_path / "file", retries=0)
        sent = server.asked("PROPFIND")[0].headers["authorization"].split()[1]
        assert sent not in outcome.text and shows_it_hidden(outcome)
