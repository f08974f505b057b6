"""What of a partial file has arrived, by the checksums of its parts: never too much, hardly too little."""

import random
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import FileInfo, Kind, Part
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.errors import NoChecksum, SourceError
from mpx.location import Location
from mpx.report import OnNote, no_note
from mpx.transfer.resume_proof import SMALLEST_PIECE, ResumeVerifier, prove

SIZE = 40 * SMALLEST_PIECE + 12_345
CONTENT = random.Random(5).randbytes(SIZE)
ALGORITHM = "adler32"


class Asked(LocalEndpoint):
    """A local endpoint in the place of the far one; counts what it is asked."""

    def __init__(self, *, writing: bool = True) -> None:
        super().__init__(Location("file", "/"), writing=writing)
        self.rounds: list[int] = []
        self.asked_bytes = 0

    def checksums(self, algorithm, parts: list[Part], stop):  # type: ignore[no-untyped-def]
        self.rounds.append(len(parts))
        self.asked_bytes += sum(part.end - part.start for part in parts)
        return super().checksums(algorithm, parts, stop)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("prove") / "source"
    file.write_bytes(CONTENT)
    return file


def a_prover(
    open_far: Callable[[], Asked],
    *,
    far_is_source: bool,
    writes_here: bool = True,
    forgot: Callable[[FileTransfer], None] = lambda _: None,
    note: OnNote = no_note,
) -> ResumeVerifier:
    return ResumeVerifier(
        open_far,
        far_is_source=far_is_source,
        writes_here=writes_here,
        forgot=forgot,
        note=note,
        stop=lambda: False,
    )


def proven(source: Path, partial: bytes, journaled: RangeSet | None = None) -> tuple[FileTransfer, Asked]:
    file = source.with_name("partial")
    file.write_bytes(partial)
    move = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE))
    move.resume(journaled or RangeSet())
    far = Asked()
    with source.open("rb") as near:
        prove(move, far, str(file), near.fileno(), len(partial), lambda: False, ALGORITHM)
    return move, far


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 900_000)), max_size=6),
    st.integers(0, SIZE),
    st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 2_000_000)), max_size=2),
)
def test_holes_damage_and_a_short_file(
    source: Path, wrong: list[tuple[int, int]], length: int, known
) -> None:
    partial = bytearray(CONTENT[:length])
    right = RangeSet([(0, length)])
    for start, size in wrong:
        end = min(start + size, length)
        for position in range(start, end):
            partial[position] = CONTENT[position] ^ 0x55
        right.remove(start, end)
    journaled = RangeSet()
    for start, size in known:
        journaled.update(right.within(start, min(start + size, SIZE)))
    move, _ = proven(source, bytes(partial), journaled)
    arrived = RangeSet([(0, SIZE)])
    for start, end in move.missing_within(0, SIZE):
        arrived.remove(start, end)
    for start, end in arrived:
        assert right.covers(start, end)  # nothing is believed that is not there
    lost = right.size - arrived.size  # at each edge of what is right, less than a piece
    assert lost <= 2 * SMALLEST_PIECE * len(right)


def test_garbage_is_soon_left_at_that(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.transfer.resume_proof.MOST_DIFFERING", 4 * SMALLEST_PIECE)
    move, far = proven(source, bytes(SIZE))
    assert move.missing_within(0, SIZE).size == SIZE
    assert far.asked_bytes <= 8 * SMALLEST_PIECE
    move, far = proven(source, CONTENT[: SIZE // 2] + bytes(SIZE - SIZE // 2))
    assert move.missing_within(0, SIZE).size <= SIZE - SIZE // 2 + SMALLEST_PIECE


def test_of_a_partial_file_here_only_what_is_no_hole_is_compared(tmp_path: Path) -> None:
    """Both have a tebibyte, which would take an hour to compare."""
    huge = 1 << 40
    for name in ("source", "partial"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(huge)
            file.seek(huge // 2)
            file.write(CONTENT)
    move = FileTransfer(
        str(tmp_path / "source"), "final", str(tmp_path / "partial"), FileInfo(Kind.FILE, huge)
    )
    far = Asked()
    notes: list[str] = []
    a_prover(lambda: far, far_is_source=True, note=lambda text, *_: notes.append(text))(move)
    assert far.asked_bytes < 2 * SIZE
    assert move.missing_within(0, huge).size == huge - move.arrived_bytes
    assert 0 < move.arrived_bytes < 2 * SIZE
    assert any("comparing" in note for note in notes)


@pytest.mark.parametrize("writes_here", [True, False])
def test_a_partial_file_is_looked_for_where_it_is_written(source: Path, writes_here: bool) -> None:
    """Here by the file that was opened, at a server by its name."""
    described: list[str] = []

    class Server(Asked):
        def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
            described.append(name)
            return super().stat(name, follow=follow)

    partial = source.with_name("partial")
    partial.write_bytes(CONTENT[: SIZE // 2])
    file = FileTransfer(str(source), "final", str(partial), FileInfo(Kind.FILE, SIZE))
    a_prover(Server, far_is_source=False, writes_here=writes_here)(file)
    assert file.missing_within(0, SIZE).size <= SIZE - SIZE // 2 + SMALLEST_PIECE
    assert described == ([] if writes_here else [str(partial)])


def test_proving_is_given_up_when_the_copy_stops(source: Path) -> None:
    file = source.with_name("partial")
    file.write_bytes(bytes(SIZE))
    move, far = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE)), Asked()
    with source.open("rb") as near:
        prove(move, far, str(file), near.fileno(), SIZE, lambda: bool(far.rounds), ALGORITHM)
    assert len(far.rounds) == 1


def test_a_server_that_refuses_every_part_is_asked_once(source: Path) -> None:
    class Refusing(Asked):
        def checksums(self, algorithm, parts, stop):  # type: ignore[no-untyped-def]
            self.rounds.append(len(parts))
            return [NoChecksum(SourceError("no parts")) for _ in parts]

    file = source.with_name("partial")
    file.write_bytes(CONTENT)
    move, far = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE)), Refusing()
    with source.open("rb") as near:
        assert prove(move, far, str(file), near.fileno(), SIZE, lambda: False, ALGORITHM) == 0
    assert len(far.rounds) == 1


def test_a_whole_file_is_proven_at_once(source: Path) -> None:
    move, far = proven(source, CONTENT)
    assert move.is_whole
    assert len(far.rounds) == 1


def test_what_the_journal_knows_is_not_asked(source: Path) -> None:
    move, far = proven(source, CONTENT, RangeSet([(0, SIZE)]))
    assert move.is_whole
    assert sum(far.rounds) == 0


def test_zeros_of_a_hole_are_not_taken_for_what_was_sent(source: Path) -> None:
    half = SIZE // 2
    move, _ = proven(source, bytes(half) + CONTENT[half:])
    assert move.missing_within(half + SMALLEST_PIECE, SIZE).size == 0
    assert move.missing_within(0, half).size >= half - SMALLEST_PIECE


def test_a_partial_file_that_has_gone(source: Path, tmp_path: Path) -> None:
    for far_is_source in (True, False):
        move = FileTransfer(str(source), "final", str(tmp_path / "gone"), FileInfo(Kind.FILE, SIZE))
        move.resume(RangeSet([(0, 1000)]))
        forgotten: list[FileTransfer] = []
        a_prover(Asked, far_is_source=far_is_source, forgot=forgotten.append)(move)
        assert move.arrived_bytes == 0
        assert forgotten == [move]


def test_stopping_ends_it(source: Path) -> None:
    file = source.with_name("partial")
    file.write_bytes(CONTENT)
    move = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE))
    with source.open("rb") as near:
        assert prove(move, Asked(), str(file), near.fileno(), SIZE, lambda: True, ALGORITHM) == 0
    assert move.arrived_bytes == 0


def test_nothing_is_believed_beyond_the_end_of_the_partial_file(source: Path) -> None:
    file = source.with_name("partial")
    file.write_bytes(CONTENT[: SMALLEST_PIECE + 5])
    move = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE))
    move.resume(RangeSet([(0, 20 * SMALLEST_PIECE)]))
    forgotten: list[FileTransfer] = []
    a_prover(Asked, far_is_source=True, forgot=forgotten.append)(move)
    assert move.arrived_bytes == SMALLEST_PIECE + 5
    assert forgotten == [move]


def test_no_session_stays_open_once_it_has_proven(source: Path) -> None:
    file = source.with_name("partial")
    file.write_bytes(CONTENT)
    open_now: list[Asked] = []

    class Counted(Asked):
        def __init__(self) -> None:
            super().__init__()
            open_now.append(self)

        def close(self) -> None:
            super().close()
            open_now.remove(self)

    prover = a_prover(Counted, far_is_source=True)
    move = FileTransfer(str(source), "final", str(file), FileInfo(Kind.FILE, SIZE))
    prover(move)
    assert move.is_whole
    assert open_now == []


def test_a_file_that_cannot_be_read_any_more_is_named(source: Path) -> None:
    move = FileTransfer(str(source), "final", str(source.with_name("partial")), FileInfo(Kind.FILE, SIZE))
    Path(move.partial).write_bytes(CONTENT)
    move.resume(RangeSet([(0, 1000)]))
    source.unlink()
    prover = a_prover(Asked, far_is_source=False)
    with pytest.raises(SourceError, match=str(source)):
        prover(move)
