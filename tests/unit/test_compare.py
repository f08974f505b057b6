"""Comparing sections of files: by the best that the far end answers, and never by reading a pipe again."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from random_bytes import random_bytes

from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import FileInfo, Kind, Part
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_stream import SourceStream
from mpx.errors import MpxError, NoChecksum, SourceError
from mpx.files.source_trees import SourceTrees
from mpx.location import Location
from mpx.transfer.compare import compare
from mpx.transfer.verify_queue import Section, VerifyQueue

CONTENT = bytes(range(256)) * 1200  # more than is read at once


class Far(LocalEndpoint):
    """Files of this host in the place of a server's, which computes some checksums and refuses others."""

    def __init__(self, *computes: str) -> None:
        super().__init__(Location("file", "/"), writing=True)
        self._computes = computes
        self.asked: list[tuple[str, int]] = []

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        self.asked.append((algorithm, len(parts)))
        if algorithm not in self._computes:
            return [NoChecksum(MpxError(f"no {algorithm}")) for _ in parts]
        return super().checksums(algorithm, parts, stop)


def section_of(file: FileTransfer) -> Section:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file.landed(0, file.size_bytes)
    verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    return section


def compared(
    far: Far, choice: ChecksumChoice, files: Sequence[FileTransfer]
) -> dict[FileTransfer, tuple[str, object]]:
    sections = [section_of(file) for file in files]
    outcomes = compare(sections, far, choice, far_is_source=False, stop=lambda: False)
    return {section.file: (algorithm, told) for section, algorithm, told in outcomes}


def a_choice(asked: str = "auto") -> ChecksumChoice:
    return ChecksumChoice(asked, lambda algorithm: algorithm in ("sha256", "md5", "adler32"))


def from_pipe(tmp_path: Path, sums: str, *, sent: bytes = CONTENT) -> FileTransfer:
    """Return a file of unknown size that was read from a pipe, which is at its end now, and stored."""
    reader, writer = os.pipe()
    stored = tmp_path / "stored"
    file = FileTransfer(f"/dev/fd/{reader}", "final", str(stored), FileInfo(Kind.FILE, None), sums=sums)
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    source, got, left, buffer = SourceStream(file, reader, lambda: False), b"", CONTENT, bytearray(5000)
    while True:
        if left:
            left = left[os.write(writer, left[: len(buffer)]) :]
            if not left:
                os.close(writer)
        came = source.read(memoryview(buffer))
        if came is None:
            break
        got += buffer[: came[1] - came[0]]
    os.close(reader)
    assert got == CONTENT
    stored.write_bytes(sent)
    return file


@pytest.mark.parametrize("asked", ["auto", "md5", "sha256", "adler32"])
@pytest.mark.parametrize("sent", [CONTENT, CONTENT[:-1] + b"x"], ids=["same", "damaged"])
def test_what_came_from_a_pipe_is_compared_without_reading_it_again(
    tmp_path: Path, asked: str, sent: bytes
) -> None:
    choice = a_choice(asked)
    file = from_pipe(tmp_path, choice.best(None), sent=sent)
    far = Far("sha256", "md5", "adler32")
    expected = choice.best(None)
    assert compared(far, choice, [file]) == {file: (expected, sent == CONTENT)}
    assert far.asked == [(expected, 1)]


@pytest.mark.parametrize("sums", ["none", "md5"])
def test_a_pipe_whose_checksum_was_not_taken_cannot_be_compared(tmp_path: Path, sums: str) -> None:
    """The server refuses the one that was taken as the bytes passed."""
    file = from_pipe(tmp_path, sums)
    ((algorithm, told),) = compared(Far("sha256"), a_choice(), [file]).values()
    assert algorithm == "none"
    assert isinstance(told, NoChecksum)


def test_sizes_have_checksums_of_their_own_and_each_is_asked_for_in_one_go(tmp_path: Path) -> None:
    files = []
    for i, size in enumerate((10, 2_000_000, 20, 3_000_000)):
        content = random_bytes(size)
        for name in (f"{i}", f"{i}.part"):
            (tmp_path / name).write_bytes(content)
        files.append(
            FileTransfer(
                str(tmp_path / f"{i}"),
                f"{i}",
                str(tmp_path / f"{i}.part"),
                FileInfo(Kind.FILE, size, 1.0, None),
                sums="none",
            )
        )
    far = Far("sha256", "md5", "adler32")
    told = compared(far, a_choice(), files)
    assert [told[file] for file in files] == [("sha256", True), ("adler32", True)] * 2
    assert far.asked == [("sha256", 2), ("adler32", 2)]


def test_what_is_refused_is_compared_by_the_next_best(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).write_bytes(CONTENT)
    file = FileTransfer(
        str(tmp_path / "here"), "final", str(tmp_path / "there"), FileInfo(Kind.FILE, len(CONTENT), 1.0, None)
    )
    far, choice = Far("md5"), a_choice()
    assert compared(far, choice, [file]) == {file: ("md5", True)}
    assert far.asked == [("sha256", 1), ("md5", 1)]
    assert choice.has_answered


def test_a_source_is_not_compared_through_a_link_in_its_tree(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_bytes(CONTENT)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/folder").symlink_to(tmp_path / "secret")
    (tmp_path / "stored").write_bytes(CONTENT)
    name, stored = str(tmp_path / "tree/folder/file"), str(tmp_path / "stored")
    for follows in (True, False):
        file = FileTransfer(name, "final", stored, FileInfo(Kind.FILE, len(CONTENT)))
        file.trees = SourceTrees()
        if not follows:
            file.trees.add(str(tmp_path / "tree"))
        ((_, outcome),) = compared(Far("adler32", "sha256"), a_choice(), [file]).values()
        assert outcome is True if follows else isinstance(outcome, SourceError)
