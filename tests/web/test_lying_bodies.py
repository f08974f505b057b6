"""Downloads whose bodies are not what their heads say: the bytes are right, or there is a clear error."""

from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, down, exact
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp

SIZES = pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
PIECE = 7000  # of a body in chunks


def without_length(exchange: Exchange) -> bytes:
    """What the server says, where the connection is to end behind it."""
    answer = exchange.usual().having(Connection="close", Content_Length="")
    return answer.packed().replace(b"Content-Length: \r\n", b"")


def in_chunks(exchange: Exchange, trailer: bytes = b"") -> bytes:
    answer = exchange.usual()
    pieces = [answer.body[at : at + PIECE] for at in range(0, len(answer.body), PIECE)]
    body = b"".join(b"%x;of=%d\r\n%b\r\n" % (len(each), PIECE, each) for each in pieces)
    body += b"0\r\n" + trailer + b"\r\n"
    return replace(answer.having(Transfer_Encoding="chunked"), body=body).packed()


def with_length(exchange: Exchange, length: int, body: bytes) -> Answer:
    return replace(exchange.usual().having(Content_Length=str(length)), body=body, ends=True)


@SIZES
@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_without_length_the_end_of_the_connection_is_the_end(
    tls: bool, content: bytes, tmp_path: Path
) -> None:
    script: dict[str, Scripted] = {"GET": lambda exchange: exchange.bye(without_length(exchange))}
    with ScriptedHttp(script, {NAME: content}, tls=tls) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)


@SIZES
def test_an_end_without_close_notify_is_none(content: bytes, tmp_path: Path) -> None:
    """Even where all has come: whoever cuts the connection would make short files of any length."""

    def cut(exchange: Exchange) -> None:
        exchange.say(without_length(exchange)[:-100])
        exchange.is_over = True

    with ScriptedHttp({"GET": cut}, {NAME: content}, tls=True) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 6
    assert "close_notify" in outcome.text


@SIZES
def test_an_early_end_in_the_clear_is_asked_about_again(content: bytes, tmp_path: Path) -> None:
    script: dict[str, Scripted] = {"GET": lambda exchange: exchange.bye(without_length(exchange)[:-100])}
    with ScriptedHttp(script, {NAME: content}) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 6
    assert "100 bytes before the end" in outcome.text


@SIZES
def test_a_body_that_is_shorter_than_it_says(content: bytes, tmp_path: Path) -> None:
    def shorter(exchange: Exchange) -> Answer:
        body = exchange.usual().body
        return with_length(exchange, len(body), body[:-10])

    with ScriptedHttp({"GET": shorter}, {NAME: content}) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 6
    assert "10 bytes before its end" in outcome.text


@SIZES
def test_what_follows_a_body_is_not_part_of_it(content: bytes, tmp_path: Path) -> None:
    def longer(exchange: Exchange) -> Answer:
        body = exchange.usual().body
        return replace(with_length(exchange, len(body), body + b"more than was said"), ends=False)

    with ScriptedHttp({"GET": longer}, {NAME: content}) as server:
        assert down(server, tmp_path, retries=4).code == 0
        assert exact(server, tmp_path)


def test_a_body_that_does_not_end(tmp_path: Path) -> None:
    """Nothing says how long it is, and more comes than the part that was asked for."""

    def longer(exchange: Exchange) -> None:
        exchange.bye(without_length(exchange) + bytes(1 << 20))

    with ScriptedHttp({"GET": longer}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path)
        assert outcome.code == 0
        assert exact(server, tmp_path)
    assert any("more" in note and "than it was asked for" in note for note in outcome.notes)


@SIZES
@pytest.mark.parametrize("trailer", [b"", b"Digest: none\r\nX-More: of them\r\n"], ids=["plain", "trailers"])
def test_chunks(trailer: bytes, content: bytes, tmp_path: Path) -> None:
    script: dict[str, Scripted] = {"GET": lambda exchange: exchange.say(in_chunks(exchange, trailer))}
    with ScriptedHttp(script, {NAME: content}) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)
        assert len({asked.connection for asked in server.asked("GET")}) < len(server.asked("GET")) or (
            content == SMALL
        )


WRONG_CHUNKS = {
    "cut off": lambda sent: sent[:20_000],
    "without end": lambda sent: sent.removesuffix(b"0\r\n\r\n"),
    "of another size": lambda sent: sent.replace(b"1b58;", b"1b57;", 1),
    "of no size": lambda sent: sent.replace(b"1b58;", b"-1b58;", 1),
    "of an endless size": lambda sent: sent.replace(b"1b58;", b"f" * 70_000 + b";", 1),
    "with endless trailers": lambda sent: sent.removesuffix(b"\r\n") + b"X: y\r\n" * 5000,
}


@pytest.mark.parametrize("kind", WRONG_CHUNKS)
def test_chunks_that_are_wrong(kind: str, tmp_path: Path) -> None:
    def wrong(exchange: Exchange) -> None:
        exchange.say(WRONG_CHUNKS[kind](in_chunks(exchange)))
        exchange.is_over = True

    with ScriptedHttp({"GET": wrong}, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, retries=0)
    assert outcome.code == 6, outcome
    assert str(server.port) in outcome.text


@SIZES
def test_gzip_that_nobody_asked_for(content: bytes, tmp_path: Path) -> None:
    def packed(exchange: Exchange) -> Answer:
        assert exchange.asked.headers["accept-encoding"] == "identity"
        return Answer(200, {"Content-Encoding": "gzip"}, b"\x1f\x8b of another length")

    with ScriptedHttp({"GET": packed}, {NAME: content}) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 3
    assert "encoded (gzip)" in outcome.text


def test_gzip_of_unknown_length(tmp_path: Path) -> None:
    def packed(exchange: Exchange) -> None:
        exchange.bye(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n\x1f\x8b")

    with ScriptedHttp({"GET": packed, "HEAD": packed}, {NAME: SMALL}, is_dav=False) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 3
    assert "encoded (gzip)" in outcome.text


def test_a_packed_file_of_the_length_that_is_told(tmp_path: Path) -> None:
    """Some servers tell so of every .gz file: it is stored as it comes."""

    def packed(exchange: Exchange) -> Answer:
        return exchange.usual().having(Content_Encoding="x-gzip")

    with ScriptedHttp({"GET": packed, "HEAD": packed}, {NAME: SMALL}) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)
