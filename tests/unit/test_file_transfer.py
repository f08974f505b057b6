"""One file on its way: no byte is handed out twice or forgotten, and it is settled once."""

import os
import random
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from unit.made_up_context import a_file

from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.errors import ConnectionLost
from mpx.files.partial_file import PartialFile

SIZE = 1000

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "land", "lose", "land other", "redo", "redo missing"]),
        st.integers(0, SIZE),
        st.integers(0, SIZE),
    ),
    max_size=60,
)


@given(STEPS)
def test_every_byte_waits_is_under_way_or_has_arrived(steps: list[tuple[str, int, int]]) -> None:
    file = a_file(SIZE)
    under_way: list[tuple[int, int]] = []
    arrived = RangeSet()
    for step, one, other in steps:
        start, end = min(one, other), max(one, other)
        if step == "take":
            piece = file.take(one + 1)
            if piece:
                assert 0 < piece[1] - piece[0] <= one + 1
                under_way.append(piece)
        elif step == "land" and under_way:
            piece = under_way.pop(one % len(under_way))
            assert file.landed(*piece) == arrived.add(*piece)
        elif step == "lose" and under_way:
            file.give_back(*under_way.pop(one % len(under_way)))
        elif step == "land other":  # a marker tells of it, or another worker has brought it
            assert file.landed(start, end) == arrived.add(start, end)
        elif step == "redo" and arrived.covers(start, end):
            file.redo(start, end)
            arrived.remove(start, end)
        elif step == "redo missing":
            assert file.redo_missing() == SIZE - arrived.size
            under_way.clear()
        assert file.arrived_bytes == arrived.size
        assert file.is_whole == (arrived.size == SIZE)
    for piece in under_way:
        file.give_back(*piece)
    while piece := file.take(7):
        file.landed(*piece)
    assert file.is_whole
    assert file.take_news()[1] == [(0, SIZE)]
    assert file.take_news() == ([], [])
    assert file.claim_whole()
    assert not file.claim_whole()


NEWS = st.lists(
    st.tuples(
        st.sampled_from(["land", "redo", "tell", "forget", "forget beyond", "take all"]),
        st.integers(0, SIZE),
        st.integers(0, SIZE),
    ),
    max_size=40,
)


def test_what_another_holds_is_not_handed_out_again_until_it_is_let_go() -> None:
    file = a_file(SIZE)
    assert file.take(SIZE) == (0, SIZE)
    assert file.hold(0, 100) == [(0, 100)]
    file.landed(100, 200)
    file.give_back(0, 300)
    assert file.take(SIZE) == (200, 300)
    assert not file.not_here(0, 200) and list(file.not_here(50, 201)) == [(200, 201)]
    file.disbelieve([(0, 100)])
    file.give_back(0, 100)
    assert file.take(SIZE) == (0, 100)


@given(NEWS)
def test_the_journal_knows_what_has_arrived_and_no_more(steps: list[tuple[str, int, int]]) -> None:
    file, journal = a_file(SIZE), RangeSet()

    def tell() -> None:
        has_news = file.has_news
        lost, arrived = file.take_news()
        assert has_news == bool(lost or arrived)
        for each in lost:
            journal.remove(*each)
        journal.update(arrived)
        assert journal.missing(0, SIZE) == file.missing_within(0, SIZE)

    for step, one, other in steps:
        start, end = min(one, other), max(one, other)
        if step == "land":
            file.landed(start, end)
        elif step == "redo":
            file.redo(start, end)
        elif step == "forget":
            file.forget_arrived()
        elif step == "forget beyond":
            file.forget_beyond(start)
        elif step == "take all":
            file.take_all()
        else:
            tell()
    tell()


def test_a_piece_stays_within_its_section() -> None:
    file = a_file(2 * SECTION_BYTES + 5)
    pieces = []
    while piece := file.take(SECTION_BYTES - 1):
        pieces.append(piece)
    assert RangeSet(pieces) == RangeSet([(0, 2 * SECTION_BYTES + 5)])
    assert all(start // SECTION_BYTES == (end - 1) // SECTION_BYTES for start, end in pieces)


def test_what_is_to_be_sent_again_has_not_landed_with_the_rest() -> None:
    file = a_file(SIZE)
    while file.take(100):
        pass
    file.landed(0, 500)
    file.redo(200, 300)
    file.all_landed()
    assert not file.is_whole
    assert file.missing_within(0, SIZE) == RangeSet([(200, 300)])
    assert file.take(1000) == (200, 300)


@pytest.mark.parametrize(
    "again",
    [FileTransfer.forget_arrived, FileTransfer.take_all, FileTransfer.stream, lambda m: m.redo(0, SIZE)],
)
def test_what_is_moved_again_is_compared_again(again: Callable[[FileTransfer], object]) -> None:
    file = a_file(SIZE)
    file.landed(0, SIZE)
    file.found_same(0, SIZE, "sha256")
    again(file)
    assert not file.verified.size


def test_nothing_that_is_there_is_written_over() -> None:
    """Neither what has arrived nor what another session holds: this one may bring another part."""
    file = a_file(SIZE)
    file.landed(0, 5)
    assert file.hold(0, 10) == [(5, 10)]
    assert file.hold(3, 12) == [(10, 12)]
    assert file.hold(0, 12) == []
    file.disbelieve([(5, 10)])
    assert file.hold(0, 20) == [(5, 10), (12, 20)]
    file.redo(0, 3)
    assert file.hold(0, 20) == [(0, 3)]


def test_nothing_stays_held_where_pieces_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.file_transfer.MOST_PIECES", 3)
    file, pieces = a_file(SIZE), [(start, start + 1) for start in range(0, 15, 5)]
    file.landed(900, 901)
    file.landed(910, 911)
    for piece in pieces:
        assert file.hold(*piece)
    with pytest.raises(ConnectionLost):
        file.believe(pieces)
    assert file.hold(*pieces[-1])


def test_a_file_given_up_is_not_taken_up_again() -> None:
    file = a_file(SIZE)
    piece = file.take(100)
    assert piece
    assert file.claim_given_up()
    assert not file.claim_given_up()
    file.give_back(*piece)
    assert file.take(100) is None
    file.landed(0, SIZE)
    assert not file.claim_whole()
    file.redo(0, 10)
    assert file.take(100) is None


def test_resume() -> None:
    file = a_file(SIZE)
    file.resume(RangeSet([(100, 300), (900, 2000)]))  # a journal may tell anything
    file.landed(0, 50)  # proven by checksum
    file.plan()
    assert file.resumed_bytes == 350
    assert file.todo_bytes == 650
    file.forget_arrived()
    assert (file.resumed_bytes, file.todo_bytes) == (0, SIZE)


def test_the_descriptor_lives_until_its_last_user_has_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    file = a_file(SIZE)
    fd = file.open(str(tmp_path / "file"), os.O_RDONLY)
    assert file.open(str(tmp_path / "file"), os.O_RDONLY) == fd
    file.close()
    assert os.pread(fd, 3, 0) == b"012"
    file.close()
    with pytest.raises(OSError, match="descriptor"):
        os.pread(fd, 3, 0)


def test_sums_are_taken_while_others_pass(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(200_000)
    (tmp_path / "file").write_bytes(content)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    file = a_file(len(content), sums="adler32")
    failed: list[BaseException] = []

    def pass_by(first: int) -> None:
        for start in range(first, len(content), 400):
            file.sums.passed(start, memoryview(content)[start : start + 100])

    def look() -> None:
        try:
            while any(thread.is_alive() for thread in threads):
                assert whole_sum() == zlib.adler32(content)
        except BaseException as error:
            failed.append(error)

    def whole_sum() -> int:
        return int(file.sums.hex(0, len(content), fd, lambda: False), 16)

    threads = [threading.Thread(target=pass_by, args=(first,)) for first in (0, 100, 200, 300)]
    looking = threading.Thread(target=look)
    for thread in [*threads, looking]:
        thread.start()
    for thread in [*threads, looking]:
        thread.join()
    assert not failed
    assert whole_sum() == zlib.adler32(content)
    os.close(fd)


def test_a_file_that_was_claimed_whole_cannot_be_given_up() -> None:
    file = a_file(10)
    file.landed(0, 10)
    assert file.claim_whole()
    assert not file.claim_given_up()
    assert not file.is_given_up


def test_nothing_is_created_of_a_file_while_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A straggler sees that a file is not claimed, and creates it: nobody claims it in between."""
    file = a_file(1000)
    claimed = threading.Event()
    claims = threading.Thread(target=lambda: (file.claim_given_up(), claimed.set()))

    def opened(_: PartialFile, *, create: bool) -> int:
        claims.start()
        assert create and not claimed.wait(0.1)
        return 0

    monkeypatch.setattr(PartialFile, "open", opened)
    file.open(file.partial, os.O_RDWR | os.O_CREAT)
    claims.join()
    assert file.is_given_up
