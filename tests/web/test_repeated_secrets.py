"""Servers that repeat what lets us in, wherever an answer has room for it: nobody is shown it."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from web.lying import NAME, SECRET, SMALL, Outcome, copied, down
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp

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


PASSWORD = f"{SECRET} ü/%&"


@pytest.mark.parametrize(
    "form",
    [
        PASSWORD.encode(),
        f"alice:{PASSWORD}".encode(),
        quote(PASSWORD, safe="").encode(),
    ],
    ids=["plain", "with its user", "as in URLs"],
)
def test_nor_is_a_password_that_is_told_decoded(
    form: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPX_PASSWORD", PASSWORD)
    answer = b"HTTP/1.1 403 not " + form + b"\r\nContent-Length: 0\r\n\r\n"
    script: dict[str, Scripted] = {"PROPFIND": lambda exchange: exchange.bye(answer)}
    with ScriptedHttp(script, {NAME: SMALL}, tls=True) as server:
        source = f"{server.dav}{NAME}".replace("://", "://alice@")
        assert shows_it_hidden(copied(source, tmp_path / "file", retries=0))


def test_nor_a_token_in_a_url_that_the_head_of_a_cluster_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As XRootD does; its data server repeats the request, as it came and decoded."""
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    for told in (str, unquote, lambda target: unquote(target).rpartition(" ")[2]):
        with ScriptedHttp(tls=True) as data, ScriptedHttp(files={NAME: SMALL}, tls=True) as head:
            place = f"{data.origin}{NAME}?authz=Bearer%20{SECRET}&xrdhttptime=1"

            def refuse(exchange: Exchange, told: Callable[[str], str] = told) -> None:
                reason = told(exchange.asked.target.partition("&")[0])
                exchange.bye(f"HTTP/1.1 403 {reason}\r\nContent-Length: 0\r\n\r\n".encode())

            head.script = {"GET": lambda _, place=place: Answer(307, {"Location": place})}
            data.script = {"GET": refuse}
            outcome = copied(f"{head.dav}{NAME}", tmp_path / "file", retries=0)
            assert outcome.code and shows_it_hidden(outcome), outcome
            assert SECRET in data.asked("GET")[0].target


@pytest.mark.parametrize("signature", [SECRET, f"{SECRET}%2Bx", f"{SECRET}/+="])
@pytest.mark.parametrize("told", [str, unquote])
def test_nor_the_signature_of_a_url(signature: str, told: Callable[[str], str], tmp_path: Path) -> None:
    def refuse(exchange: Exchange) -> None:
        reason = told(exchange.asked.target)
        exchange.bye(f"HTTP/1.1 403 no {reason}\r\nContent-Length: 0\r\n\r\n".encode())

    with ScriptedHttp({"GET": refuse, "HEAD": refuse}, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, f"?signature={signature}", retries=0)
        assert outcome.code and shows_it_hidden(outcome), outcome
