"""The files that wait: each goes to one worker, and nobody waits for ever."""

import threading

import pytest
from unit.made_up_context import a_file

from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import Interrupted


def test_the_pool_hands_each_file_to_one_lane_and_ends_when_all_are_settled() -> None:
    queue = FileQueue(threading.Event(), limit=10)
    seen: list[FileTransfer] = []
    again = threading.Lock()
    put_again: set[FileTransfer] = set()

    def worker() -> None:
        while (file := queue.take()) is not None:
            with again:
                seen.append(file)
                once_more = len(seen) % 7 == 0 and file not in put_again
                if once_more:
                    put_again.add(file)
            if once_more:
                queue.put_again(file)
            else:
                queue.settle(file)

    workers = [threading.Thread(target=worker) for _ in range(4)]
    for thread in workers:
        thread.start()
    files = [a_file(i) for i in range(500)]
    for file in files:
        queue.put(file)
    queue.end_listing()
    for thread in workers:
        thread.join(30)
    assert queue.is_settled
    assert set(seen) == set(files)
    assert len(seen) == len(files) + len(put_again)
    assert queue.listed_bytes == sum(range(500))


def test_a_full_queue_makes_the_scan_wait(eventually) -> None:
    queue = FileQueue(threading.Event(), limit=3)
    scan = threading.Thread(target=lambda: [queue.put(a_file(1000)) for _ in range(5)])
    scan.start()
    eventually(lambda: queue.listed_bytes == 3 * 1000)
    scan.join(0.05)
    assert scan.is_alive()
    queue.take()
    queue.take()
    scan.join(30)
    assert queue.listed_bytes == 5 * 1000


def test_files_that_are_not_settled_make_the_scan_wait(eventually) -> None:
    queue = FileQueue(threading.Event(), most_unsettled=3)
    scan = threading.Thread(target=lambda: [queue.put(a_file(1000)) for _ in range(5)])
    scan.start()
    taken = [queue.take() for _ in range(3)]
    assert queue.listed_bytes == 3 * 1000
    queue.put_again(taken[0])  # one that has to move again always finds a place
    for file in taken:
        queue.settle(file)
    scan.join(10)
    assert queue.listed_bytes == 5 * 1000


@pytest.mark.parametrize("what", ["put", "take"])
def test_stopping_ends_every_wait_for_the_pool(what: str) -> None:
    cancel, ended = threading.Event(), []
    queue = FileQueue(cancel, limit=1)
    if what == "put":
        queue.put(a_file(1000))

    def wait() -> None:
        try:
            queue.put(a_file(1000)) if what == "put" else queue.take()
        except Interrupted as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    cancel.set()
    thread.join(30)
    assert len(ended) == 1


def test_taking_more_never_waits() -> None:
    queue = FileQueue(threading.Event())
    assert queue.take_more(lambda _: True) is None
    queue.put(a_file(10))
    assert queue.take_more(lambda file: file.size_bytes < 10) is None
    assert queue.take_more(lambda file: file.size_bytes == 10) is not None


def test_who_waits_for_the_begin_is_told_of_the_first_file_or_that_there_is_none() -> None:
    queue = FileQueue(threading.Event())
    assert not queue.wait_begun(0.0)
    told = threading.Event()
    waiting = threading.Thread(target=lambda: queue.wait_begun(60.0) and told.set())
    waiting.start()
    queue.put(a_file(1))
    assert told.wait(30.0) and queue.wait_begun(0.0)
    waiting.join()
    empty = FileQueue(threading.Event())
    empty.end_listing()
    assert empty.wait_begun(0.0)


@pytest.mark.parametrize("how", ["put", "settled", "half empty"])
def test_who_waits_is_woken_by_what_it_waits_for(
    how: str, monkeypatch: pytest.MonkeyPatch, eventually
) -> None:
    """Not only by the next look, which is an hour away here."""
    monkeypatch.setattr("mpx.engine.file_queue.LOOK_S", 3600.0)
    queue, files = FileQueue(threading.Event(), limit=2), [a_file(i) for i in range(3)]
    queue.put(files[0])
    if how == "half empty":
        queue.put(files[1])
        waiting = threading.Thread(target=queue.put, args=(files[2],), daemon=True)
    else:
        queue.take()
        waiting = threading.Thread(target=queue.take, daemon=True)
    waiting.start()
    eventually(lambda: queue._filled._waiters or queue._emptied._waiters)
    if how == "put":
        queue.put(files[1])
    elif how == "settled":
        queue.end_listing()
        eventually(lambda: queue._filled._waiters)
        queue.settle(files[0])
    else:
        queue.take()
    waiting.join(30)
    assert not waiting.is_alive()
