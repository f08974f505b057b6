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
    late = [Pending(PartialRetrieve(file, 200, 500, -1, channel), in_s=60)]
    file.landed(200, 300)
    piece = scheduler.take_over(late)
    assert piece == Piece(file, 300, 500)
    assert scheduler.take_over(late) is None
    forgotten = weakref.ref(file)
    del file, late, piece
    gc.collect()
    assert forgotten() is None
    channel.cut()


def test_no_byte_too_many_is_asked_of_a_file_or_of_any() -> None:
    scheduler = RangeScheduler(a_context())
    file, other = a_file(1000), a_file(1000)
    assert not scheduler.asks_exactly(file)
    assert scheduler.try_exactly(file) and not scheduler.try_exactly(file)
    assert scheduler.asks_exactly(file) and not scheduler.asks_exactly(other)
    scheduler.ask_exactly()
    assert scheduler.asks_exactly(other)
