"""Syncs of many files: a thread for each where they wait for a disk, and none where they do not."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from mpx.endpoints.local import syncs
from mpx.endpoints.local.syncs import AT_ONCE, Syncs


class Clock:
    """Time that passes as a test says; by it a sync that runs in the thread that asked is noticed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.lock = 0.0, threading.Lock()
        self.mine, self.here = threading.current_thread(), 0
        monkeypatch.setattr(syncs.time, "monotonic", lambda: self.now_s)

    def sync(self, number: int, took_s: float) -> int:
        with self.lock:
            self.now_s += took_s
            self.here += threading.current_thread() is self.mine
        return number

    def some(self, count: int, took_s: float) -> list[Callable[[], int]]:
        return [partial(self.sync, number, took_s) for number in range(count)]


def test_those_that_are_quick_need_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, several = Clock(monkeypatch), Syncs()
    assert several.run(clock.some(30, 0.0001)) == list(range(30))
    assert clock.here == 30


def test_once_one_is_slow_the_others_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, several = Clock(monkeypatch), Syncs()
    assert several.run(clock.some(30, 0.01)) == list(range(30))
    assert clock.here == 1
    barrier = threading.Barrier(AT_ONCE)
    assert several.run([barrier.wait] * AT_ONCE) and not barrier.broken  # all wait for one another


def test_quick_again_they_need_no_thread_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, several = Clock(monkeypatch), Syncs()
    several.run(clock.some(2, 0.01))
    several.run(clock.some(16, 0.0001))
    clock.here = 0
    several.run(clock.some(16, 0.0001))
    assert clock.here == 16


def test_one_alone_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, several = Clock(monkeypatch), Syncs()
    for _ in range(3):
        assert several.run(clock.some(1, 0.01)) == [0]
    assert clock.here == 3
    assert several.run([]) == []


def test_without_threads_they_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, several = Clock(monkeypatch), Syncs()

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert several.run(clock.some(5, 0.01)) == list(range(5))
    assert clock.here == 5
