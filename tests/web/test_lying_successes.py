"""Servers that answer with a success which is not the file, or that keep WebDAV for others."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, copied, down, exact, first
from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp, listing

import mpx

LATER = b"being staged; come back later"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(LATER), LATER)


def both(answer: Scripted) -> Script:
    return {"GET": answer, "HEAD": answer}


@pytest.mark.parametrize(
    ("headers", "body"), [({}, LATER), ({"Transfer-Encoding": "chunked"}, CHUNKED)], ids=["length", "chunks"]
)
def test_a_message_that_the_file_comes_later_is_not_the_file(
    headers: Mapping[str, str], body: bytes, tmp_path: Path
) -> None:
    with ScriptedHttp(both(lambda _: Answer(202, headers, body)), {NAME: SMALL}, is_dav=False) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 6, outcome
    assert "202" in outcome.text and "later" in outcome.text


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_file_that_comes_later_is_waited_for(content: bytes, tmp_path: Path) -> None:
    script = {
        method: first(2, lambda _: Answer(202, {"Retry-After": "0"}, LATER)) for method in ("GET", "HEAD")
    }
    with ScriptedHttp(script, {NAME: content}, is_dav=False) as server:
        assert down(server, tmp_path, retries=5).code == 0
        assert exact(server, tmp_path)


@pytest.mark.parametrize("status", [204, 205, 226])
def test_other_successes_bring_no_file(status: int, tmp_path: Path) -> None:
    with ScriptedHttp(both(lambda _: Answer(status)), {NAME: SMALL}, is_dav=False) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 3, outcome
    assert str(status) in outcome.text


def test_a_part_where_all_was_asked_for_is_not_all(tmp_path: Path) -> None:
    """Also where nothing else tells how long the file is."""

    def part(exchange: Exchange) -> Answer:
        if exchange.asked.method == "HEAD":
            return Answer(200, {"Transfer-Encoding": "chunked"})
        where = {"Content-Range": f"bytes 0-99/{len(SMALL)}", "Transfer-Encoding": "chunked"}
        return Answer(206, where, b"64\r\n" + SMALL[:100] + b"\r\n0\r\n\r\n")

    script = {**both(part), "OPTIONS": lambda _: Answer(200, ends=True)}
    with ScriptedHttp(script, {NAME: SMALL}, is_dav=False) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 3, outcome
    assert "a part of it" in outcome.text


def test_all_as_a_part_where_all_was_asked_for(tmp_path: Path) -> None:
    content = SMALL[:1000]

    def all_of_it(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        if exchange.asked.range or answer.status != 200:
            return answer
        where = f"bytes 0-{len(content) - 1}/{len(content)}"
        return replace(answer.having(Content_Range=where), status=206)

    with ScriptedHttp({"GET": all_of_it}, {NAME: content, "/folder/other": content}) as server:
        mpx.copy([f"{server.origin}{NAME}", f"{server.origin}/folder/other"], f"{tmp_path}/to/")
        assert any(asked.range is None for asked in server.asked("GET"))
    assert (tmp_path / "to/file").read_bytes() == content


# --- WebDAV for authors only ---------------------------------------------------------------------------


def propfind(status: int, body: bytes = b"") -> Script:
    def refuses(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(status, {}, body)

    return {"PROPFIND": refuses}


@pytest.mark.parametrize("content", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404])
def test_a_file_that_webdav_does_not_describe(status: int, content: bytes, tmp_path: Path) -> None:
    """The server says that it speaks WebDAV, and lets everybody read the file by GET only."""
    with ScriptedHttp(propfind(status, b"<html>"), {NAME: content}) as server:
        assert down(server, tmp_path, retries=0).code == 0
        assert exact(server, tmp_path)


def start_page(exchange: Exchange) -> Answer:
    """Answer as sites do whose pages are made by a program that the browser runs."""
    answer = exchange.usual()
    return Answer(200, {}, b"<html>start") if answer.status == 404 else answer


@pytest.mark.parametrize(
    "missing", ["/folder/other", "/other", "/no/such/folder/other", "/folder/file/other"]
)
@pytest.mark.parametrize("says", [404, 410, 207])
def test_a_page_for_every_name_is_no_file_where_webdav_finds_none(
    missing: str, says: int, tmp_path: Path
) -> None:
    def propfind(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        if answer.status != 404:
            return answer
        if says != 207:
            return Answer(says)
        status = "<D:status>HTTP/1.1 404 Not Found</D:status>"
        return listing(f"<D:response><D:href>{exchange.asked.target}</D:href>{status}</D:response>")

    script: Script = {**both(start_page), "PROPFIND": propfind}
    with ScriptedHttp(script, {NAME: SMALL}) as server:
        alone = copied(f"{server.origin}{missing}", tmp_path / "alone", retries=0)
        with pytest.raises(mpx.SourceError, match="does not exist"):
            mpx.copy([f"{server.origin}{NAME}", f"{server.origin}{missing}"], f"{tmp_path}/to/")
    assert alone.code == 3, alone
    assert "does not exist" in alone.text
    assert not (tmp_path / "alone").exists() and not (tmp_path / "to").exists()


def test_files_of_a_list_that_webdav_does_not_describe(tmp_path: Path) -> None:
    with ScriptedHttp(propfind(404), {NAME: SMALL, "/folder/other": LARGE}) as server:
        mpx.copy([f"{server.origin}{NAME}", f"{server.origin}/folder/other"], f"{tmp_path}/to/")
    assert (tmp_path / "to/file").read_bytes() == SMALL
    assert (tmp_path / "to/other").read_bytes() == LARGE


@pytest.mark.parametrize(("status", "code"), [(401, 5), (403, 3), (404, 3)])
def test_what_neither_webdav_nor_get_has_is_refused_as_webdav_does(
    status: int, code: int, tmp_path: Path
) -> None:
    script = {**propfind(status), **both(lambda _: Answer(404))}
    with ScriptedHttp(script, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, retries=0)
    assert outcome.code == code, outcome


def test_who_asks_for_webdav_is_told_what_that_says(tmp_path: Path) -> None:
    with ScriptedHttp(propfind(403), {NAME: SMALL}) as server:
        outcome = copied(f"{server.dav}{NAME}", tmp_path / "file", retries=0)
    assert outcome.code == 3, outcome
    assert "403" in outcome.text
