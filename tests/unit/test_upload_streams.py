"""Upload streams against a receiver that counts as a stock server does, while they come and go at random.

The receiver takes one transfer after the other: every connection it has, and every one that is made
meanwhile, takes part until its EOD; when as many EOD were seen as EOF told, the transfer is complete.
A total that is too high never ends, one too low ends before all bytes are there.
"""

import os
import random
import selectors
import socket
import threading
import time
from pathlib import Path

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.ftp.data_address import DataPort
from mpx.endpoints.ftp.framing import CLOSE, HEADER_BYTES, unpack_header
from mpx.endpoints.ftp.mode_e.store import Store
from mpx.endpoints.ftp.mode_e.upload_channel import UploadDataChannel
from mpx.endpoints.ftp.mode_e.upload_stream import UploadStream
from mpx.engine.carrier import BYTES_EACH
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH

PATIENCE_S = 30
KERNELS = {DEFAULT_PATH: None}  # congestion control
BLOCK_BYTES = 64 * 1024
NO_FILE = os.open(os.devnull, os.O_RDONLY)  # for transfers of which nothing is read


class Receiver(threading.Thread):
    """The server's end of a passive port."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = ("127.0.0.1", self.listener.getsockname()[1])
        self.got = [bytearray(size) for size in sizes]
        self.written = [0] * len(sizes)
        self.done = [threading.Event() for _ in sizes]
        self.begun = [threading.Event() for _ in sizes]
        self.most = 0  # connections at once

    def run(self) -> None:
        cached: list[socket.socket] = []
        for number in range(len(self.got)):
            if not self.begun[number].wait(PATIENCE_S):
                return
            cached = self._transfer(number, cached)
            self.done[number].set()
        for connection in cached:
            connection.close()

    def _transfer(self, number: int, cached: list[socket.socket]) -> list[socket.socket]:
        kept: list[socket.socket] = []
        ended, total = 0, None
        with selectors.DefaultSelector() as ready:
            ready.register(self.listener, selectors.EVENT_READ)
            for connection in cached:
                ready.register(connection, selectors.EVENT_READ)
            while ended != total:
                self.most = max(self.most, len(ready.get_map()) - 1)
                for key, _ in ready.select(PATIENCE_S):
                    if key.fileobj is self.listener:
                        connection, _ = self.listener.accept()
                        ready.register(connection, selectors.EVENT_READ)
                        continue
                    connection = key.fileobj
                    assert isinstance(connection, socket.socket)
                    header = unpack_header(exactly(connection, HEADER_BYTES))
                    data = exactly(connection, header.count)
                    self.got[number][header.offset : header.offset + header.count] = data
                    self.written[number] += header.count
                    if header.total_streams is not None:
                        assert total is None, "EOF twice"
                        total = header.total_streams
                    if header.ends_data:
                        ended += 1
                        ready.unregister(connection)
                        if header.descriptor & CLOSE:
                            connection.close()
                        else:
                            kept.append(connection)
                    if ended == total:
                        break
            assert set(ready.get_map()) == {self.listener.fileno()}, "complete, but not all have ended"
        return kept


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "closed in the middle"
        data += more
    return data


@pytest.mark.parametrize("seed", range(12))
def test_streams_come_and_go_in_batches_of_files(tmp_path: Path, eventually, seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 70_000, rng.randrange(8 * BYTES_EACH)]) for _ in range(24)]
    contents = [rng.randbytes(size) for size in sizes]
    receiver = Receiver(sizes)
    receiver.start()
    context = a_context(block_size_bytes=BLOCK_BYTES)
    channel = UploadDataChannel(DataPort(receiver.address), context, KERNELS)
    number = 0
    while number < len(sizes):
        batch = []
        for content in contents[number : number + rng.randrange(1, 9)]:
            path = tmp_path / "file"
            path.write_bytes(content)
            told = rng.choice([len(content), len(content), None])  # None: it is read to its end
            file = FileTransfer(str(path), "final", "part", FileInfo(Kind.FILE, told), sums="adler32")
            batch.append(Store(file, file.open(str(path), os.O_RDONLY)))
            path.unlink()
            channel.add(batch[-1])
        for transfer in batch:
            receiver.begun[number].set()
            deadline_s = time.monotonic() + PATIENCE_S
            while not receiver.done[number].wait(0.0005):
                channel.adjust(transfer, (DEFAULT_PATH,) * rng.choice([1, 2, 5, 9]))
                if rng.random() < 0.05:
                    channel.renew(DEFAULT_PATH)
                assert not channel.broken, channel.broken
                assert time.monotonic() < deadline_s, f"file {number} does not end"
            assert transfer.ends.announced
            channel.forget(transfer)
            assert receiver.got[number] == contents[number]
            assert receiver.written[number] == sizes[number]  # no byte twice
            assert (transfer.file.size_bytes, transfer.is_complete) == (sizes[number], True)
            number += 1
        for transfer in batch:
            transfer.file.close()
    channel.close()
    eventually(lambda: not channel.live_streams())
    assert channel.totals()[DEFAULT_PATH].streams == 0


def test_connections_that_are_worn_are_replaced_at_the_edge_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[int] = set()  # descriptors may come again, so these are ports

    def is_worn(connection: socket.socket) -> bool:
        used.add(connection.getsockname()[1])
        return True

    monkeypatch.setattr("mpx.endpoints.ftp.mode_e.upload_stream.is_worn", is_worn)
    content = random.Random(1).randbytes(5 * BLOCK_BYTES)
    (tmp_path / "file").write_bytes(content)
    receiver = Receiver([len(content)])
    receiver.start()
    channel = UploadDataChannel(DataPort(receiver.address), a_context(block_size_bytes=BLOCK_BYTES), KERNELS)
    file = FileTransfer(str(tmp_path / "file"), "final", "part", FileInfo(Kind.FILE, len(content)))
    transfer = Store(file, file.open(str(tmp_path / "file"), os.O_RDONLY))
    channel.add(transfer)
    receiver.begun[0].set()
    deadline_s = time.monotonic() + PATIENCE_S
    while not receiver.done[0].wait(0.0005):
        channel.adjust(transfer, (DEFAULT_PATH,))
        assert time.monotonic() < deadline_s
    assert receiver.got[0] == content
    assert len(used) > 1
    channel.cut()
    file.close()


@pytest.mark.parametrize("state", ["gate shut", "connecting", "sending", "cached"])
def test_cutting_ends_every_stream(tmp_path: Path, state: str, eventually) -> None:
    """Wherever a stream waits, it ends when the session is given up."""
    path = tmp_path / "file"
    path.write_bytes(bytes(32_000_000))
    file = FileTransfer(
        str(path), "final", "part", FileInfo(Kind.FILE, 32_000_000 if state != "cached" else 10)
    )
    transfer = Store(file, file.open(str(path), os.O_RDONLY))
    context = a_context(block_size_bytes=BLOCK_BYTES, connect_timeout_s=300.0)
    if state == "gate shut":
        context.controls[DEFAULT_PATH].gate.open(200_000)
    with socket.create_server(("127.0.0.1", 0), backlog=0 if state == "connecting" else 8) as deaf:
        channel = UploadDataChannel(DataPort(deaf.getsockname()[:2]), context, KERNELS)
        channel.add(transfer)
        eventually(
            lambda: (
                channel.adjust(transfer, (DEFAULT_PATH,) * 3)
                or len(channel.live_streams()) >= (1 if state == "cached" else 3)
            )
        )
        streams = channel.live_streams()
        if state == "gate shut":
            eventually(lambda: context.controls[DEFAULT_PATH].gate.is_shut)
        elif state == "sending":
            eventually(lambda: all(stream.passed_bytes for stream in streams))
        elif state == "cached":
            eventually(lambda: transfer.ends.announced)
        channel.cut()
        assert not any(stream.is_alive() for stream in streams)
        assert channel.live_streams() == []


def test_a_stream_that_starts_after_its_port_was_closed_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    context = a_context(block_size_bytes=BLOCK_BYTES)
    file = FileTransfer(str(tmp_path / "file"), "final", "partial", FileInfo(Kind.FILE, 1))
    transfer = Store(file, file.open(file.source, os.O_RDONLY))
    channel = UploadDataChannel(DataPort(("127.0.0.1", 1)), context, KERNELS)
    channel.add(transfer)
    assert transfer.ends.reserve()
    channel.close()
    late = UploadStream(channel, transfer, DEFAULT_PATH)
    assert not late._join()
    assert transfer.ends.taking_part == 0
    file.close()


def test_a_transfer_is_complete_only_when_every_byte_was_sent_in_it_or_had_arrived(tmp_path: Path) -> None:
    file = FileTransfer("source", "final", "partial", FileInfo(Kind.FILE, 100))
    file.landed(0, 30)
    transfer = Store(file, NO_FILE)
    transfer.sent(69)
    assert not transfer.is_complete
    transfer.sent(1)
    assert transfer.is_complete


def test_an_end_that_nobody_announced_gets_a_connection_of_its_own(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(UploadStream, "start", lambda _: None)
    channel = UploadDataChannel(DataPort(("127.0.0.1", 1)), a_context(block_size_bytes=BLOCK_BYTES), KERNELS)
    files = [
        FileTransfer("source", f"final{i}", f"part{i}", FileInfo(Kind.FILE, size))
        for i, size in enumerate((5, 5, 5 << 20))
    ]
    before, now, later = transfers = [Store(file, NO_FILE) for file in files]
    for transfer in transfers:
        channel.add(transfer)
    for file in files[:2]:
        file.take(5)
    channel.adjust(now, (DEFAULT_PATH,) * 2)
    for stream in channel.live_streams():
        channel.joined(stream, now)
    # One asked whether it may announce the end before the other had announced that of the file before.
    now.ends.leave(finished=False, close=False)
    now.ends.leave(finished=False, close=False)
    assert not now.ends.taking_part
    assert later.file.todo_bytes
    assert before.ends.taking_part == 0
    opened = len(channel.live_streams())
    channel.adjust(now, (DEFAULT_PATH,) * 2)
    assert len(channel.live_streams()) == opened + 1


def test_streams_that_leave_count_no_more_and_tell_of_no_queue() -> None:
    channel = UploadDataChannel(DataPort(("127.0.0.1", 1)), a_context(block_size_bytes=BLOCK_BYTES), KERNELS)
    file = FileTransfer("source", "final", "part", FileInfo(Kind.FILE, 1))
    streams = [UploadStream(channel, Store(file, NO_FILE), DEFAULT_PATH) for _ in range(2)]
    channel._streams.extend(streams)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for stream in streams:
            stream.opened(socket.create_connection(server.getsockname()))
        streams[0].leaving = True
        totals = channel.totals()[DEFAULT_PATH]
        for stream in streams:
            stream.closed(clean=False)
    assert (totals.streams, len(totals.rtts_s)) == (1, 1)
