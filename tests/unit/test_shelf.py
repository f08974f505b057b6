"""The shelf: how many files of a download are opened at once."""

import pytest
from some_work import some_work

from mpx.mover import Move
from mpx.shelf import Shelf


def a_shelf(files: int | None) -> tuple[Shelf, list[Move]]:
    work = some_work(files)
    moves = [Move(f"{i}", f"{i}", f".{i}.part", 10, None, None) for i in range(4)]
    for move in moves:
        work.pool.put(move)
    return Shelf(work), moves


def opened(shelf: Shelf) -> list[str]:
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
