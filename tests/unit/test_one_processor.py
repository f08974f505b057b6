"""Threads of a copy on one processor: only ours, only for many small files, and free again afterwards."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mpx.transfer.one_processor import MANY, SMALL_BYTES, OneProcessor

USABLE = os.sched_getaffinity(0)
pytestmark = pytest.mark.skipif(len(USABLE) < 2, reason="there is one processor only")


@contextmanager
def waiting(name: str) -> Iterator[int]:
    """Yield the kernel's number of a thread that waits."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name=name)
    thread.start()
    try:
        assert thread.native_id is not None
        yield thread.native_id
    finally:
        over.set()
        thread.join()


def test_our_threads_share_a_processor_while_many_small_files_wait() -> None:
    one = OneProcessor()
    with waiting("mpx-upload-0") as ours, waiting("somebody else's") as other:
        one.look(MANY - 1, 1000, MANY - 1)
        assert os.sched_getaffinity(ours) == USABLE
        one.look(MANY, MANY * (SMALL_BYTES - 1), MANY)
        assert len(os.sched_getaffinity(ours)) == 1 and os.sched_getaffinity(other) == USABLE
        with waiting("mpx-commit") as later:
            one.look(0, 0, MANY)
            assert os.sched_getaffinity(later) == os.sched_getaffinity(ours)
        one.look(0, 0, MANY - 1)
        assert os.sched_getaffinity(ours) == USABLE == os.sched_getaffinity(0)


def test_our_threads_share_a_processor_where_one_is_enough() -> None:
    one = OneProcessor()
    with waiting("mpx-download-stream") as ours:
        one.look(1, SMALL_BYTES, 1, is_enough=True)
        assert len(os.sched_getaffinity(ours)) == 1
        one.look(1, SMALL_BYTES, 1)
        assert os.sched_getaffinity(ours) == USABLE


def test_threads_are_free_for_large_files_and_at_the_end() -> None:
    one = OneProcessor()
    with waiting("mpx-upload-0") as ours:
        for free in (lambda: one.look(MANY, MANY * SMALL_BYTES, MANY), one.end):
            one.look(MANY, MANY, MANY)
            assert len(os.sched_getaffinity(ours)) == 1
            free()
            assert os.sched_getaffinity(ours) == USABLE


def test_a_thread_that_has_ended_is_no_trouble() -> None:
    one = OneProcessor()
    with waiting("mpx-upload-0"):
        one.look(MANY, MANY, MANY)
    one.look(MANY, MANY, MANY)
    one.end()


def test_threads_that_nobody_moved_keep_what_they_were_given() -> None:
    one = OneProcessor()
    with waiting("mpx-upload-0") as ours:
        os.sched_setaffinity(ours, {min(USABLE)})
        one.look(1, 1, 1)
        one.end()
        assert os.sched_getaffinity(ours) == {min(USABLE)}
