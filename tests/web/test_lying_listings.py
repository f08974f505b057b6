"""Servers that describe files and folders wrongly, or not at all."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, Outcome, copied, down, exact, first
from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp, listing, response

FILE = "<D:resourcetype/><D:getcontentlength>5</D:getcontentlength>"
FOLDER = "<D:resourcetype><D:collection/></D:resourcetype>"


def not_at_once(_: Exchange) -> Answer:
    """To a GET that asks for the beginning of a file before it is described."""
    return Answer(404)


@pytest.mark.parametrize("content", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_files_are_described_by_get_without_head(status: int, content: bytes, tmp_path: Path) -> None:
    script: Script = {"HEAD": lambda _: Answer(status), "GET": first(1, not_at_once)}
    with ScriptedHttp(script, {NAME: content}, is_dav=False) as server:
        assert down(server, tmp_path, retries=0).code == 0
        assert exact(server, tmp_path)


def test_neither_head_nor_a_range(tmp_path: Path) -> None:
    def whole(exchange: Exchange) -> Answer:
        return Answer(200, {}, exchange.server.files[NAME])

    with ScriptedHttp({"HEAD": lambda _: Answer(405), "GET": whole}, {NAME: LARGE}, is_dav=False) as server:
        assert down(server, tmp_path, retries=0).code == 0
        assert exact(server, tmp_path)


@pytest.mark.parametrize("other", [-50, 50])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_head_and_get_tell_different_sizes(content: bytes, other: int, tmp_path: Path) -> None:
    def lies(exchange: Exchange) -> Answer:
        return exchange.usual().having(Content_Length=str(len(content) + other))

    script: Script = {"HEAD": lies, "GET": first(1, not_at_once)}
    with ScriptedHttp(script, {NAME: content}, is_dav=False) as server:
        outcome = down(server, tmp_path)
        assert outcome.code == 8, outcome
        assert str(len(content) + other) in outcome.text


def test_a_server_behind_a_proxy_that_maps_a_folder_to_it(tmp_path: Path) -> None:
    """It knows nothing of that folder."""

    def mapped(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        body = answer.body.replace(b">/folder/", b">/").replace(b">/folder<", b">/<")
        assert exchange.asked.path == "/" or body != answer.body or answer.status == 404
        return replace(answer, body=body)

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"PROPFIND": mapped}, {NAME: SMALL, "/folder/other": b"12345"}) as server:
        outcome = copied(f"{server.dav}{NAME}", tmp_path / "to", retries=0)
        assert outcome.code == 0, outcome
        outcome = copied(tmp_path / "src", f"{server.dav}/folder/", retries=0)
        assert outcome.code == 0, outcome
        assert server.files["/folder/src"] == SMALL
    assert (tmp_path / "to").read_bytes() == SMALL


@pytest.mark.parametrize("about", ["/folder/other", "/folder", f"{NAME}/x", "/elsewhere/file", ""])
def test_an_answer_about_another_name_is_not_believed(about: str, tmp_path: Path) -> None:
    def lies(exchange: Exchange) -> Answer:
        return listing(response(about, FILE)) if exchange.asked.path == NAME else exchange.usual()

    with ScriptedHttp({"PROPFIND": lies}, {NAME: SMALL, "/folder/other": b"12345"}) as server:
        outcome = copied(f"{server.dav}{NAME}", tmp_path / "to", retries=0)
    assert outcome.code == 6, outcome
    assert "about other names" in outcome.text
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("other", [-50, 50])
def test_listings_and_get_tell_different_sizes(other: int, tmp_path: Path) -> None:
    def lies(exchange: Exchange) -> Answer:
        answer, told = exchange.usual(), str(len(SMALL) + other).encode()
        return replace(answer, body=answer.body.replace(str(len(SMALL)).encode(), told))

    with ScriptedHttp({"PROPFIND": lies}, {NAME: SMALL}) as server:
        outcome = copied(f"{server.dav}/folder", tmp_path / "to", recursive=True)
    assert outcome.code == 8, outcome
    assert not (tmp_path / "to/file").exists()


@pytest.mark.parametrize("size", [None, 5])
def test_a_file_of_which_nobody_tells_the_size(size: int | None, tmp_path: Path) -> None:
    """It is read to its end."""

    def says_nothing(exchange: Exchange) -> None:
        body = exchange.server.files[NAME] if exchange.asked.method == "GET" else b""
        exchange.bye(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)

    content = SMALL[:size]
    with ScriptedHttp(
        dict.fromkeys(("GET", "HEAD"), says_nothing), {NAME: content}, is_dav=False, tls=True
    ) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 500, 501])
def test_options_refused(status: int, tmp_path: Path) -> None:
    with ScriptedHttp({"OPTIONS": lambda _: Answer(status)}, {NAME: SMALL}) as server:
        assert down(server, tmp_path, retries=0).code == 0
        assert exact(server, tmp_path)


# --- folders -------------------------------------------------------------------------------------------


def folder(answer: Callable[[Exchange], Answer | None], tmp_path: Path, **options: int) -> Outcome:
    """Copy a folder, of which listings of what is in it are answered so."""

    def lists(exchange: Exchange) -> Answer | None:
        if exchange.asked.headers["depth"] != "1":
            return exchange.usual()
        exchange.body()
        return answer(exchange)

    with ScriptedHttp({"PROPFIND": lists}, {NAME: b"12345"}) as server:
        return copied(f"{server.dav}/folder", tmp_path / "to/here", recursive=True, **options)


HREFS = [
    "/folder/../../outside",
    "/folder/%2e%2e/outside",
    "/folder/..%2foutside",
    "/folder/below/below",
    "/elsewhere",
    "//evil/folder/file2",
    "file2",
    "/folder/nul%00",
    "/folder/file2?query",
    "",
]


@pytest.mark.parametrize("href", HREFS)
def test_hrefs_that_are_no_names_in_the_folder(href: str, tmp_path: Path) -> None:
    """They are left out, and said; the others are copied; nothing is written elsewhere."""

    def lies(_: Exchange) -> Answer:
        strange = response("HREF", FILE).replace("HREF", href)
        return listing(response("/folder/", FOLDER), strange, response(NAME, FILE))

    outcome = folder(lies, tmp_path)
    assert outcome.code == 10, outcome
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"to/here/file"}


def test_ten_thousand_names(tmp_path: Path) -> None:
    names = [f"/folder/{n}" for n in range(10_000)]

    def many(_: Exchange) -> Answer:
        return listing(*(response(name, FILE) for name in names))

    assert folder(many, tmp_path, dry_run=True).code == 0


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda body: body[: len(body) // 2],
    "of another language": lambda _: b"<!DOCTYPE html><html><body>Please log in</body></html>",
    "without a type": lambda _: b"<html><body>Please log in</body></html>",
    "of no language": lambda _: b"Please log in\x1b[2J",
    "empty": lambda _: b"",
    "with entities": lambda body: b'<!DOCTYPE x [<!ENTITY a "aaaa">]>' + body,
}


@pytest.mark.parametrize("kind", WRONG)
def test_listings_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    def wrong(exchange: Exchange) -> Answer:
        answer = listing(response("/folder/", FOLDER), response(NAME, FILE))
        del exchange
        return replace(answer, body=WRONG[kind](answer.body))

    outcome = folder(wrong, tmp_path, retries=0)
    assert outcome.code == 6, outcome
    assert "PROPFIND cannot be read" in outcome.text
    assert not (tmp_path / "to/here/file").exists()


REFUSED = {200: 3, 401: 5, 403: 3, 405: 3, 500: 6, 501: 3, 503: 6}


@pytest.mark.parametrize("status", REFUSED)
def test_listings_refused(status: int, tmp_path: Path) -> None:
    outcome = folder(lambda _: Answer(status, {}, b"<html>"), tmp_path, retries=0)
    assert outcome.code == REFUSED[status], outcome
    assert "/folder" in outcome.text


def test_a_listing_that_is_lost_on_the_way(tmp_path: Path) -> None:
    def cut(exchange: Exchange) -> Answer:
        answer = listing(response("/folder/", FOLDER), response(NAME, FILE))
        del exchange
        return replace(answer.having(Content_Length=str(len(answer.body) + 1)), ends=True)

    calls: Scripted = first(1, cut)
    assert folder(calls, tmp_path, retries=1).code == 0
    assert (tmp_path / "to/here/file").read_bytes() == b"12345"


@pytest.mark.parametrize(("status", "code"), [(401, 5), (403, 3), (503, 6)])
def test_nothing_is_made_here_for_a_folder_that_is_not_listed(status: int, code: int, tmp_path: Path) -> None:
    def closed(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        return Answer(status) if exchange.asked.headers["depth"] == "1" else answer

    with ScriptedHttp({"PROPFIND": closed}, {NAME: SMALL}) as server:
        outcome = copied(f"{server.dav}/folder/", tmp_path / "to", recursive=True, retries=0)
    assert outcome.code == code, outcome
    assert not (tmp_path / "to").exists()


def test_an_empty_folder_is_copied(tmp_path: Path) -> None:
    with ScriptedHttp({}, {}) as server:
        server.folders.add("/folder")
        assert copied(f"{server.dav}/folder/", tmp_path / "to", recursive=True).code == 0
    assert (tmp_path / "to").is_dir()


def test_a_folder_in_which_only_another_one_is_not_listed(tmp_path: Path) -> None:
    def closed(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        return Answer(403) if exchange.asked.path == "/folder/sub/" else answer

    with ScriptedHttp({"PROPFIND": closed}, {"/folder/sub/file": SMALL}) as server:
        server.folders.add("/folder")
        outcome = copied(f"{server.dav}/folder/", tmp_path / "to", recursive=True)
    assert outcome.code in (3, 10), outcome
    assert (tmp_path / "to/sub").is_dir()
