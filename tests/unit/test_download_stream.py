"""One connection of a download: whatever way blocks are cut on the wire, each byte gets to its place once."""

import os
import random
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.made_up_context import a_context

from mpx.endpoints.ftp.framing import EOD, EOF, BlockHeader
from mpx.endpoints.ftp.mode_e.download_stream import DownloadStream, cut
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stream import StreamTotals
from mpx.errors import MpxError

ENDS = BlockHeader(EOD | EOF, 0, 1)


class Feeds:
    """A channel that has these retrieves, for one connection."""

    def __init__(self, retrieves: Sequence[PartialRetrieve], parallelism: int) -> None:
        self.context = a_context()
        self.limiter = self.context.limiter
        self.parallelism = parallelism
        self.retrieves = retrieves
        self.errors: list[MpxError] = []
        self.has_left = threading.Event()

    def retrieve_at(self, index: int) -> PartialRetrieve | None:
        return self.retrieves[index] if index < len(self.retrieves) else None

    def fail(self, error: MpxError, spoiled: FileTransfer | None = None) -> None:
        self.errors.append(error)

    def left(self, stream: DownloadStream) -> None:
        self.has_left.set()

    def add(self, retrieve: PartialRetrieve) -> None: ...

    def forget(self, retrieve: PartialRetrieve) -> None: ...

    def totals(self) -> StreamTotals:
        return StreamTotals()


class Download:
    """A file of which parts come over one connection, and what came of it."""

    def __init__(self, folder: Path, size: int, parts: Sequence[tuple[int, int]], parallelism: int) -> None:
        self.content = random.Random(size).randbytes(size)
        self.file = FileTransfer(
            "source",
            str(folder / "final"),
            str(folder / f"{size}.part"),
            FileInfo(Kind.FILE, size, 1.0, 0o644),
            sums="adler32",
        )
        fd = self.file.open(self.file.partial, os.O_RDWR | os.O_CREAT)
        self.channel = Feeds([], parallelism)
        self.channel.retrieves = [PartialRetrieve(self.file, *part, fd, self.channel) for part in parts]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.server = socket.create_connection(listener.getsockname())
            ours = listener.accept()[0]
        self.stream = DownloadStream(self.channel, ours, first=0)

    def run(self, data: bytes, pieces: Sequence[int] = (), *, cuts: bool = False) -> None:
        """Send what the server says, in pieces of these sizes, and wait until all of it was looked at."""
        self.stream.start()
        at = 0
        for piece in (*pieces, len(data)):
            if at < len(data):  # else the stream may be over
                self.server.sendall(data[at : at + piece])
            at += piece
        if cuts:
            self.server.close()
        self.channel.has_left.wait(60)
        self.stream.join(60)
        assert not self.stream.is_alive()

    def written(self) -> bytes:
        return Path(self.file.partial).read_bytes()

    def close(self) -> None:
        self.server.close()
        self.file.close()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Download]]:
    downloads: list[Download] = []
    yield downloads
    for each in downloads:
        each.close()


def said(content: bytes, start: int, end: int, block: int, *, ends_within: bool = False) -> bytes:
    """Return the blocks of a part, as a server sends them that counts offsets from the part's start."""
    blocks = b""
    for at in range(start, end, block):
        count = min(block, end - at)
        is_last = ends_within and at + count == end
        blocks += BlockHeader(EOD if is_last else 0, count, at - start).pack() + content[at : at + count]
    return blocks


@given(
    size=st.integers(1, 3000),
    block=st.integers(1, 700),
    edge=st.integers(0, 3000),
    pieces=st.lists(st.integers(1, 400), max_size=30),
    parallelism=st.sampled_from([1, 2]),
)
def test_each_byte_gets_to_its_place(
    tmp_path_factory: pytest.TempPathFactory,
    size: int,
    block: int,
    edge: int,
    pieces: list[int],
    parallelism: int,
) -> None:
    edge = min(edge, size)
    download = Download(tmp_path_factory.mktemp("d"), size, [(0, edge), (edge, size)], parallelism)
    try:
        content = download.content
        data = said(content, 0, edge, block) + ENDS.pack() + said(content, edge, size, block) + ENDS.pack()
        download.run(data, pieces)
        assert not download.channel.errors
        assert download.written() == content
        assert all(each.is_done and not each.is_short for each in download.channel.retrieves)
        assert download.stream.passed_bytes == size
        assert sum(each.believe() for each in download.channel.retrieves) == size
    finally:
        download.close()


def test_large_blocks_are_written_whatever_the_buffer_holds(tmp_path: Path, made: list[Download]) -> None:
    size = 5 * 1024 * 1024 + 3
    made.append(Download(tmp_path, size, [(0, size)], 1))
    blocks = said(made[0].content, 0, size, 700_001, ends_within=False)
    made[0].run(blocks + ENDS.pack())
    assert made[0].written() == made[0].content
    digest = made[0].file.sums.hex(0, size, None, lambda: False)
    assert int(digest, 16) == zlib.adler32(made[0].content)


def test_blocks_of_single_bytes(tmp_path: Path, made: list[Download]) -> None:
    size = 3000
    made.append(Download(tmp_path, size, [(0, size)], 2))
    made[0].run(said(made[0].content, 0, size, 1) + ENDS.pack())
    assert not made[0].channel.errors
    assert made[0].written() == made[0].content


def test_a_part_that_ends_early_is_not_waited_for(
    tmp_path: Path, made: list[Download], eventually: Callable[..., None]
) -> None:
    """Fewer bytes came than were asked for, as the file has shrunk; nothing follows before that is seen."""
    made.append(Download(tmp_path, 2000, [(0, 1000), (1000, 2000)], 1))
    content, (first, second) = made[0].content, made[0].channel.retrieves
    made[0].stream.start()
    made[0].server.sendall(said(content, 0, 600, 250) + ENDS.pack())
    eventually(lambda: first.is_done)
    made[0].server.sendall(said(content, 1000, 2000, 300) + ENDS.pack())
    eventually(lambda: second.is_done)
    made[0].stream.join(60)
    assert (first.is_short, second.is_short) == (True, False)
    assert made[0].written()[1000:] == content[1000:]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_trickles_in_is_recorded_at_once(
    parallelism: int, tmp_path: Path, made: list[Download], eventually: Callable[..., None]
) -> None:
    """The server stops in the middle of a block, and of a header, until all before is there."""
    made.append(Download(tmp_path, 1000, [(0, 1000)], parallelism))
    content, (retrieve,) = made[0].content, made[0].channel.retrieves
    data = said(content, 0, 1000, 400) + ENDS.pack()
    made[0].stream.start()
    sent = 0
    for until, passed in ((17 + 100, 100), (17 + 400 + 5, 400), (2 * (17 + 400) + 17 + 1, 801)):
        made[0].server.sendall(data[sent:until])
        sent = until
        eventually(lambda passed=passed: made[0].stream.passed_bytes == passed)
    made[0].server.sendall(data[sent:])
    eventually(lambda: retrieve.is_done)
    made[0].stream.join(60)
    assert made[0].written() == content


def test_at_a_rate(tmp_path: Path, made: list[Download]) -> None:
    size = 300_000
    made.append(Download(tmp_path, size, [(0, size)], 1))
    made[0].channel.limiter.rate_bps = 50e6
    made[0].run(said(made[0].content, 0, size, 100_000) + ENDS.pack())
    assert made[0].written() == made[0].content


def test_the_end_may_be_said_with_the_last_data(tmp_path: Path, made: list[Download]) -> None:
    made.append(Download(tmp_path, 1000, [(0, 1000)], 1))
    blocks = said(made[0].content, 0, 1000, 400, ends_within=True)
    made[0].run(blocks)
    assert not made[0].channel.errors
    assert made[0].written() == made[0].content


def test_what_comes_out_of_order_is_not_mixed_up(tmp_path: Path, made: list[Download]) -> None:
    made.append(Download(tmp_path, 900, [(0, 900)], 2))
    content = made[0].content
    blocks = [BlockHeader(0, 300, at).pack() + content[at : at + 300] for at in (600, 0, 300)]
    made[0].run(b"".join(blocks) + ENDS.pack())
    assert made[0].written() == content


def test_what_comes_twice_is_written_once(tmp_path: Path, made: list[Download]) -> None:
    made.append(Download(tmp_path, 400, [(0, 400)], 2))
    content = made[0].content
    other = BlockHeader(0, 400, 0).pack() + bytes(400)
    made[0].run(said(content, 0, 400, 400) + other + ENDS.pack())
    assert made[0].written() == content


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (BlockHeader(0, 1000, 0).pack()[:9], "in the middle of a transfer"),
        (BlockHeader(0, 1000, 0).pack() + b"x" * 400, "in the middle of a block"),
        (BlockHeader(0, 100, 0).pack() + b"x" * 100, "in the middle of a transfer"),
        (BlockHeader(0, 1001, 0).pack(), "sends more of source than it was asked for"),
    ],
)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_is_cut_or_too_much_fails_the_channel(
    data: bytes, why: str, parallelism: int, tmp_path: Path, made: list[Download]
) -> None:
    made.append(Download(tmp_path, 1000, [(0, 1000)], parallelism))
    made[0].run(data, cuts=True)
    (error,) = made[0].channel.errors
    assert why in str(error)


def test_a_connection_that_ends_between_two_parts_is_no_error(tmp_path: Path, made: list[Download]) -> None:
    made.append(Download(tmp_path, 1000, [(0, 500), (500, 1000)], 1))
    made[0].run(said(made[0].content, 0, 500, 100) + ENDS.pack(), cuts=True)
    assert not made[0].channel.errors


@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(0, 120), st.integers(0, 120))
def test_cutting_views(data: list[bytes], one: int, other: int) -> None:
    whole = b"".join(data)
    first, last = sorted((min(one, len(whole)), min(other, len(whole))))
    found = cut([memoryview(each) for each in data], first, last)
    assert b"".join(found) == whole[first:last]
    assert all(len(each) for each in found)
