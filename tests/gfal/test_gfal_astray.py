"""Servers of XRootD that lead gfal2 to files of this host, as it copies between two servers."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sites import Site
from web.servers import leading_root
from web.servers.leading_root import LeadingServer, leading_server

import mpx as api
from mpx.endpoints.confined import landlock_version

OURS = b"of this host alone"


@pytest.fixture(autouse=True)
def needs_landlock() -> None:
    """Of a kernel that may have been built without it."""
    if not landlock_version():
        pytest.skip("this kernel has no Landlock")


@pytest.fixture
def ours() -> Iterator[Path]:
    """A file where libraries have none of their own, as they do in /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (Path(folder) / "ours").write_bytes(OURS)
        yield Path(folder) / "ours"


@pytest.fixture
def server(ours: Path) -> Iterator[LeadingServer]:
    with leading_server(ours) as server:
        server.leads.add(leading_root.OPEN)
        yield server


def test_nothing_of_this_host_is_sent(
    nginx: Site, via: Callable[..., api.Report], server: LeadingServer
) -> None:
    server.files[b"/file"] = bytearray(len(OURS))
    with pytest.raises(api.MpxError):
        via(f"{server.url}file", nginx.url_of("got"), retries=0)
    assert server.led
    assert not [each for each in nginx.folder.iterdir() if each.read_bytes() == OURS]


def test_nothing_of_this_host_is_written(
    nginx: Site, via: Callable[..., api.Report], server: LeadingServer, ours: Path
) -> None:
    nginx.write("file", b"of the server")
    with pytest.raises(api.MpxError):
        via(nginx.url_of("file"), f"{server.url}got", retries=0)
    assert server.led
    assert ours.read_bytes() == OURS


def test_an_upload(here: Path, via: Callable[..., api.Report], server: LeadingServer, ours: Path) -> None:
    (here / "file").write_bytes(b"of the user")
    with pytest.raises(api.MpxError):
        via(here / "file", f"{server.url}got", retries=0)
    assert server.led
    assert ours.read_bytes() == OURS
