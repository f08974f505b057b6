"""Checksums that many ask for at the same time."""

import hashlib
import os
import threading

import pytest

from mpx.serve import checksum as served


@pytest.fixture
def file(tmp_path):
    (tmp_path / "file").write_bytes(bytes(5_000_000))
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    yield fd
    os.close(fd)


def md5(fd: int) -> str:
    return served.checksum(fd, "MD5", 0, -1, lambda _: None)


EXPECTED = hashlib.md5(bytes(5_000_000)).hexdigest()


def test_few_are_worked_on_at_a_time(file, monkeypatch):
    monkeypatch.setattr(served, "_working", threading.BoundedSemaphore(2))
    monkeypatch.setattr(served, "_PATIENCE_S", 60)
    lock, real = threading.Lock(), os.preadv
    now, most, sums = 0, 0, []

    def counted(*arguments):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        try:
            return real(*arguments)
        finally:
            with lock:
                now -= 1

    monkeypatch.setattr(os, "preadv", counted)
    threads = [threading.Thread(target=lambda: sums.append(md5(file))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [EXPECTED] * 8
    assert most <= 2


def test_a_file_system_that_hangs_stops_no_others(file, monkeypatch):
    monkeypatch.setattr(served, "_working", threading.BoundedSemaphore(1))
    monkeypatch.setattr(served, "_PATIENCE_S", 0.01)
    with served._working:
        assert md5(file) == EXPECTED


def test_a_file_system_that_hangs_is_waited_for_once_in_a_checksum(file, monkeypatch):
    waited_s = []

    class Watched(threading.BoundedSemaphore):
        def acquire(self, blocking=True, timeout=None):
            had = super().acquire(blocking, timeout)
            if not had and timeout:
                waited_s.append(timeout)
            return had

    monkeypatch.setattr(served, "_working", Watched(1))
    monkeypatch.setattr(served, "_PATIENCE_S", 0.01)
    with served._working:
        assert md5(file) == EXPECTED
        assert md5(file) == EXPECTED
    assert waited_s == [0.01] * 2
