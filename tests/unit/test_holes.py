"""Sparse files: holes are found, are read before they are believed, and stay holes in copies on this host."""

import errno
import hashlib
import os
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sites import partials

import mpx
from mpx.engine import checksum
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.holes import adler32_of_zeros, is_sparse, lost_from, next_data

MIB = 1024 * 1024
Pieces = list[tuple[int, bytes]]


def sparse(path: Path, size: int, pieces: Pieces) -> Path:
    with path.open("wb") as out:
        for start, data in pieces:
            out.seek(start)
            out.write(data)
        out.truncate(size)
    if size and path.stat().st_blocks * 512 >= size:
        pytest.skip("the file system of the tests has no sparse files")
    return path


def taken(path: Path) -> int:
    return path.stat().st_blocks * 512


@given(st.integers(0, 300_000))
def test_the_sum_of_zeros(size: int) -> None:
    assert adler32_of_zeros(size) == zlib.adler32(bytes(size))


SHAPES: dict[str, tuple[int, Pieces]] = {
    "all hole": (70 * MIB, []),
    "a hole first": (70 * MIB + 5, [(70 * MIB, b"12345")]),
    "a hole last": (70 * MIB + 5, [(0, b"12345")]),
    "in the middle": (80 * MIB, [(0, os.urandom(MIB)), (79 * MIB + 7, os.urandom(1000))]),
    "small": (100_001, [(50_000, b"12345")]),
    "many": (8 * MIB, [(i * 64 * 1024, os.urandom(4096)) for i in range(0, 128, 2)]),
    "holes as dense as can be": (400_000, [(i * 8192, os.urandom(4096)) for i in range(48)]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_data_and_holes_make_the_file(tmp_path: Path, shape: str) -> None:
    size, pieces = SHAPES[shape]
    with sparse(tmp_path / "file", size, pieces).open("rb") as path:
        position = 0
        while position < size:
            first, last = next_data(path.fileno(), position, size)
            assert position <= first <= last <= size
            path.seek(position)
            assert not path.read(first - position).strip(b"\0")
            position = last
        assert is_sparse(os.fstat(path.fileno()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cut", [0, 1, 4096, 5 * MIB])
def test_the_sum_of_a_sparse_file_is_that_of_its_bytes(tmp_path: Path, shape: str, cut: int) -> None:
    size, pieces = SHAPES[shape]
    content = sparse(tmp_path / "file", size, pieces)
    with content.open("rb") as path:
        path.seek(cut)
        data = path.read()
        sums = {"adler32": f"{zlib.adler32(data):08x}", "sha256": hashlib.sha256(data).hexdigest()}
        for algorithm, expected in sums.items():
            assert checksum.of_file(algorithm, path.fileno(), cut, size) == expected
            assert checksum.of_file(algorithm, path.fileno(), cut, size + MIB) == expected  # beyond the end


@pytest.mark.parametrize("algorithm", ["xxh3", "adler32", "sha256", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_holes_stay_holes(tmp_path: Path, shape: str, algorithm: str) -> None:
    size, pieces = SHAPES[shape]
    source = sparse(tmp_path / "source", size, pieces)
    mpx.copy(str(source), str(tmp_path / "copy"), mpx.CopyOptions(checksum=algorithm))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert taken(tmp_path / "copy") <= taken(source) + 64 * 1024


def test_a_sparse_file_takes_no_more_room_than_it_has(tmp_path: Path) -> None:
    """One that is larger than the disk is copied where its data fit; to read its holes would take long."""
    status = os.statvfs(tmp_path)
    size = status.f_bavail * status.f_frsize + 1024 * MIB
    try:
        source = sparse(tmp_path / "source", size, [(size - 5, b"12345")])
    except OSError:
        pytest.skip("no file can be so large here")
    mpx.copy(str(source), str(tmp_path / "copy"), mpx.CopyOptions(checksum="none"))
    with (tmp_path / "copy").open("rb") as copy:
        assert os.fstat(copy.fileno()).st_size == size
        copy.seek(size - 10)
        assert copy.read() == bytes(5) + b"12345"


def test_zeros_replace_what_came_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found wrong is copied once more, holes too: they may hold something by then."""
    size = 70 * MIB
    source = sparse(tmp_path / "source", size, [(0, os.urandom(MIB))])
    landed = FileTransfer.landed
    damaged, one_at_a_time = [], threading.Lock()

    def spoiling(file: FileTransfer, start: int, end: int) -> int:
        with one_at_a_time:
            if file.arrived_bytes + end - start == size and not damaged:  # nothing is written after that
                damaged.append(True)
                (part,) = partials(tmp_path)
                with part.open("r+b") as out:
                    out.seek(30 * MIB)
                    out.write(b"not zeros")
            return landed(file, start, end)

    monkeypatch.setattr(FileTransfer, "landed", spoiling)
    report = mpx.copy(str(source), str(tmp_path / "copy"))
    assert any("damaged, sent again" in note for note in report.notes)
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


def test_an_interrupted_copy_of_a_sparse_file_goes_on(tmp_path: Path) -> None:
    """What was a hole beyond the end of the partial file is a hole in the end."""
    size = 300 * MIB
    source = sparse(tmp_path / "source", size, [(0, os.urandom(8 * MIB)), (290 * MIB, os.urandom(8 * MIB))])
    cancel = threading.Event()
    with pytest.raises(mpx.Interrupted):
        mpx.copy(
            str(source),
            str(tmp_path / "copy"),
            mpx.CopyOptions(rate_bps=40e6),
            cancel=cancel,
            on_progress=lambda progress: cancel.set() if progress.bytes_done else None,
        )
    report = mpx.copy(str(source), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert report.bytes.resumed
    assert taken(tmp_path / "copy") <= taken(source) + 64 * 1024


LIES = {  # a file system says, of data, that there are none up to the end, or up to somewhere
    "to the end": lambda size: size,
    "to within": lambda size: size // 2 + 12345,
}


@pytest.mark.parametrize("algorithm", ["xxh3", "adler32", "sha256"])
@pytest.mark.parametrize("lie", LIES)
def test_data_that_are_said_to_be_a_hole_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str, algorithm: str
) -> None:
    size = 70 * MIB
    source = sparse(tmp_path / "source", size, [(3 * MIB + 5, os.urandom(2 * MIB)), (66 * MIB, b"end")])
    true = os.lseek

    def lying(fd: int, position: int, how: int) -> int:
        if how == os.SEEK_DATA and os.readlink(f"/proc/self/fd/{fd}") == str(source):
            if position >= LIES[lie](size):
                return true(fd, position, how)
            if LIES[lie](size) == size:
                raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
            return LIES[lie](size)
        return true(fd, position, how)

    monkeypatch.setattr(os, "lseek", lying)
    report = mpx.copy(str(source), str(tmp_path / "copy"), mpx.CopyOptions(checksum=algorithm))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert not report.notes
    assert taken(tmp_path / "copy") <= taken(source) + 4 * MIB


def test_zeros_are_read_where_the_cache_cannot_be_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = sparse(tmp_path / "source", 10 * MIB, [(7 * MIB, b"data")])
    opened = os.open

    def without(name: str, flags: int, *args: object, **kwargs: object) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return opened(name, flags, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", without)
    report = mpx.copy(str(source), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert report.checksum["result"] == "verified"


def test_what_has_arrived_can_be_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections are compared while later ones move: a hole at the end of what is there is there by then."""
    source = sparse(tmp_path / "source", 300 * MIB, [(0, b"begin"), (299 * MIB, b"end")])
    landed = FileTransfer.landed
    short = []

    def looking(file: FileTransfer, start: int, end: int) -> int:
        (part,) = partials(tmp_path)
        if part.stat().st_size < end:
            short.append(end)
        return landed(file, start, end)

    monkeypatch.setattr(FileTransfer, "landed", looking)
    mpx.copy(str(source), str(tmp_path / "copy"))
    assert not short


def test_zeros_replace_what_came_damaged_while_the_rest_still_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 200 * MIB
    source = sparse(tmp_path / "source", size, [(0, b"begin"), (199 * MIB, b"end")])
    landed = FileTransfer.landed
    damaged = []

    def spoiling(file: FileTransfer, start: int, end: int) -> int:
        new = landed(file, start, end)
        if start >= 64 * MIB and not damaged:
            damaged.append(True)
            (part,) = partials(tmp_path)
            with part.open("r+b") as out:
                out.seek(30 * MIB)
                out.write(b"not zeros")
            file.redo(0, 64 * MIB)
        return new

    monkeypatch.setattr(FileTransfer, "landed", spoiling)
    mpx.copy(str(source), str(tmp_path / "copy"), mpx.CopyOptions(checksum="none"))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("algorithm", ["xxh3", "none"])
def test_a_source_that_cannot_be_read_is_no_fault_of_the_destination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    source = sparse(tmp_path / "source", 10 * MIB, [(0, b"begin")])
    true = os.lseek

    def broken(fd: int, position: int, how: int) -> int:
        if how == os.SEEK_DATA:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return true(fd, position, how)

    monkeypatch.setattr(os, "lseek", broken)
    with pytest.raises(mpx.SourceError, match=f"cannot read {source}: Input/output error"):
        mpx.copy(str(source), str(tmp_path / "copy"), mpx.CopyOptions(checksum=algorithm))


@pytest.mark.parametrize("has_hole", [True, False])
def test_reads_may_give_less_than_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_hole: bool
) -> None:
    """As on network file systems: only a read of nothing is the end."""
    source, content = tmp_path / "source", os.urandom(3 * MIB)
    if has_hole:
        sparse(source, 5 * MIB, [(MIB, content)])
    else:
        source.write_bytes(content)
    read = os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda fd, buffers, position: read(fd, [buffers[0][:100_000]], position)
    )
    mpx.copy(str(source), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


def test_what_was_cut_while_it_was_written_is_lost(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb+", buffering=0) as file:
        fd = file.fileno()
        os.pwrite(fd, bytes(4_000_000), 0)  # zeros that were written are none that are lost
        assert lost_from(fd, 0, 4_000_000) is None
        assert lost_from(fd, 0, 4_000_001) == 4_000_000
        os.ftruncate(fd, 1_000_000)
        os.pwrite(fd, b"x" * 1_000_000, 3_000_000)
        lost = lost_from(fd, 0, 4_000_000)
        assert lost is not None
        assert 1_000_000 <= lost < 1_100_000
        assert lost_from(fd, 3_100_000, 4_000_000) is None
        assert lost_from(fd, 4_000_000, 4_000_000) is None
        assert os.pread(fd, 2_000_000, 1_000_000) == bytes(2_000_000)
