"""The proxy between Debian's own client and server: what arrives is what was sent, and by our path."""

import contextlib
import socket
import subprocess
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_lab.proxy import DelayProxy
from random_bytes import random_bytes

pytestmark = pytest.mark.peers
STREAMS = 4
SIZE = 20_000_003


@pytest.fixture
def server(tmp_path: Path):
    root = tmp_path / "served"
    root.mkdir()
    with StockServer(root) as server:
        yield server


def copy(program: str, *arguments: str) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options", [("-p", str(STREAMS)), ()], ids=["mode E", "mode S"])
def test_up_and_down_with_the_stock_client(server: StockServer, tmp_path: Path, peer, options) -> None:
    client = peer("globus-url-copy")
    local, back = tmp_path / "local.bin", tmp_path / "back.bin"
    local.write_bytes(random_bytes(SIZE))
    with DelayProxy((server.host, server.port), rtt_s=0.02, rate_bps=400e6) as proxy:
        url = f"ftp://{proxy.host}:{proxy.port}{server.root}/remote.bin"
        copy(client, *options, f"file://{local}", url)
        copy(client, *options, url, f"file://{back}")
        record = proxy.record()
    assert (server.root / "remote.bin").read_bytes() == local.read_bytes()
    assert back.read_bytes() == local.read_bytes()
    data = [connection for connection in record.connections if connection.kind == "data"]
    assert len(data) == 2 * (STREAMS if options else 1)
    assert record.up_bytes >= SIZE
    assert record.down_bytes >= SIZE
    downloads = "server" if options else "client"  # the sender of MODE E connects
    assert {connection.opened_by for connection in data if connection.down_bytes} == {downloads}


def test_two_files_over_the_same_data_connections(server: StockServer, tmp_path: Path, peer) -> None:
    client = peer("globus-url-copy")
    local = tmp_path / "local"
    local.mkdir()
    for name in ("a", "b", "c"):
        (local / name).write_bytes(random_bytes(3_000_000))
    with DelayProxy((server.host, server.port), rtt_s=0.02) as proxy:
        url = f"ftp://{proxy.host}:{proxy.port}{server.root}/"
        copy(client, "-fast", "-p", "2", "-r", f"file://{local}/", url)
    for name in ("a", "b", "c"):
        assert (server.root / name).read_bytes() == (local / name).read_bytes()


def test_ipv6(tmp_path: Path, peer) -> None:
    client = peer("globus-url-copy")
    root, local, back = tmp_path / "served", tmp_path / "local.bin", tmp_path / "back.bin"
    root.mkdir()
    local.write_bytes(random_bytes(SIZE))
    with StockServer(root, host="::1") as server, DelayProxy(("::1", server.port), host="::1") as proxy:
        url = f"ftp://[::1]:{proxy.port}{root}/remote.bin"
        copy(client, "-ipv6", "-p", str(STREAMS), f"file://{local}", url)
        copy(client, "-ipv6", "-p", str(STREAMS), url, f"file://{back}")
        record = proxy.record()
    assert back.read_bytes() == local.read_bytes()
    assert record.up_bytes >= SIZE
    assert record.down_bytes >= SIZE


def test_killing_the_server_leaves_no_session(server: StockServer, eventually) -> None:
    with (
        DelayProxy((server.host, server.port), rtt_s=0) as proxy,
        socket.create_connection((proxy.host, proxy.port), timeout=30) as control,
    ):
        assert control.recv(3) == b"220"
        sessions = server.session_pids
        assert len(sessions) == 1
        server.kill()
        eventually(lambda: not Path(f"/proc/{sessions[0]}").exists())
        with contextlib.suppress(ConnectionResetError):
            while control.recv(4096):
                pass
