"""Memory of `mpx serve` under clients that would use it up: what is remembered, what is given back."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from raw_client import CONTENT, RawClient, block, connect, end, read_blocks

from mpx.endpoints.ftp.framing import range_marker
from mpx.engine.ranges import RangeSet
from mpx.serve.buffers import BLOCK_BYTES, Buffer
from mpx.serve.control import Control, ControlClosed
from mpx.serve.listing import Item
from mpx.serve.progress import MOST_NEW_RANGES, TransferCounters

MIB = 1 << 20


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_blocks_of_one_byte_are_all_stored_and_the_markers_are_bounded(client, root):
    count = 3 * MOST_NEW_RANGES
    address = client.mode_e()
    client.do("TREV RESTART 99999")
    client.send("STOR new")
    with connect(address) as sock:
        sock.sendall(b"".join(block(2 * i, b"x") for i in range(count)) + end(1))
        assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "new").read_bytes() == b"x\0" * (count - 1) + b"x"
    told = [found for marker in client.markers if marker.code == 111 for found in range_marker(marker)]
    assert len(told) == MOST_NEW_RANGES
    assert told[:2] == [(0, 1), (2, 3)]


@given(st.lists(st.integers(0, 3 * MOST_NEW_RANGES), max_size=50), st.booleans())
def test_markers_tell_nothing_that_did_not_arrive(starts, crowded):
    progress = TransferCounters(keep_ranges=True)
    arrived = RangeSet()
    for start in [*range(0, 4 * MOST_NEW_RANGES, 2)] * crowded + starts:
        progress.arrived(start, start + 1)
        arrived.add(start, start + 1)
    told = RangeSet()
    while found := progress.take_ranges():
        assert all(told.add(*one) == one[1] - one[0] for one in found)
    assert len(told) <= MOST_NEW_RANGES
    assert all(arrived.covers(*one) for one in told)
    assert crowded or told == arrived


@given(st.data())
def test_blocks_cut_anywhere_into_segments_are_put_together(client, root, data):
    """Small and large blocks in any pieces, some of which the server receives ahead of their time."""
    content = CONTENT[:300_000]
    sizes = data.draw(
        st.lists(st.sampled_from([1, 2, 17, 1000, 8192, 8193, 100_000]), min_size=1, max_size=8)
    )
    wire, at = b"", 0
    for count in sizes:
        wire += block(at, content[at : at + count])
        at += len(content[at : at + count])
    wire += end(1)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    address = client.mode_e()
    client.send("STOR pieces")
    with connect(address) as sock:
        for start, stop in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            sock.sendall(wire[start:stop])
        assert [client.reply().code, client.reply().code] == [150, 226]
    assert (root / "pieces").read_bytes() == content[:at]


def test_what_comes_ahead_of_the_next_transfer_belongs_to_it(client, root):
    address = client.mode_e()
    client.send("STOR one", "STOR two")
    with connect(address) as sock:
        sock.sendall(block(0, b"first") + end(1) + block(0, b"second") + end(1))
        assert [client.reply().code for _ in range(4)] == [150, 226, 125, 226]
    assert (root / "one").read_bytes() == b"first"
    assert (root / "two").read_bytes() == b"second"


def test_a_buffer_gives_its_pages_back():
    buffer = Buffer(BLOCK_BYTES)
    buffer.view[:] = b"x" * len(buffer.view)
    buffer.shrink()
    assert buffer.view[0] == ord("x")
    assert buffer.view[-1] == 0
    buffer.release()
    assert buffer.view[0] == 0


def test_hundreds_of_data_connections_leave_nothing_behind(root, eventually):
    command = [sys.executable, "-m", "mpx.serve", str(root), "--writable", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline().split(":")[3].split("/")[0])
        with RawClient(port) as client:
            before = resident_bytes(process.pid)
            address = client.mode_e()
            client.send("STOR many")
            with contextlib.ExitStack() as held:
                for i in range(200):
                    sock = held.enter_context(connect(address))
                    sock.sendall(block(2 * i * MIB, bytes(2 * MIB))[:MIB])
            assert [client.reply().code, client.reply().code] == [150, 426]
            eventually(lambda: resident_bytes(process.pid) - before < 32 * MIB)
            assert client.do("NOOP").code == 200
        process.terminate()
        assert process.wait(240) == 0


def test_a_retrieve_sends_smaller_blocks_to_who_has_many_connections(client, server, root, monkeypatch):
    monkeypatch.setattr("mpx.serve.buffers.WITH_LARGE_BLOCKS", 0)
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        client.do("MODE E")
        host, port = listener.getsockname()
        client.do(f"PORT {host.replace('.', ',')},{port // 256},{port % 256}")
        client.send("RETR file")
        sock = held.enter_context(listener.accept()[0])
        blocks, _ = read_blocks(sock)
    assert client.reply().code == 150
    assert b"".join(content for _, content in sorted(blocks)) == CONTENT
    assert max(len(content) for _, content in blocks) == 128 * 1024


# --- data connections are given back to those that may be open ------------------------------------------


def active(client: RawClient, listener: socket.socket) -> None:
    host, port = listener.getsockname()
    assert client.do(f"PORT {host.replace('.', ',')},{port // 256},{port % 256}").code == 200


def test_connections_kept_in_mode_e_end_with_a_transfer_in_mode_s(client, server, eventually):
    client.do("OPTS RETR Parallelism=3,3,3;")
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        listener.settimeout(30)
        client.do("MODE E")
        active(client, listener)
        client.send("RETR file")
        kept = [stack.enter_context(listener.accept()[0]) for _ in range(3)]
        for sock in kept:
            sock.settimeout(30)
            read_blocks(sock)
        assert [client.reply().code, client.reply().code] == [150, 226]
        assert server._budget._sum == 3
        client.do("MODE S")
        client.send("RETR file")
        with listener.accept()[0] as data:
            while data.recv(1 << 20):
                pass
        assert [client.reply().code, client.reply().code] == [150, 226]
        assert all(sock.recv(1) == b"" for sock in kept)
        eventually(lambda: server._budget._sum == 0)


def test_connections_that_are_not_begun_with_are_given_back(client, server, eventually, monkeypatch):
    """The client has gone, and the replies before the transfer cannot be sent."""

    def gone(_: Control) -> None:
        raise ControlClosed("gone")

    client.do("MODE E")
    client.do("OPTS RETR Parallelism=3,3,3;")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        active(client, listener)
        monkeypatch.setattr(Control, "flush", gone)
        client.send("RETR file")
        eventually(lambda: not server._sessions)
    assert server._budget._sum == 0


def test_a_listing_in_blocks_ends_with_its_client(root, server, eventually, monkeypatch):
    began, over = threading.Event(), threading.Event()

    def endless(*_: object, **__: object) -> Iterator[Item]:
        while not over.is_set():
            began.set()
            yield Item("name", os.stat(root))

    monkeypatch.setattr("mpx.serve.listing.items", endless)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            with RawClient(server.port) as client:
                client.do("MODE E")
                active(client, listener)
                client.send("MLSD")
                assert began.wait(30)
            eventually(lambda: not server._sessions)
        finally:
            over.set()
