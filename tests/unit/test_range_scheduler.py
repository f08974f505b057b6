"""RangeScheduler: how many files of a download are opened at once, and what of them is taken over."""

import gc
import os
import time
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from unit.made_up_context import Onlooker, a_context, a_file

from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.endpoints.sftp.download import Download
from mpx.endpoints.sftp.jobs import Job, Moving
from mpx.endpoints.sftp.request_window import RequestWindow
from mpx.endpoints.sftp.upload import Upload
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import STUCK_ANSWERS, STUCK_S, Pending, Piece, RangeScheduler, Taker
from mpx.engine.stream import StreamTotals
from mpx.errors import DestinationError, MpxError


def a_scheduler(most: int | None) -> tuple[RangeScheduler, list[FileTransfer]]:
    context = a_context(files=most)
    files = [FileTransfer(f"{i}", f"{i}", f".{i}.part", FileInfo(Kind.FILE, 10)) for i in range(4)]
    for file in files:
        context.queue.put(file)
    return RangeScheduler(context), files


def opened(scheduler: RangeScheduler) -> list[str]:
    found = []
    while piece := scheduler.take(100):
        found.append(piece.file.source)
    return found


def test_all_that_wait_are_opened() -> None:
    scheduler, _ = a_scheduler(None)
    assert opened(scheduler) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("ending", ["whole", "given up"])
def test_no_more_than_the_user_allows(ending: str) -> None:
    scheduler, files = a_scheduler(2)
    assert opened(scheduler) == ["0", "1"]
    if ending == "whole":
        files[0].landed(0, 9)
        assert opened(scheduler) == []
        files[0].landed(9, 10)
        assert files[0].claim_whole()
    else:
        assert files[0].claim_given_up()
    assert opened(scheduler) == ["2"]


def test_whole_files_are_bounded_too() -> None:
    scheduler, files = a_scheduler(1)
    first = scheduler.take_file()
    assert first is not None
    assert scheduler.take_file() is None
    files[0].landed(0, 10)
    files[0].claim_whole()
    second = scheduler.take_file()
    assert second is not None
    assert second.file is files[1]


def test_what_comes_late_is_taken_over_once_and_forgotten_with_its_file() -> None:
    scheduler = RangeScheduler(a_context())
    file = a_file(1000)
    channel = DownloadDataChannel(a_context(), 1, "127.0.0.1")
    late = [Pending(PartialRetrieve(file, 200, 500, -1, channel), in_s=60, goodput=5.0)]
    file.landed(200, 300)
    piece = scheduler.take_over(late, 1000, IDLE)
    assert piece == Piece(file, 300, 500)
    assert scheduler.take_over(late, 1000, IDLE) is None
    forgotten = weakref.ref(file)
    del file, late, piece
    gc.collect()
    assert forgotten() is None
    channel.cut()


class NoChannel:
    """Stands for connections over which nothing comes."""

    def add(self, retrieve: PartialRetrieve) -> None: ...

    def forget(self, retrieve: PartialRetrieve) -> None: ...

    def totals(self) -> StreamTotals:
        return StreamTotals()


IDLE = Taker(0.0, 9e6, is_idle=True)


def size_of(piece: Piece | None) -> int:
    assert piece is not None
    return piece.end - piece.start


def busy_for(seconds: float) -> Taker:
    """One that is as quick, and has something to do."""
    return Taker(seconds, 9e6, is_idle=False)


def a_late_one(file: FileTransfer, start: int, end: int, goodput: float) -> Pending:
    """A range of which nothing has come, at a worker that brings so many bytes a second."""
    fetch = PartialRetrieve(file, start, end, -1, NoChannel())
    return Pending(fetch, (end - start) / goodput, goodput)


def test_both_ends_of_what_is_taken_over_come_at_the_same_time() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(10_000_000)
    late = [a_late_one(file, 0, 10_000_000, 1e6)]
    piece = scheduler.take_over(late, 100_000_000, IDLE)
    assert piece is not None
    assert (piece.end, round(piece.start / 1e6, 2)) == (10_000_000, 1.0)  # a second for either
    assert scheduler.take_over(late, 100_000_000, busy_for(1.0)) is None


def test_no_more_is_taken_over_than_a_piece_and_the_latest_first() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(20_000_000)
    late = [a_late_one(file, 0, 10_000_000, 2e6), a_late_one(file, 10_000_000, 20_000_000, 1e6)]
    assert scheduler.take_over(late, 4_000_000, IDLE) == Piece(file, 16_000_000, 20_000_000)
    assert scheduler.take_over(late, 4_000_000, busy_for(0.4)) == Piece(file, 12_000_000, 16_000_000)
    assert scheduler.take_over(late, 4_000_000, busy_for(0.8)) == Piece(file, 6_000_000, 10_000_000)


def test_who_is_not_much_quicker_takes_a_small_part() -> None:
    scheduler, file = RangeScheduler(a_context(), smallest_piece=1000), a_file(1_000_000)
    late = [a_late_one(file, 0, 1_000_000, 1e6)]
    piece = scheduler.take_over(late, 1_000_000, Taker(0.5, 1e6, is_idle=False))
    assert piece is not None and piece.end - piece.start == 250_000
    late = [a_late_one(file, 0, 700_000, 1e6)]
    assert scheduler.take_over(late, 1_000_000, Taker(0.3, 2000.0, is_idle=False)) is None  # too late by then
    piece = scheduler.take_over(late, 1_000_000, Taker(0.3, 3000.0, is_idle=False))
    assert piece is not None and piece.end - piece.start == 1196


def test_what_comes_as_soon_where_it_is_stays_there() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    late = [a_late_one(file, 0, 1_000_000, 1e6)]
    assert scheduler.take_over(late, 1_000_000, busy_for(0.8)) is None
    assert scheduler.take_over(late, 1_000_000, busy_for(0.5)) is not None


def test_who_has_nothing_to_do_takes_what_was_asked_for_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    soon = [a_late_one(file, 0, 1_000_000, 1e8)]
    assert scheduler.take_over(soon, 1_000_000, IDLE) is None
    now_s = time.monotonic() + STUCK_S
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert scheduler.take_over(soon, 1_000_000, busy_for(0.01)) is None
    assert scheduler.take_over(soon, 1_000_000, IDLE) is not None


def test_what_all_wait_for_long_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    soon = [a_late_one(file, 0, 1_000_000, 1e8)]
    patient = Taker(0.0, 9e6, is_idle=True, answer_s=1.0)
    now_s = time.monotonic() + STUCK_S
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert scheduler.take_over(soon, 1_000_000, patient) is None
    monkeypatch.setattr(time, "monotonic", lambda: now_s + STUCK_ANSWERS)
    assert scheduler.take_over(soon, 1_000_000, patient) is not None


def test_pieces_are_worth_a_request_towards_the_end_too() -> None:
    context = a_context()
    context.queue.put(FileTransfer("file", "file", ".file.part", FileInfo(Kind.FILE, 60_000_000)))
    scheduler = RangeScheduler(context)
    first, second, third = (size_of(scheduler.take(64_000_000, least)) for least in (0, 0, 30_000_000))
    assert first == 15_000_000
    assert second < first < 30_000_000 <= third
    assert size_of(scheduler.take(64_000_000, 60_000_000)) == 60_000_000 - first - second - third
    file = a_file(10_000_000)
    late = [a_late_one(file, 0, 10_000_000, 1e6)]
    worth = Taker(0.0, 1e6, is_idle=True, answer_s=1.0, least=8_000_000)
    assert RangeScheduler(a_context()).take_over(late, 64_000_000, worth) == Piece(
        file, 2_000_000, 10_000_000
    )


def test_what_was_taken_over_is_left_where_it_comes_soon_and_taken_again_where_it_does_not() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    late, quick = a_late_one(file, 0, 1_000_000, 1e3), a_late_one(file, 400_000, 1_000_000, 1e7)
    piece = scheduler.take_over([late, quick], 1_000_000, IDLE)
    assert piece is not None and piece.end == 400_000
    scheduler, slow = RangeScheduler(a_context()), a_late_one(file, 400_000, 1_000_000, 2e3)
    piece = scheduler.take_over([slow, late], 200_000, IDLE)
    assert piece == Piece(file, 200_000, 400_000)  # of the latest
    scheduler = RangeScheduler(a_context())
    assert scheduler.take_over([slow], 200_000, IDLE) == Piece(file, 800_000, 1_000_000)
    assert scheduler.take_over([slow], 200_000, IDLE) == Piece(file, 600_000, 800_000)


def test_what_another_holds_is_not_taken_over() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    late = [a_late_one(file, 0, 1_000_000, 1e3)]
    file.hold(400_000, 1_000_000)
    piece = scheduler.take_over(late, 1_000_000, IDLE)
    assert piece is not None and (piece.start // 1000, piece.end) == (0, 400_000)


def test_there_is_more_until_all_is_listed_and_handed_out() -> None:
    context = a_context()
    scheduler = RangeScheduler(context)
    context.queue.put(a_file(10))
    piece = scheduler.take(10)
    assert piece is not None
    assert scheduler.has_more  # another file may come
    context.queue.end_listing()
    assert not scheduler.has_more
    scheduler.give_back(piece.file, 0, 10)
    assert scheduler.has_more


def test_no_byte_too_many_is_asked_of_a_file_or_of_any() -> None:
    scheduler = RangeScheduler(a_context())
    file, other = a_file(1000), a_file(1000)
    assert not scheduler.asks_exactly(file)
    scheduler.try_exactly(file)
    assert scheduler.asks_exactly(file) and not scheduler.asks_exactly(other)
    scheduler.ask_exactly()
    assert scheduler.asks_exactly(other)


@pytest.mark.parametrize("last_stores", [True, False])
def test_a_file_of_several_workers_is_whole_once_the_last_has_ended_its_part(
    tmp_path: Path, *, last_stores: bool
) -> None:
    """Some servers say only as a file is closed that a disk or a quota was full."""
    source = tmp_path / "source"
    source.write_bytes(bytes(1000))
    context = a_context()
    told: list[str] = []

    class Told(Onlooker):
        def whole(self, file: FileTransfer) -> None:
            told.append(f"{file.source} is whole")

        def given_up(self, file: FileTransfer, error: MpxError) -> None:
            told.append(str(error))

    scheduler = RangeScheduler(replace(context, supervisor=Told()))
    file = a_file(1000)
    for _ in range(2):
        file.open(str(source), os.O_RDONLY)
    file.landed(0, 1000)
    scheduler.let_go_last(file)
    assert told == []
    if not last_stores:
        scheduler.give_up(file, DestinationError("not stored"))
    scheduler.let_go_last(file)
    assert told == (["source is whole"] if last_stores else ["not stored"])


@pytest.mark.parametrize("mover", [Upload, Download])
def test_what_was_found_damaged_on_the_way_over_sftp_is_handed_out_as_its_file_is_let_go(
    tmp_path: Path, mover: type[Upload] | type[Download]
) -> None:
    """Else nobody moves it, and the copy waits for ever."""
    source = tmp_path / "source"
    source.write_bytes(bytes(1000))
    context = a_context()
    context.queue.put(file := a_file(1000))
    scheduler = RangeScheduler(context)
    piece = scheduler.take(1000)
    assert piece is not None and scheduler.take(1000) is None  # all of it is on the way
    fd = file.open(str(source), os.O_RDONLY)
    file.landed(0, 1000)
    file.redo(200, 300)
    moving = Moving(context, scheduler, "there", RequestWindow(1, shares_files=True))
    how = {"tend": lambda _: None, "whole_files": False} if mover is Upload else {}
    mover(moving, **how).let_go(Job(file, fd))
    again = scheduler.take(1000)
    assert again is not None and (again.file, again.start, again.end) == (file, 200, 300)
