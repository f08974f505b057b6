"""URLs as users have them: with encoded slashes, signed for one file, of hosts with other letters."""

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from web.lying import LARGE, NAME, SECRET, SMALL, Outcome, copied, down, exact, first
from web.scripted_http import Answer, Exchange, Script, ScriptedHttp

import mpx
from mpx.commands.listing import list_command
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.endpoint import WebEndpoint
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.third_party.possible import third_party_of
from mpx.endpoints.web.url import origin_of
from mpx.engine.endpoint import FileInfo, Kind
from mpx.location import parse_location
from mpx.net import tcp

SIGNED = f"{NAME}?X-Signature={SECRET}"


@pytest.mark.parametrize("path", ["/api/group%2Fproject/raw", "/api/group%2fproject/a%20b%C3%A9;v=1+2"])
def test_a_slash_that_is_encoded_stays_so(path: str, tmp_path: Path) -> None:
    """It is part of a name there; in between two names it would be another URL."""

    def strict(exchange: Exchange) -> Answer:
        is_asked = exchange.asked.target == f"{path}?ref=a%2Fb"
        return Answer(200, {}, SMALL) if is_asked else Answer(404)

    with ScriptedHttp(dict.fromkeys(("GET", "HEAD"), strict), is_dav=False) as server:
        outcome = copied(f"{server.origin}{path}?ref=a%2Fb", tmp_path / "file", retries=0)
    assert outcome.code == 0, outcome
    assert (tmp_path / "file").read_bytes() == SMALL


# --- URLs of one name ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [("/folder/a%2Fb", "/folder/a/b"), ("/folder/a%2Fb/c", "/folder/a/b%2Fc")],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_urls_that_names_do_not_tell_apart(one: str, other: str, is_turned: bool, tmp_path: Path) -> None:
    """One of them would be copied in place of both."""
    with ScriptedHttp({}, is_dav=False) as server:
        urls = [f"{server.origin}{path}" for path in ((other, one) if is_turned else (one, other))]
        with pytest.raises(mpx.UsageError, match="by two commands") as caught:
            mpx.copy(urls, tmp_path / "to", targets=["g1", "g2"])
        assert all(unquote(url) in unquote(str(caught.value)) for url in urls)
        assert not server.heard
    assert not (tmp_path / "to").exists()


def by_query(exchange: Exchange) -> Answer:
    """An archive whose URLs are all of one path: what is asked for is in the query."""
    asked = replace(exchange.asked, target=exchange.asked.target.replace("?", "%3F", 1))
    return Exchange(exchange.server, exchange.connection, asked).usual()


OF_ONE_PATH = ("get?id=1", f"get?id=2&token={SECRET}", f"get?id=2&token={SECRET}2", "get")


def test_urls_of_one_path_whose_names_at_the_destination_are_told(tmp_path: Path) -> None:
    files = dict(zip((f"/folder/{each}" for each in OF_ONE_PATH), (SMALL, LARGE, b"3", b"4"), strict=True))
    with ScriptedHttp(dict.fromkeys(("GET", "HEAD"), by_query), files, is_dav=False) as server:
        urls = [f"{server.origin}/folder/{each}" for each in OF_ONE_PATH]
        targets = ["one", "sub/two", "three", "four"]
        report = mpx.copy(urls, tmp_path / "to", targets=targets)
        contents = [(tmp_path / "to" / each).read_bytes() for each in targets]
        report.write(str(tmp_path / "report"))
        again = mpx.copy(urls, tmp_path / "to", targets=targets)
    assert contents == list(files.values())
    assert again.files.moved == 0
    assert SECRET not in (tmp_path / "report").read_text()


@pytest.mark.parametrize("one", ["get?id=1", "get"])
def test_urls_of_one_path_without_names(one: str, tmp_path: Path) -> None:
    """What is told is the way: a line that can be pasted."""
    with ScriptedHttp(dict.fromkeys(("GET", "HEAD"), by_query), is_dav=False) as server:
        urls = [f"{server.origin}/folder/{each}" for each in (one, "get?id=3")]
        with pytest.raises(mpx.UsageError) as caught:
            mpx.copy(urls, tmp_path / "to")
        assert not server.heard
    line = f"printf '%s\\t%s\\n' '{urls[0]}' NAME1 '{urls[1]}' NAME2 | mpx copy --from-file - DST"
    assert line in str(caught.value)


def test_a_url_as_source_and_another_of_its_name_as_destination() -> None:
    with ScriptedHttp({}, is_dav=False) as server:
        outcome = copied(f"{server.origin}{NAME}?id=1", f"{server.origin}{NAME}?id=2")
        assert outcome.code == 2, outcome
        assert not server.heard


def test_one_url_twice(tmp_path: Path) -> None:
    """It is one file, which may become two."""
    with ScriptedHttp({}, {NAME: SMALL}, is_dav=False) as server:
        mpx.copy([f"{server.origin}{NAME}?id=1"] * 2, tmp_path / "to", targets=["g1", "g2"])
    assert [(tmp_path / "to" / each).read_bytes() for each in ("g1", "g2")] == [SMALL] * 2


# --- what is below and beside an encoded slash ----------------------------------------------------------


def encoded_slash(exchange: Exchange) -> Answer:
    """Answer about `/a%2Fb`, a folder or a file, and what is below it; nothing else is there."""
    answer = exchange.usual()
    if not exchange.asked.target.startswith("/a%2Fb"):
        return Answer(404)
    return replace(answer, body=answer.body.replace(b"/a/b", b"/a%2Fb"))


def at_encoded_slash(files: Mapping[str, bytes], *, is_dav: bool = True) -> ScriptedHttp:
    methods = ("OPTIONS", "HEAD", "GET", "PUT", "MOVE", "PROPFIND", "MKCOL", "DELETE")
    return ScriptedHttp(dict.fromkeys(methods, encoded_slash), files, is_dav=is_dav)


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_folder_with_an_encoded_slash_is_not_listed(slash: str, tmp_path: Path) -> None:
    """The URLs of its children would be those of another folder."""
    with at_encoded_slash({"/a/b/file": SMALL}) as server:
        url = f"{server.origin}/a%2Fb{slash}"
        outcome = copied(url, tmp_path / "to", recursive=True)
        assert outcome.code == 2 and "%2F" in outcome.text, outcome
        shown = CliRunner().invoke(list_command, [url])
        assert isinstance(shown.exception, mpx.UsageError) and "%2F" in str(shown.exception)
        assert all(each.target.startswith("/a%2Fb") for each in server.heard)
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_folder_with_an_encoded_slash_is_not_filled(
    slash: str, is_there: bool, dry_run: bool, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/file").write_bytes(SMALL)
    with at_encoded_slash({"/a/b/other": SMALL} if is_there else {}) as server:
        source = tmp_path / "src" / ("file" if is_there or slash else "")
        outcome = copied(source, f"{server.origin}/a%2Fb{slash}", recursive=True, dry_run=dry_run)
        assert all(each.target.startswith("/a%2Fb") for each in server.heard)
        assert list(server.files) == ["/a/b/other"] * is_there
    assert outcome.code == 2 and "%2F" in outcome.text, outcome


def test_a_file_that_webdav_describes_under_a_url_with_an_encoded_slash(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with at_encoded_slash({"/a/b": SMALL, "/a/b/c": LARGE}) as server:
        urls = [f"{server.origin}/a%2Fb", f"{server.origin}/a%2Fb/c"]
        mpx.copy([url.replace("http", "dav", 1) for url in urls], tmp_path / "to")
        assert all(each.target.startswith("/a%2Fb") for each in server.heard)
        assert server.asked("PROPFIND")
    assert [(tmp_path / "to" / each).read_bytes() for each in ("b", "c")] == [SMALL, LARGE]


@pytest.mark.parametrize("path", ["/a%2Fb", "/a%2Fb/c/file"])
@pytest.mark.parametrize("is_dav", [False, True])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_file_is_stored_under_a_url_with_an_encoded_slash(
    path: str, is_dav: bool, content: bytes, tmp_path: Path
) -> None:
    """Nothing is asked for beside it, where names have other URLs than are known."""
    (tmp_path / "src").write_bytes(content)
    with at_encoded_slash({}, is_dav=is_dav) as server:
        outcome = copied(tmp_path / "src", f"{server.origin}{path}")
        assert outcome.code == 0, outcome
        assert any("not atomic" in note for note in outcome.notes)
        assert {each.target.rstrip("/") for each in server.heard} == {path}
        assert list(server.files.values()) == [content]


def test_no_server_is_told_to_copy_to_an_encoded_slash() -> None:
    """It would have a partial file beside it."""
    for path, is_possible in (("/a/b", True), ("/a%2Fb", False)):
        place = parse_location(f"https://localhost{path}")
        assert (not third_party_of(WebAccess(place, WebOptions(), [place])).why_not) == is_possible


def test_other_files_are_not_at_the_path_of_a_folder() -> None:
    folder = parse_location("https://localhost/a%2Fb/?sig=1")
    assert str(folder.at("/a/b/c")) == "https://localhost/a/b/c"
    assert folder.at("/a/b/") == folder


@pytest.mark.parametrize("below", ["/folder/file?id=1", "/folder/a%2Fb", "/folder/a%2Fb/?id=1"])
def test_a_folder_and_more_than_a_name_below_it(below: str, tmp_path: Path) -> None:
    """What is listed under that name would be asked for by the other URL."""

    def propfind(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        return replace(answer, body=answer.body.replace(b"/a/b", b"/a%2Fb"))

    files = {"/folder/file": SMALL, "/folder/a/b": SMALL}
    with ScriptedHttp({"PROPFIND": propfind}, files) as server:
        urls = [f"{server.origin}{path}" for path in ("/folder", below)]
        with pytest.raises(mpx.UsageError, match="by two commands"):
            mpx.copy(urls, tmp_path / "to", mpx.CopyOptions(recursive=True), targets=["g1", "g2"])
        assert not server.asked("GET")
    assert not (tmp_path / "to").exists()


# --- other names ---------------------------------------------------------------------------------------


def test_a_host_with_other_letters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is asked for by the name that it has in the DNS (RFC 5891)."""
    place = f"http://xn--n3h.example{NAME}"
    with ScriptedHttp({}, {place: SMALL}, is_dav=False) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert copied(f"http://☃.example{NAME}", tmp_path / "file").code == 0
        assert {each.headers["host"] for each in proxy.heard} == {"xn--n3h.example"}
    assert (tmp_path / "file").read_bytes() == SMALL


def test_an_address_that_is_on_an_interface() -> None:
    """Which the kernel is told, and no server."""
    place = parse_location("https://[fe80::1%25lo]:8443/x")
    ((_, address),) = tcp.resolve(place.host, place.port, socket.AF_UNSPEC)
    assert address == (f"fe80::1%{socket.if_nametoindex('lo')}", 8443)
    assert origin_of(place).authority == "[fe80::1]:8443"


# --- signed for writing --------------------------------------------------------------------------------


def signed(exchange: Exchange) -> Answer | None:
    """Let in who stores that one file, and nobody else."""
    is_let_in = exchange.asked.method == "PUT" and exchange.asked.target == SIGNED
    exchange.body()
    return exchange.usual() if is_let_in else Answer(403, {}, b"<Error>AccessDenied</Error>")


def stored(content: bytes, tmp_path: Path, script: Script | None = None, **options: object) -> Outcome:
    methods = ("OPTIONS", "HEAD", "GET", "PUT", "MOVE", "PROPFIND", "MKCOL", "DELETE")
    (tmp_path / "src").write_bytes(content)
    with ScriptedHttp({**dict.fromkeys(methods, signed), **(script or {})}, is_dav=False) as server:
        outcome = copied(tmp_path / "src", f"{server.origin}{SIGNED}", **options)
        assert (server.files.get(NAME) == content) == (outcome.code == 0), outcome
        assert all(each.target == SIGNED for each in server.asked("PUT"))
        assert not server.asked("MOVE") and not server.asked("MKCOL") and not server.asked("DELETE")
    return outcome


@pytest.mark.parametrize("content", [SMALL, LARGE, b""], ids=["small", "large", "empty"])
def test_a_url_that_is_signed_for_one_file_to_be_stored(content: bytes, tmp_path: Path) -> None:
    outcome = stored(content, tmp_path)
    assert outcome.code == 0, outcome
    assert any("not atomic" in note for note in outcome.notes)
    assert any("does not tell the size" in note for note in outcome.notes)


@pytest.mark.parametrize("status", [400, 401, 405])
def test_what_else_servers_say_to_who_asks_about_such_a_file(status: int, tmp_path: Path) -> None:
    script: Script = dict.fromkeys(("OPTIONS", "HEAD", "GET", "PROPFIND"), lambda _: Answer(status))
    assert stored(SMALL, tmp_path, script).code == 0


@pytest.mark.parametrize(("status", "code"), [(403, 4), (401, 5)])
def test_a_file_that_may_be_there_is_not_replaced_by_who_forbids_that(
    status: int, code: int, tmp_path: Path
) -> None:
    """Nobody can tell whether it is: nothing is stored, and that is no success."""
    (tmp_path / "src").write_bytes(SMALL)
    script: Script = {**dict.fromkeys(("OPTIONS", "HEAD", "GET"), lambda _: Answer(status)), "PUT": signed}
    with ScriptedHttp(script, is_dav=False) as server:
        outcome = copied(tmp_path / "src", f"{server.origin}{SIGNED}", overwrite="never")
        assert not server.asked("PUT")
    assert outcome.code == code, outcome
    assert str(status) in outcome.text


def test_a_file_that_is_not_there_is_stored_by_who_replaces_none(tmp_path: Path) -> None:
    def shown(exchange: Exchange) -> Answer:
        is_missing = exchange.asked.path == NAME and NAME not in exchange.server.files
        return Answer(404 if is_missing else 403)

    script: Script = {"HEAD": shown, "GET": shown}
    assert stored(SMALL, tmp_path, script, overwrite="never").code == 0


def seen_of(query: str, *, folder: str, name: str) -> FileInfo | None:
    """Return what a name is to who writes to a URL, at a server that lets us see nothing."""
    with ScriptedHttp(dict.fromkeys(("OPTIONS", "HEAD", "GET"), lambda _: Answer(403))) as server:
        place = parse_location(f"{server.origin}{folder}/file{query}")
        access = WebAccess(place, WebOptions(replaces_unseen=True), [place])
        end = WebEndpoint(place, access, writing=True)
        try:
            return end.stat(name)
        finally:
            end.close()
            access.close()


@pytest.mark.parametrize(("folder", "name"), [("/a/b", "/a/b"), ("/a/b", "/a/b/"), ("", "/")])
def test_the_folder_of_a_signed_url_is_taken_to_be_there(folder: str, name: str) -> None:
    assert seen_of("?sig=1", folder=folder, name=name) == FileInfo(Kind.FOLDER)


@pytest.mark.parametrize("name", ["/a", "/a/b/other", "/a/bb", "/c"])
def test_no_other_name_is_taken_for_a_folder_that_is_there(name: str) -> None:
    with pytest.raises(mpx.DestinationError, match="403"):
        seen_of("?sig=1", folder="/a/b", name=name)


def test_the_folder_of_a_url_that_is_not_signed_is_to_be_seen() -> None:
    with pytest.raises(mpx.DestinationError, match="403"):
        seen_of("", folder="/a/b", name="/a/b")


# --- connections that nobody has used for some time -----------------------------------------------------


def times_out(exchange: Exchange) -> None:
    """Answer, and say then that nothing came, as HAProxy does; what comes after all is not read."""
    exchange.say(exchange.usual().packed(is_head=exchange.asked.method == "HEAD"))
    exchange.say(b"HTTP/1.1 408 Request Time-out\r\nConnection: close\r\nContent-Length: 5\r\n\r\nlate\n")
    exchange.hold()


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_time_out_of_what_nobody_asked(content: bytes, tmp_path: Path) -> None:
    """It is the end of a connection, and no failed attempt."""
    with ScriptedHttp({"GET": times_out}, {NAME: content}) as server:
        outcome = down(server, tmp_path, streams=2, retries=0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
    assert not [note for note in outcome.notes if "408" in note]


def test_a_time_out_of_a_question(tmp_path: Path) -> None:
    """One that answers the first request of a connection is none of those."""
    with ScriptedHttp({"GET": first(2, lambda _: Answer(408, ends=True))}, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, retries=3)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
