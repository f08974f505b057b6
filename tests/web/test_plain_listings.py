"""Servers that list names as they are, in place of URLs: a name may look like another one that is encoded."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sites import Site
from web.lying import copied
from web.scripted_http import Answer, Exchange, ScriptedHttp
from web.shared_servers import SharedServers, in_its_world
from web.web_command import mpx_there

PAIRS = ("a b", "a%20b", "a%2520b", "100%", "%41", "A", "é%C3%A9", "R&D", "R%26D", "a<b")


@pytest.fixture
def xrootd(web_servers: SharedServers, tmp_path: Path) -> Iterator[Site]:
    """A folder there whose own name shows nothing of how names are listed."""
    server = web_servers.get("xrootd")
    folder = server.folder / tmp_path.name
    folder.mkdir()
    shutil.chown(folder, server.owner)
    with in_its_world(server):
        yield Site(folder, f"{server.url}{folder.name}")


def content_of(top: Path) -> dict[str, str]:
    return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("folder", "names"),
    [("tree", PAIRS), ("tree", ["a%20b"]), ("tree", ["a b"]), ("a%20tree", PAIRS), ("a tree", PAIRS)],
)
def test_names_with_percent_signs_at_xrootd(
    folder: str, names: list[str], xrootd: Site, tmp_path: Path
) -> None:
    source = tmp_path / "src" / folder
    for name in names:
        (source / f"in {name}").mkdir(parents=True)
        (source / f"in {name}" / name).write_text(f"{folder} {name}")
        (source / name).write_text(name)
    there = f"{xrootd.url}/{quote(folder)}"
    assert mpx_there("copy", "-r", source, there).code == 0
    assert content_of(xrootd.folder / folder) == content_of(source)
    ended = mpx_there("copy", "-r", there, tmp_path / "back")
    assert ended.code == 0, ended.err
    assert content_of(tmp_path / "back") == content_of(source)


def like_xrootd(exchange: Exchange) -> Answer:
    return exchange.usual().having(Server="XrootD/v5.5.3")


@pytest.mark.parametrize("name", ["a b", "a%20b", "café"])
def test_who_calls_itself_xrootd_and_encodes_names(name: str, tmp_path: Path) -> None:
    """As EOS does."""
    files = {f"/a folder/{name}": b"12345", "/a folder/other": b"1"}
    methods = ("OPTIONS", "PROPFIND", "HEAD", "GET")
    with ScriptedHttp(dict.fromkeys(methods, like_xrootd), files) as server:
        outcome = copied(f"{server.dav}/a%20folder/", tmp_path / "to", recursive=True)
        asked = [each.path for each in server.asked("PROPFIND")]
        not_there = [each for each in asked if each.rstrip("/") not in {*server.files, *server.folders}]
    assert outcome.code == 0, outcome
    assert (tmp_path / "to" / name).read_bytes() == b"12345"
    assert len(not_there) <= 1


def test_a_file_that_is_named_with_a_slash() -> None:
    """As some servers describe it."""
    with ScriptedHttp({}, {"/folder/file": b"1"}) as server:
        ended = mpx_there("list", f"{server.dav}/folder/file/")
    assert (ended.code, ended.out) == (0, "file\n"), ended.err
