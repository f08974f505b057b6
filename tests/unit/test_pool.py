"""The files that wait: each goes to one lane, and nobody waits for ever."""

import threading

import pytest
from unit.work import a_move

from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import Interrupted


def test_the_pool_hands_each_file_to_one_lane_and_ends_when_all_are_settled() -> None:
    pool = FileQueue(threading.Event(), limit=10)
    seen: list[FileTransfer] = []
    again = threading.Lock()
    put_again: set[FileTransfer] = set()

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
    assert pool.listed_bytes == sum(range(500))


def test_a_full_pool_makes_the_lister_wait(eventually) -> None:
    pool = FileQueue(threading.Event(), limit=3)
    lister = threading.Thread(target=lambda: [pool.put(a_move(1000)) for _ in range(5)])
    lister.start()
    eventually(lambda: pool.listed_bytes == 3 * 1000)
    lister.join(0.05)
    assert lister.is_alive()
    pool.take()
    pool.take()
    lister.join(30)
    assert pool.listed_bytes == 5 * 1000


def test_files_that_are_not_settled_make_the_lister_wait(eventually) -> None:
    pool = FileQueue(threading.Event(), most_unsettled=3)
    lister = threading.Thread(target=lambda: [pool.put(a_move(1000)) for _ in range(5)])
    lister.start()
    taken = [pool.take() for _ in range(3)]
    assert pool.listed_bytes == 3 * 1000
    pool.put_again(taken[0])  # one that has to move again always finds a place
    for move in taken:
        pool.settle(move)
    lister.join(10)
    assert pool.listed_bytes == 5 * 1000


@pytest.mark.parametrize("what", ["put", "take"])
def test_stopping_ends_every_wait_for_the_pool(what: str) -> None:
    cancel, ended = threading.Event(), []
    pool = FileQueue(cancel, limit=1)
    if what == "put":
        pool.put(a_move(1000))

    def wait() -> None:
        try:
            pool.put(a_move(1000)) if what == "put" else pool.take()
        except Interrupted as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    cancel.set()
    thread.join(30)
    assert len(ended) == 1


def test_taking_more_never_waits() -> None:
    pool = FileQueue(threading.Event())
    assert pool.take_more(lambda _: True) is None
    pool.put(a_move(10))
    assert pool.take_more(lambda move: move.size_bytes < 10) is None
    assert pool.take_more(lambda move: move.size_bytes == 10) is not None
