"""Files of unknown size: streamed to their end, never taken for whole before, never the same as another."""

import pytest

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import changed
from mpx.report import Report
from mpx.transfer.planner import same


def streamed() -> FileTransfer:
    return FileTransfer("source", "final", ".part", None, 1.0, 0o644)


def test_it_is_whole_once_its_end_was_seen_and_not_before() -> None:
    move = streamed()
    assert not move.is_whole
    move.landed(0, 10)
    move.landed(10, 15)
    assert (move.size_bytes, move.is_whole, move.claim_whole()) == (15, False, False)
    move.ended(15)
    assert (move.size_bytes, move.is_whole, move.claim_whole()) == (15, True, True)


def test_an_empty_one_is_whole_once_its_end_was_seen() -> None:
    move = streamed()
    assert (move.is_whole, move.take(10)) == (False, None)
    move.ended(0)
    assert move.is_whole


def test_it_begins_anew_from_nothing() -> None:
    move = streamed()
    move.landed(0, 10)
    move.ended(10)
    move.take_all()
    assert (move.size_bytes, move.arrived_bytes, move.is_whole) == (0, 0, False)


@pytest.mark.parametrize("end", [0, 4, 10, 14])
def test_the_end_decides_against_what_was_said(end: int) -> None:
    move = FileTransfer("source", "final", ".part", 10, 1.0, 0o644)
    while taken := move.take(3):
        move.landed(*taken)
    move.ended(end)
    assert move.is_whole == (end <= 10)  # what lies beyond 10 has not arrived
    move.landed(0, end)
    assert (move.size_bytes, move.arrived_bytes, move.is_whole, move.todo_bytes) == (end, end, True, 0)
    assert move.listed_bytes == 10


def test_it_is_never_skipped_as_the_same() -> None:
    there = FileInfo(Kind.FILE, 0, 1.0)
    assert same(FileInfo(Kind.FILE, 0, 1.0), there)
    assert not same(FileInfo(Kind.FILE, None, 1.0), there)
    assert not same(FileInfo(Kind.FILE, None, 1.0), FileInfo(Kind.FILE, None, 1.0))


def test_a_new_time_says_nothing_of_it() -> None:
    assert changed(FileInfo(Kind.FILE, None, 2.0), listed_bytes=None, arrived_bytes=5, modified_s=1.0) == ""
    assert changed(None, listed_bytes=None, arrived_bytes=5, modified_s=1.0)


def test_the_report_counts_what_came() -> None:
    report = Report("a", "b")
    report.begin(0)
    report.moved(100, 0, listed_bytes=0)
    assert (report.bytes.total, report.bytes.moved) == (100, 100)
