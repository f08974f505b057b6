"""Uploads that a server refuses: nothing of them is unfinished, and what was there is not touched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import mpx, refused
from sites import Site
from web.lying import LARGE, NAME, SMALL
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp
from web.shared_servers import SharedServers
from web.web_command import mpx_there

NOTHING = "nothing is unfinished here\n"
OLDER = b"what was there before"


@pytest.fixture
def xrootd(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("xrootd") as site:
        yield site


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_server_that_stores_nothing(content: bytes, archive: Site, here: Path) -> None:
    (here / "file").write_bytes(content)
    refused(mpx("copy", here / "file", archive.url_of("file")), 4, "405")
    assert mpx("unfinished").err == NOTHING


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_name_with_a_question_mark_at_xrootd(content: bytes, xrootd: Site, here: Path) -> None:
    (here / "a?b").write_bytes(content)
    xrootd.write(".a", OLDER)
    refused(mpx_there("copy", here / "a?b", xrootd.url_of("a?b")), 4, "ends before the ?")
    assert mpx("unfinished").err == NOTHING
    assert [path.name for path in xrootd.folder.iterdir()] == [".a"]


def refuses(exchange: Exchange) -> Answer:
    exchange.body()
    return Answer(403)


def stores_some(exchange: Exchange) -> Answer:
    exchange.server.files[NAME] = exchange.body()[:10]
    return Answer(403)


@pytest.mark.parametrize("puts", [refuses, stores_some])
@pytest.mark.parametrize("older", [OLDER, None], ids=["older", "new"])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_what_was_to_be_written_in_place(
    content: bytes, older: bytes | None, puts: Scripted, here: Path
) -> None:
    """It is unfinished where something was stored; what was there before is not given up with it."""
    (here / "file").write_bytes(content)
    files = {"/folder/other": b""} | ({NAME: older} if older is not None else {})
    with ScriptedHttp({"PUT": puts}, files) as server:
        refused(mpx("copy", "--in-place", here / "file", f"{server.dav}{NAME}"), 4, "403")
        is_unfinished = mpx("unfinished").err != NOTHING
        assert is_unfinished == (puts is stores_some)
        assert mpx("unfinished", "--discard").code == 0
        assert server.files.get(NAME) == (None if is_unfinished else older)
