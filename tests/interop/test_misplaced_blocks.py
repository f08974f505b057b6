"""A Globus server whose transfer is cut writes blocks to where that transfer begins, over what is there."""

import os
import random
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.long_path import LongPath
from interop.stock_server import StockServer
from sites import make
from web.servers.nginx import nginx_site

import mpx
from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.mode_e.misplaced_blocks import certain_from
from mpx.errors import Interrupted

MIB = 1024 * 1024
ROUNDS = 3  # as it does so every other time


def interrupt(server: StockServer, ends: tuple[str, str], at_bytes: int, options: mpx.CopyOptions) -> None:
    """Copy so much, and stop while the server still has data that it has not read."""
    stop = threading.Event()

    def hold(progress: mpx.Progress) -> None:
        if progress.bytes_done > at_bytes and not stop.is_set():
            for pid in server.session_pids:
                os.kill(pid, signal.SIGSTOP)
            stop.set()

    try:
        with pytest.raises(Interrupted):
            mpx.copy(*ends, replace(options, rate_bps=200e6), on_progress=hold, cancel=stop)
    finally:
        for pid in server.session_pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_an_interrupted_upload_is_right_where_it_began(number: int, tmp_path: Path, eventually) -> None:
    source = make(tmp_path / "source", 90 * MIB + number)
    there = tmp_path / "there"
    there.mkdir()
    with StockServer(there) as server:
        assert_it_goes_on(server, (str(source), f"{server.url}file"), eventually)
    assert (there / "file").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_an_interrupted_relay_is_right_where_its_pieces_began(
    number: int, tmp_path: Path, eventually
) -> None:
    there, web = tmp_path / "there", tmp_path / "web"
    there.mkdir(), web.mkdir()
    with StockServer(there) as server, nginx_site(web) as site:
        source = make(site.folder / "file", 90 * MIB + number)
        assert_it_goes_on(server, (f"{site.url}file", f"{server.url}file"), eventually)
        assert (there / "file").read_bytes() == source.read_bytes()


def assert_it_goes_on(server: StockServer, ends: tuple[str, str], eventually) -> None:
    """Interrupt a copy, and do it again; nothing is compared, so what is wrong would stay."""
    options = mpx.CopyOptions(checksum="none")
    interrupt(server, ends, 60 * MIB, options)
    eventually(lambda: not server.session_pids)
    report = mpx.copy(*ends, options)
    assert report.files.resumed == 1 and report.bytes.resumed > 0


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.integers(1, 1 << 31))
def test_what_a_server_of_ours_tells_counts_at_once(start: int, size_bytes: int, block_bytes: int) -> None:
    end = start + size_bytes
    assert certain_from({sink.FEATURE: ""}, start, end, block_bytes) == start
    assert certain_from({"DSI": ""}, start, end, block_bytes) == start + min(size_bytes, block_bytes)


def test_connections_that_bring_less_than_a_large_block_bring_something(tmp_path: Path, eventually) -> None:
    way = LongPath(tmp_path, "up", 12 * MIB, rate_bps=16e6)
    try:
        running = way.begin_until(0.1, eventually, "--retries", "3", "--streams", "1", "--checksum", "none")
        cuts = 0
        while running.process.poll() is None and cuts < 12:
            seen = way.delivered
            eventually(lambda seen=seen: way.delivered > seen + 2 * MIB or running.process.poll() is not None)
            if way.proxy.open_data_connections():
                way.proxy.reset_data_connection(rng=random.Random(cuts))
                cuts += 1
        way.assert_whole(running.end())
    finally:
        way.close()
    assert cuts > 4
