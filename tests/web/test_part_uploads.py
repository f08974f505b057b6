"""Large files to real servers: in parts where these keep the rest of a file, else each in one stream."""

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from mpx_command import mpx as mpx_command
from random_bytes import random_bytes
from sites import Site, partials
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers, with_environment

import mpx
from mpx.errors import Interrupted

SIZE = 9_000_007
RATE_BPS = 40e6
STORED = "files are stored in parts"
NOT_STORED = {"nginx": "501", "wsgidav": "known to store no parts", "xrootd": "known to store no parts"}


@pytest.fixture(scope="module")
def content() -> bytes:
    return random_bytes(SIZE)


@pytest.fixture
def apache(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("apache") as site:
        yield site


@pytest.mark.parametrize("kind", ["apache", *NOT_STORED])
def test_servers_that_store_parts_are_recognised(
    kind: str, web_servers: SharedServers, here: Path, content: bytes
) -> None:
    (here / "file").write_bytes(content)
    with web_servers.site(kind) as site:
        report = mpx.copy(str(here / "file"), site.url_of("file"))
        assert (site.folder / "file").read_bytes() == content
        assert [path.name for path in site.folder.iterdir()] == ["file"]
    (told,) = [str(note) for note in report.notes if str(note).startswith((STORED, "one stream"))]
    assert told == STORED if kind == "apache" else NOT_STORED[kind] in told


@pytest.mark.parametrize("is_folder", [True, False], ids=["tree", "file"])
def test_who_may_not_remove_leaves_no_probe_at_xrootd(
    is_folder: bool, web_servers: SharedServers, here: Path, content: bytes
) -> None:
    server = web_servers.get("xrootd")
    assert isinstance(server, XrootdSite)
    (here / "tree").mkdir()
    (here / "tree/file").write_bytes(content)
    token = server.issuer.token("storage.create:/ storage.read:/")
    with web_servers.site("xrootd") as site, with_environment({"BEARER_TOKEN": token}):
        source, to = ("tree", "") if is_folder else ("tree/file", "file")
        mpx.copy(str(here / source), site.url_of(to), mpx.CopyOptions(recursive=is_folder))
        assert [path.name for path in site.folder.iterdir()] == ["file"]
        assert (site.folder / "file").read_bytes() == content


def test_several_streams_write_one_file(apache: Site, here: Path, content: bytes) -> None:
    (here / "file").write_bytes(content)
    streams: list[int] = []
    options = mpx.CopyOptions(streams=4, rate_bps=RATE_BPS)
    mpx.copy(
        str(here / "file"),
        apache.url_of("file"),
        options,
        on_progress=lambda progress: streams.append(progress.streams),
    )
    assert max(streams) == 4
    assert (apache.folder / "file").read_bytes() == content


def test_a_tree_with_large_files(apache: Site, here: Path, content: bytes) -> None:
    for name in ("large", "sub/large", "sub/deeper/small", "sub/deeper/large"):
        (here / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "tree" / name).write_bytes(content if name.endswith("large") else b"small")
    report = mpx.copy(str(here / "tree"), apache.url_of("to"), mpx.CopyOptions(recursive=True))
    assert (report.status, report.files.moved) == ("done", 4)
    for path in (here / "tree").rglob("*"):
        if path.is_file():
            assert (apache.folder / "to" / path.relative_to(here / "tree")).read_bytes() == path.read_bytes()
    assert partials(apache.folder) == []


def test_what_was_stored_is_read_back_for_a_checksum(apache: Site, here: Path, content: bytes) -> None:
    (here / "file").write_bytes(content)
    report = mpx.copy(str(here / "file"), apache.url_of("file"), mpx.CopyOptions(checksum="md5"))
    assert report.compared == {"md5": SIZE}


@pytest.mark.parametrize("becomes", ["removed", "zeros"])
def test_what_is_not_there_any_more_is_sent_again(
    becomes: str, apache: Site, here: Path, content: bytes
) -> None:
    """Of a copy that was stopped: what the record says is compared with some bytes of what is stored."""
    (here / "file").write_bytes(content)
    cancel = threading.Event()

    def stop(progress: mpx.Progress) -> None:
        if progress.bytes_done > SIZE // 2:
            cancel.set()

    ends = str(here / "file"), apache.url_of("file")
    with pytest.raises(Interrupted):
        mpx.copy(*ends, mpx.CopyOptions(rate_bps=RATE_BPS), on_progress=stop, cancel=cancel)
    (partial,) = partials(apache.folder)
    assert f" bytes in {unquote(apache.url_of(partial.name))}\n" in mpx_command("unfinished").out
    if becomes == "removed":
        partial.unlink()
    else:
        partial.write_bytes(bytes(partial.stat().st_size))
    report = mpx.copy(*ends)
    assert (report.bytes.resumed, report.bytes.moved) == (0, SIZE)
    assert (apache.folder / "file").read_bytes() == content


def test_a_file_that_is_removed_on_the_way_is_sent_again(apache: Site, here: Path, content: bytes) -> None:
    (here / "file").write_bytes(content)
    removed = threading.Event()

    def remove(progress: mpx.Progress) -> None:
        if progress.bytes_done > SIZE // 2 and not removed.is_set():
            removed.set()
            for partial in partials(apache.folder):
                partial.unlink()

    options = mpx.CopyOptions(rate_bps=RATE_BPS)
    report = mpx.copy(str(here / "file"), apache.url_of("file"), options, on_progress=remove)
    assert removed.is_set()
    assert (apache.folder / "file").read_bytes() == content
    assert any("was removed while it was stored" in str(note) for note in report.notes)
