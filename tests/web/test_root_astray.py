"""Servers of XRootD that lead requests to files of this host, which its library would follow."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import refused
from web.servers import leading_root
from web.servers.leading_root import LeadingServer, leading_server
from web.web_command import mpx_there

import mpx as api
from mpx.endpoints.confined import landlock_version
from mpx.errors import Interrupted

OURS = b"of this host alone"
TOLD = "leads to a file of this host"
NO_MORE = ("--retries", "0", "--checksum", "none")
LARGE_BYTES = 20_000_000


@pytest.fixture
def ours(here: Path) -> Path:
    (here / "ours").write_bytes(OURS)
    return here / "ours"


@pytest.fixture
def server(ours: Path) -> Iterator[LeadingServer]:
    with leading_server(ours) as server:
        yield server


@pytest.fixture
def needs_landlock() -> None:
    """Of a kernel that may have been built without it."""
    if not landlock_version():
        pytest.skip("this kernel has no Landlock")


@pytest.mark.parametrize("request_led", [leading_root.OPEN, leading_root.READ], ids=["open", "read"])
def test_a_download(request_led: int, here: Path, server: LeadingServer) -> None:
    server.files[b"/file"] = bytearray(len(OURS))
    server.leads.add(request_led)
    ended = mpx_there("copy", *NO_MORE, f"{server.url}file", here / "got")
    refused(ended, 3, TOLD)
    assert request_led in server.led
    assert not [each for each in here.iterdir() if each.name != "ours" and each.read_bytes() == OURS]


@pytest.mark.parametrize("request_led", [leading_root.OPEN, leading_root.WRITE], ids=["open", "write"])
@pytest.mark.parametrize("size", [5, LARGE_BYTES], ids=["small", "large"])
def test_an_upload(request_led: int, size: int, here: Path, ours: Path, server: LeadingServer) -> None:
    (here / "file").write_bytes(os.urandom(size))
    server.leads.add(request_led)
    ended = mpx_there("copy", *NO_MORE, here / "file", f"{server.url}file")
    refused(ended, 4, TOLD if request_led == leading_root.OPEN else "")
    assert request_led in server.led
    assert ours.read_bytes() == OURS


def test_an_upload_that_is_continued(here: Path, ours: Path, server: LeadingServer) -> None:
    (here / "file").write_bytes(os.urandom(LARGE_BYTES))
    stop = threading.Event()

    def some(progress: api.Progress) -> None:
        if progress.bytes_done:
            stop.set()

    ends = str(here / "file"), f"{server.url}file"
    with pytest.raises(Interrupted):
        api.copy(*ends, api.CopyOptions(rate_bps=32e6, streams=1), cancel=stop, on_progress=some)
    assert any(map(len, server.files.values()))
    server.leads.add(leading_root.OPEN)
    refused(mpx_there("copy", *NO_MORE, *ends), 4, TOLD)
    assert ours.read_bytes() == OURS
    server.leads.clear()
    assert api.copy(*ends).status == "done"
    assert bytes(server.files[b"/file"]) == (here / "file").read_bytes()


@pytest.mark.parametrize("request_led", [leading_root.STAT, leading_root.MV], ids=["stat", "mv"])
def test_other_requests(request_led: int, here: Path, ours: Path, server: LeadingServer) -> None:
    """They are followed nowhere."""
    (here / "file").write_bytes(os.urandom(LARGE_BYTES))
    server.leads.add(request_led)
    assert mpx_there("copy", *NO_MORE, here / "file", f"{server.url}file").code in (3, 4, 6)
    assert request_led in server.led
    assert ours.read_bytes() == OURS


@pytest.fixture
def left(here: Path, server: LeadingServer) -> tuple[str, str, api.CopyOptions]:
    """A copy of which the server has partial files that are too long."""
    (here / "tree").mkdir()
    for name in ("a", "b"):
        (here / "tree" / name).write_bytes(name.encode() * 10)
    copy = str(here / "tree"), f"{server.url}tree", api.CopyOptions(recursive=True, retries=0)
    server.leads.add(leading_root.MV)  # so they stay partial ones
    with pytest.raises(api.MpxError):
        api.copy(*copy)
    server.leads.clear()
    assert server.files
    for content in server.files.values():
        content.extend(b"longer")
    return copy


def test_what_is_stored_whole_takes_the_place_of_what_was_left(
    left: tuple[str, str, api.CopyOptions], server: LeadingServer
) -> None:
    assert api.copy(*left).status == "done"
    assert {bytes(content) for content in server.files.values()} == {b"a" * 10, b"b" * 10}


def test_what_was_left_is_cut_nowhere_else(
    left: tuple[str, str, api.CopyOptions], ours: Path, server: LeadingServer, needs_landlock: None
) -> None:
    server.leads.add(leading_root.TRUNCATE)
    with pytest.raises(api.MpxError):
        api.copy(*left)
    assert leading_root.TRUNCATE in server.led
    assert ours.read_bytes() == OURS


def test_no_file_is_made(here: Path, ours: Path, server: LeadingServer, needs_landlock: None) -> None:
    """That a server leads elsewhere shows only once the library has made one."""
    ours.unlink()
    (here / "file").write_bytes(b"of the user")
    server.leads.add(leading_root.OPEN)
    refused(mpx_there("copy", *NO_MORE, here / "file", f"{server.url}file"), 4, TOLD)
    assert leading_root.OPEN in server.led
    assert not ours.exists()
