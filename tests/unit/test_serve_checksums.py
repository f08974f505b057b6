"""Checksums that many ask for at the same time."""

import hashlib
import os
import threading

import pytest

from mpx.serve import checksum as served
from mpx.serve.turns import PATIENCE_S, Share, Turns


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
    """However long it takes: none that waits goes on beside the others while those go on."""
    monkeypatch.setattr(served, "_turns", Turns(2))
    monkeypatch.setattr(served, "_FIRST_PATIENCE_S", 60)
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


def test_every_checksum_gets_on(tmp_path, monkeypatch):
    """Whoever has ended a block does not take the turn of those who wait: all are about as far."""
    monkeypatch.setattr(served, "_turns", Turns(1))
    with (tmp_path / "long").open("wb+") as file:
        file.truncate(64 << 20)
        blocks, real = [], os.preadv

        def noted(*arguments):
            blocks.append(threading.get_ident())
            return real(*arguments)

        monkeypatch.setattr(os, "preadv", noted)
        threads = [threading.Thread(target=md5, args=(file.fileno(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    firsts = [blocks.index(thread) for thread in set(blocks)]
    assert max(firsts) < len(blocks) / 2  # 64 blocks each: who began last began before the first was done


def test_a_file_system_that_hangs_stops_no_others(file, monkeypatch):
    turns, hanging = Turns(1), Share()
    monkeypatch.setattr(served, "_turns", turns)
    monkeypatch.setattr(served, "_FIRST_PATIENCE_S", 0.01)
    grant = turns.take(hanging, 0)
    assert md5(file) == EXPECTED
    turns.end(hanging, 0.0, grant)


def test_a_file_system_that_hangs_is_waited_for_less_and_less(file, monkeypatch):
    waited_s = []

    class Watched(Turns):
        def take(self, share, patience_s):
            waited_s.append(patience_s)
            return super().take(share, patience_s)

    turns, hanging = Watched(1), Share()
    grant = turns.take(hanging, 0)
    monkeypatch.setattr(served, "_turns", turns)
    assert md5(file) == EXPECTED
    turns.end(hanging, 0.0, grant)
    assert waited_s[1] == served._FIRST_PATIENCE_S
    assert set(waited_s[2:]) == {PATIENCE_S}
