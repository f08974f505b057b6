"""RangeScheduler: how many files of a download are opened at once, and what of them is taken over."""

import gc
import weakref

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, Piece, RangeScheduler
from mpx.engine.stream import StreamTotals
from mpx.net import tcp


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
    channel = DownloadDataChannel(a_context(), 1, tcp.listen("127.0.0.1", None), "127.0.0.1")
    late = [Pending(PartialRetrieve(file, 200, 500, -1, channel), in_s=60, goodput=5.0)]
    file.landed(200, 300)
    piece = scheduler.take_over(late, 1000)
    assert piece == Piece(file, 300, 500)
    assert scheduler.take_over(late, 1000) is None
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


def a_late_one(file: FileTransfer, start: int, end: int, goodput: float) -> Pending:
    """A range of which nothing has come, at a worker that brings so many bytes a second."""
    fetch = PartialRetrieve(file, start, end, -1, NoChannel())
    return Pending(fetch, (end - start) / goodput, goodput)


def test_both_ends_of_what_is_taken_over_come_at_the_same_time() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(10_000_000)
    late = [a_late_one(file, 0, 10_000_000, 1e6)]
    piece = scheduler.take_over(late, 100_000_000, goodput=9e6)
    assert piece is not None
    assert (piece.end, round(piece.start / 1e6, 2)) == (10_000_000, 1.0)  # a second for either
    assert scheduler.take_over(late, 100_000_000, waits_s=1.0, goodput=9e6) is None


def test_no_more_is_taken_over_than_a_piece_and_the_latest_first() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(20_000_000)
    late = [a_late_one(file, 0, 10_000_000, 2e6), a_late_one(file, 10_000_000, 20_000_000, 1e6)]
    assert scheduler.take_over(late, 4_000_000, goodput=9e6) == Piece(file, 16_000_000, 20_000_000)
    assert scheduler.take_over(late, 4_000_000, 0.4, goodput=9e6) == Piece(file, 12_000_000, 16_000_000)
    assert scheduler.take_over(late, 4_000_000, 0.8, goodput=9e6) == Piece(file, 6_000_000, 10_000_000)


def test_what_comes_as_soon_where_it_is_stays_there() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    late = [a_late_one(file, 0, 1_000_000, 1e6)]
    assert scheduler.take_over(late, 1_000_000, waits_s=0.8) is None
    assert scheduler.take_over(late, 1_000_000, waits_s=0.5) is not None


def test_of_who_took_it_over_it_is_taken_once_more() -> None:
    scheduler, file = RangeScheduler(a_context()), a_file(1_000_000)
    late = a_late_one(file, 0, 1_000_000, 1e3)
    assert scheduler.take_over([late], 1_000_000) == Piece(file, 0, 1_000_000)
    late_too = a_late_one(file, 0, 1_000_000, 1e3)
    assert scheduler.take_over([late, late_too], 1_000_000) == Piece(file, 0, 1_000_000)
    assert scheduler.take_over([late, late_too], 1_000_000) is None


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
    assert scheduler.try_exactly(file) and not scheduler.try_exactly(file)
    assert scheduler.asks_exactly(file) and not scheduler.asks_exactly(other)
    scheduler.ask_exactly()
    assert scheduler.asks_exactly(other)
