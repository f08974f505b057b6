"""Files on their way: no byte is handed out twice or forgotten, no file settled twice, no rate exceeded."""

import os
import random
import threading
import time
import zlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.checksum import SECTION_BYTES
from mpx.errors import Interrupted, MpxError, SourceError
from mpx.mover import CREDIT_S, Failure, Gate, Move, Pacer, Pool
from mpx.ranges import RangeSet

SIZE = 1000


def a_move(size: int = SIZE, *, sums: bool = False) -> Move:
    return Move("source", "final", ".part", size, 1.0, 0o644, sums=sums)


# --- Move --------------------------------------------------------------------------------------------

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
    move = a_move()
    under_way: list[tuple[int, int]] = []
    arrived = RangeSet()
    for step, one, other in steps:
        start, end = min(one, other), max(one, other)
        if step == "take":
            piece = move.take(one + 1)
            if piece:
                assert 0 < piece[1] - piece[0] <= one + 1
                under_way.append(piece)
        elif step == "land" and under_way:
            piece = under_way.pop(one % len(under_way))
            assert move.landed(*piece) == arrived.add(*piece)
        elif step == "lose" and under_way:
            move.give_back(*under_way.pop(one % len(under_way)))
        elif step == "land other":  # a marker tells of it, or another lane has brought it
            assert move.landed(start, end) == arrived.add(start, end)
        elif step == "redo" and arrived.covers(start, end):
            move.redo(start, end)
            arrived.remove(start, end)
        elif step == "redo missing":
            assert move.redo_missing() == SIZE - arrived.size
            under_way.clear()
        assert move.arrived_bytes == arrived.size
        assert move.is_whole == (arrived.size == SIZE)
    for piece in under_way:
        move.give_back(*piece)
    while piece := move.take(7):
        move.landed(*piece)
    assert move.is_whole
    assert move.take_news()[1] == [(0, SIZE)]
    assert move.take_news() == ([], [])
    assert move.claim_whole()
    assert not move.claim_whole()


NEWS = st.lists(
    st.tuples(
        st.sampled_from(["land", "redo", "tell", "forget", "forget beyond", "take all"]),
        st.integers(0, SIZE),
        st.integers(0, SIZE),
    ),
    max_size=40,
)


@given(NEWS)
def test_the_journal_knows_what_has_arrived_and_no_more(steps: list[tuple[str, int, int]]) -> None:
    move, journal = a_move(), RangeSet()

    def tell() -> None:
        lost, arrived = move.take_news()
        for each in lost:
            journal.remove(*each)
        journal.update(arrived)
        assert journal.missing(0, SIZE) == move.missing_within(0, SIZE)

    for step, one, other in steps:
        start, end = min(one, other), max(one, other)
        if step == "land":
            move.landed(start, end)
        elif step == "redo":
            move.redo(start, end)
        elif step == "forget":
            move.forget_arrived()
        elif step == "forget beyond":
            move.forget_beyond(start)
        elif step == "take all":
            move.take_all()
        else:
            tell()
    tell()


def test_a_piece_stays_within_its_section() -> None:
    move = a_move(2 * SECTION_BYTES + 5)
    pieces = []
    while piece := move.take(SECTION_BYTES - 1):
        pieces.append(piece)
    assert RangeSet(pieces) == RangeSet([(0, 2 * SECTION_BYTES + 5)])
    assert all(start // SECTION_BYTES == (end - 1) // SECTION_BYTES for start, end in pieces)


def test_what_is_to_be_sent_again_has_not_landed_with_the_rest() -> None:
    move = a_move()
    while move.take(100):
        pass
    move.landed(0, 500)
    move.redo(200, 300)
    move.all_landed()
    assert not move.is_whole
    assert move.missing_within(0, SIZE) == RangeSet([(200, 300)])
    assert move.take(1000) == (200, 300)


def test_a_file_given_up_is_not_taken_up_again() -> None:
    move = a_move()
    piece = move.take(100)
    assert piece
    assert move.claim_given_up()
    assert not move.claim_given_up()
    move.give_back(*piece)
    assert move.take(100) is None
    move.landed(0, SIZE)
    assert not move.claim_whole()
    move.redo(0, 10)
    assert move.take(100) is None


def test_resume() -> None:
    move = a_move()
    move.resume(RangeSet([(100, 300), (900, 2000)]))  # a journal may tell anything
    move.landed(0, 50)  # proven by checksum
    move.plan()
    assert move.resumed_bytes == 350
    assert move.todo_bytes == 650
    move.forget_arrived()
    assert (move.resumed_bytes, move.todo_bytes) == (0, SIZE)


def test_the_descriptor_lives_until_its_last_user_has_gone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    move = a_move()
    fd = move.open(str(tmp_path / "file"), os.O_RDONLY)
    assert move.open(str(tmp_path / "file"), os.O_RDONLY) == fd
    move.close()
    assert os.pread(fd, 3, 0) == b"012"
    move.close()
    with pytest.raises(OSError, match="descriptor"):
        os.pread(fd, 3, 0)


def test_sums_are_taken_while_others_pass() -> None:
    content = random.Random(1).randbytes(200_000)
    move = a_move(len(content), sums=True)
    failed: list[BaseException] = []

    def pass_by(first: int) -> None:
        for start in range(first, len(content), 400):
            move.summed(start, start + 100, zlib.adler32(content[start : start + 100]))

    def look() -> None:
        try:
            while any(thread.is_alive() for thread in threads):
                assert whole_sum() == zlib.adler32(content)
        except BaseException as error:
            failed.append(error)

    def whole_sum() -> int:
        return move.section_sum(0, len(content), lambda a, b, value: zlib.adler32(content[a:b], value))

    threads = [threading.Thread(target=pass_by, args=(first,)) for first in (0, 100, 200, 300)]
    looking = threading.Thread(target=look)
    for thread in [*threads, looking]:
        thread.start()
    for thread in [*threads, looking]:
        thread.join()
    assert not failed
    assert whole_sum() == zlib.adler32(content)


# --- Pool --------------------------------------------------------------------------------------------


def test_the_pool_hands_each_file_to_one_lane_and_ends_when_all_are_settled() -> None:
    pool = Pool(threading.Event(), limit=10)
    seen: list[Move] = []
    again = threading.Lock()
    put_again: set[Move] = set()

    def lane() -> None:
        while (move := pool.take()) is not None:
            with again:
                seen.append(move)
                once_more = len(seen) % 7 == 0 and move not in put_again
                if once_more:
                    put_again.add(move)
            if once_more:
                pool.put_again(move)
            else:
                pool.settle(move)

    lanes = [threading.Thread(target=lane) for _ in range(4)]
    for thread in lanes:
        thread.start()
    moves = [a_move(i) for i in range(500)]
    for move in moves:
        pool.put(move)
    pool.end_listing()
    for thread in lanes:
        thread.join(30)
    assert pool.is_settled
    assert set(seen) == set(moves)
    assert len(seen) == len(moves) + len(put_again)
    assert (pool.listed_files, pool.listed_bytes) == (500, sum(range(500)))


def test_a_full_pool_makes_the_lister_wait(eventually) -> None:
    pool = Pool(threading.Event(), limit=3)
    lister = threading.Thread(target=lambda: [pool.put(a_move()) for _ in range(5)])
    lister.start()
    eventually(lambda: pool.listed_files == 3)
    lister.join(0.05)
    assert lister.is_alive()
    pool.take()
    pool.take()
    lister.join(30)
    assert pool.listed_files == 5


def test_files_that_are_not_settled_make_the_lister_wait(eventually) -> None:
    pool = Pool(threading.Event(), most_unsettled=3)
    lister = threading.Thread(target=lambda: [pool.put(a_move()) for _ in range(5)])
    lister.start()
    taken = [pool.take() for _ in range(3)]
    assert pool.listed_files == 3
    pool.put_again(taken[0])  # one that has to move again always finds a place
    for move in taken:
        pool.settle(move)
    lister.join(10)
    assert pool.listed_files == 5


@pytest.mark.parametrize("what", ["put", "take"])
def test_stopping_ends_every_wait_for_the_pool(what: str) -> None:
    cancel, ended = threading.Event(), []
    pool = Pool(cancel, limit=1)
    if what == "put":
        pool.put(a_move())

    def wait() -> None:
        try:
            pool.put(a_move()) if what == "put" else pool.take()
        except Interrupted as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    cancel.set()
    thread.join(30)
    assert len(ended) == 1


def test_taking_more_never_waits() -> None:
    pool = Pool(threading.Event())
    assert pool.take_more(lambda _: True) is None
    pool.put(a_move(10))
    assert pool.take_more(lambda move: move.size_bytes < 10) is None
    assert pool.take_more(lambda move: move.size_bytes == 10) is not None


# --- Pacer, Gate, Failure -------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 8])
def test_the_pacer_is_exact_over_all_streams(threads: int) -> None:
    """Never faster; and not slower either, unless the machine is: then it is measured once more."""
    rate_bps, size = 80e6, 10_000_000
    figures = []
    for _ in range(4):
        pacer = Pacer(threading.Event(), rate_bps)
        piece = pacer.piece(256 * 1024)
        assert piece == 200_000  # 20 ms

        def stream(pacer: Pacer = pacer, piece: int = piece) -> None:
            for _ in range(size // threads // piece):
                pacer.wait(piece)

        streams = [threading.Thread(target=stream) for _ in range(threads)]
        began_s = time.monotonic()
        for thread in streams:
            thread.start()
        for thread in streams:
            thread.join()
        pieces = threads * (size // threads // piece)
        took_s, wanted_s = time.monotonic() - began_s, (pieces - 1) * piece * 8 / rate_bps
        assert took_s >= wanted_s - CREDIT_S
        figures.append(took_s / wanted_s)
        if abs(figures[-1] - 1) <= 0.03 + CREDIT_S / wanted_s:
            return
    raise AssertionError(f"the rate is not kept: {figures}")


def test_time_lost_is_made_up_for_only_a_little() -> None:
    pacer = Pacer(threading.Event(), 8e6)
    pacer.wait(1000)
    time.sleep(3 * CREDIT_S)  # a machine that stalls
    began_s = time.monotonic()
    for _ in range(200):
        pacer.wait(1000)  # 200 kB at 1 MB/s
    assert time.monotonic() - began_s >= 0.2 - CREDIT_S - 0.002


def test_an_unlimited_pacer_and_a_stopped_one_do_not_wait() -> None:
    Pacer(threading.Event()).wait(1 << 60)
    cancel = threading.Event()
    cancel.set()
    Pacer(cancel, 1.0).wait(1 << 20)
    assert Pacer(cancel).piece(5) == 5
    assert Pacer(cancel, 1.0).piece(1 << 20) == 1460


@given(st.lists(st.tuples(st.sampled_from(["open", "take", "give back"]), st.integers(1, 1000)), max_size=40))
def test_the_gate_lets_through_what_it_was_told_and_no_more(steps: list[tuple[str, int]]) -> None:
    gate = Gate()
    left: int | None = None
    passed = taken = 0
    for step, size in steps:
        if step == "open":
            left = size
            gate.open(size)
        elif step == "take" and left != 0:
            got = gate.take(size)
            assert got == (size if left is None else min(left, size))
            passed, taken = passed + got, taken + got
            left = None if left is None else left - got
        elif step == "give back" and taken >= size:
            gate.give_back(size)
            passed, taken = passed - size, taken - size
            left = None if left is None else left + size
        assert gate.passed_bytes == passed
        assert gate.is_shut == (left == 0)
    gate.open(None)
    assert gate.take(1 << 40) == 1 << 40


def test_a_shut_gate_is_opened_again() -> None:
    gate = Gate()
    gate.open(10)
    assert gate.take(100) == 10
    assert gate.take(100) == 0
    gate.open(5)
    assert gate.take(100) == 5


def test_the_first_failure_counts() -> None:
    failure = Failure(threading.Event())
    failure.set(SourceError("first"))
    failure.set(MpxError("second"))
    assert failure.cancel.is_set()
    assert str(failure.error) == "first"
    stopped = Failure(threading.Event())
    stopped.cancel.set()
    stopped.set(MpxError("what stopping brings about"))
    assert stopped.error is None


def test_a_file_that_was_claimed_whole_cannot_be_given_up() -> None:
    move = a_move(10)
    move.landed(0, 10)
    assert move.claim_whole()
    assert not move.claim_given_up()
    assert not move.is_given_up
