"""A server of XRootD that is killed while something is stored there, and comes back: it is stored anew."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from gfal.slow_path import SlowPath
from install_peers import GFAL, find_peer
from sites import partials
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server

import mpx as api
from mpx.errors import ConnectionLost

READS = "ofs.tpc ttl 60 60 xfr 9 pgm /usr/bin/xrdcp --server"
SLOW_BPS, SLOW_BYTES = 2e6, 12_000_001  # 48 s: what is killed is under way still, however busy we are


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RootServer, RootServer]]:
    monkeypatch.setenv("BEARER_TOKEN", "")
    with (
        servers_folder() as root,
        root_server(root / "first", READS) as first,
        root_server(root / "second", READS) as second,
    ):
        yield first, second


def copy(source: str, url: str, server: RootServer, path: SlowPath, options: api.CopyOptions) -> api.Report:
    """Copy, and have the server killed in the middle of it."""
    killed: list[Path] = []

    def kill(_: api.Progress) -> None:
        stored = [each for each in partials(server.folder) if each.stat().st_size]
        if stored and not killed:
            killed.extend(stored)
            path.hurry()
            server.restart()

    report = api.copy(source, url, options, on_progress=kill)
    assert killed
    return report


def test_by_gfal2(here: Path, pair: tuple[RootServer, RootServer]) -> None:
    find_peer(GFAL)
    _, server = pair
    (here / "file").write_bytes(content := os.urandom(SLOW_BYTES))
    with SlowPath(server.port, SLOW_BPS) as path:
        url = f"{path.url(server.url)}file"
        report = copy(str(here / "file"), url, server, path, api.CopyOptions(via="gfal2"))
    assert (server.folder / "file").read_bytes() == content
    assert any("trying again after" in str(note) for note in report.notes), report.notes


def test_by_gfal2_where_it_does_not_come_back(here: Path, pair: tuple[RootServer, RootServer]) -> None:
    find_peer(GFAL)
    _, server = pair
    (here / "file").write_bytes(os.urandom(SLOW_BYTES))

    def kill(_: api.Progress) -> None:
        if any(each.stat().st_size for each in partials(server.folder)):
            server.server.kill()

    with SlowPath(server.port, SLOW_BPS) as path, pytest.raises(ConnectionLost):
        options = api.CopyOptions(via="gfal2", retries=1)
        api.copy(str(here / "file"), f"{path.url(server.url)}file", options, on_progress=kill)


def test_that_reads_from_another_one(pair: tuple[RootServer, RootServer]) -> None:
    source, server = pair
    (source.folder / "file").write_bytes(content := os.urandom(SLOW_BYTES))
    with SlowPath(source.port, SLOW_BPS) as path:
        url = f"{path.url(source.url)}file"
        straight = api.CopyOptions(third_party="only")
        report = copy(url, f"{server.url}file", server, path, straight)
    assert (server.folder / "file").read_bytes() == content
    assert any("trying again after" in str(note) for note in report.notes), report.notes
