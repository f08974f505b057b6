"""The shelf: how many files of a download are opened at once, and what of them is taken over."""

import gc
import weakref

import pytest
from unit.work import a_move, a_work

from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, Piece, RangeScheduler
from mpx.net import tcp


def a_shelf(files: int | None) -> tuple[RangeScheduler, list[FileTransfer]]:
    work = a_work(files=files)
    moves = [FileTransfer(f"{i}", f"{i}", f".{i}.part", 10, None, None) for i in range(4)]
    for move in moves:
        work.pool.put(move)
    return RangeScheduler(work), moves


def opened(shelf: RangeScheduler) -> list[str]:
    found = []
    while piece := shelf.take(100):
        found.append(piece.move.source)
    return found


def test_all_that_wait_are_opened() -> None:
    shelf, _ = a_shelf(None)
    assert opened(shelf) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("ending", ["whole", "given up"])
def test_no_more_than_the_user_allows(ending: str) -> None:
    shelf, moves = a_shelf(2)
    assert opened(shelf) == ["0", "1"]
    if ending == "whole":
        moves[0].landed(0, 9)
        assert opened(shelf) == []
        moves[0].landed(9, 10)
        assert moves[0].claim_whole()
    else:
        assert moves[0].claim_given_up()
    assert opened(shelf) == ["2"]


def test_whole_files_are_bounded_too() -> None:
    shelf, moves = a_shelf(1)
    first = shelf.take_file()
    assert first is not None
    assert shelf.take_file() is None
    moves[0].landed(0, 10)
    moves[0].claim_whole()
    second = shelf.take_file()
    assert second is not None
    assert second.move is moves[1]


def test_what_comes_late_is_taken_over_once_and_forgotten_with_its_file() -> None:
    shelf = RangeScheduler(a_work())
    move = a_move(1000)
    fan = DownloadDataChannel(a_work(), 1, tcp.listen("127.0.0.1", None), "127.0.0.1")
    late = [Pending(PartialRetrieve(move, 200, 500, -1, fan), in_s=60)]
    move.landed(200, 300)
    piece = shelf.take_over(late)
    assert piece == Piece(move, 300, 500)
    assert shelf.take_over(late) is None
    forgotten = weakref.ref(move)
    del move, late, piece
    gc.collect()
    assert forgotten() is None
    fan.cut()
