"""What waits until a copy ends comes out again as it went in, from memory or from disk."""

import os
import resource
import signal
from pathlib import Path
from typing import IO

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.errors import DestinationError, NoSpace
from mpx.transfer import spool
from mpx.transfer.spool import Spool

RECORDS = st.lists(st.tuples(st.text(), st.floats(allow_nan=False) | st.none(), st.integers(), st.booleans()))


@given(RECORDS, RECORDS, st.integers(1, 5))
def test_records_come_out_in_the_reverse_order(one: list, two: list, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "BLOCK", block)
        kept = Spool()
        for records in (one, two):
            for record in records:
                kept.put(record)
            assert len(kept) == len(records)
            assert list(kept.drain()) == records[::-1]


def test_a_name_that_is_no_unicode() -> None:
    kept = Spool()
    kept.put((os.fsdecode(b"a\xff"),))
    assert list(kept.drain()) == [(os.fsdecode(b"a\xff"),)]


def test_most_of_it_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BLOCK", 10)
    kept = Spool()
    for i in range(1005):
        kept.put((i, "x" * 100))
    assert len(kept) == 1005
    assert len(kept._recent) == 5
    assert [number for number, _ in kept.drain()] == list(range(1004, -1, -1))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*, prefix: str, buffering: int) -> IO[bytes]:
        assert prefix == "mpx-"
        return Path("/dev/full").open("wb", buffering=buffering)

    monkeypatch.setattr(spool, "BLOCK", 1)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(NoSpace, match="temporary file"):
        Spool().put((1,))


def test_what_cannot_be_written_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full for a while costs the records that it refused, and no other."""
    monkeypatch.setattr(spool, "BLOCK", 4)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    kept, taken = Spool(), []
    try:
        for number in range(100):
            resource.setrlimit(resource.RLIMIT_FSIZE, (300 if 20 < number < 60 else soft, hard))
            try:
                kept.put((number, "x" * 10))
            except DestinationError:
                continue
            taken.append(number)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert 60 <= len(taken) < 100
    assert len(kept) == len(taken)
    assert [number for number, _ in kept.drain()] == taken[::-1]
