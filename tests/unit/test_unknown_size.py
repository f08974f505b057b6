"""Files of unknown size: streamed to their end, never taken for whole before, never the same as another."""

import pytest

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import changed
from mpx.report import Report
from mpx.transfer.planner import same


def streamed() -> FileTransfer:
    return FileTransfer("source", "final", ".part", FileInfo(Kind.FILE, None, 1.0, 0o644))


def test_it_is_whole_once_its_end_was_seen_and_not_before() -> None:
    file = streamed()
    assert not file.is_whole
    file.landed(0, 10)
    file.landed(10, 15)
    assert (file.size_bytes, file.is_whole, file.claim_whole()) == (15, False, False)
    file.ended(15)
    assert (file.size_bytes, file.is_whole, file.claim_whole()) == (15, True, True)


def test_an_empty_one_is_whole_once_its_end_was_seen() -> None:
    file = streamed()
    assert (file.is_whole, file.take(10)) == (False, None)
    file.ended(0)
    assert file.is_whole


def test_it_begins_anew_from_nothing() -> None:
    file = streamed()
    file.landed(0, 10)
    file.ended(10)
    file.take_all()
    assert (file.size_bytes, file.arrived_bytes, file.is_whole) == (0, 0, False)


@pytest.mark.parametrize("end", [0, 4, 10, 14])
def test_the_end_decides_against_what_was_said(end: int) -> None:
    file = FileTransfer("source", "final", ".part", FileInfo(Kind.FILE, 10, 1.0, 0o644))
    while taken := file.take(3):
        file.landed(*taken)
    file.ended(end)
    assert file.is_whole == (end <= 10)  # what lies beyond 10 has not arrived
    file.landed(0, end)
    assert (file.size_bytes, file.arrived_bytes, file.is_whole, file.todo_bytes) == (end, end, True, 0)
    assert file.listed_bytes == 10


def test_it_is_never_skipped_as_the_same() -> None:
    there = FileInfo(Kind.FILE, 0, 1.0)
    assert same(FileInfo(Kind.FILE, 0, 1.0), there)
    assert not same(FileInfo(Kind.FILE, None, 1.0), there)
    assert not same(FileInfo(Kind.FILE, None, 1.0), FileInfo(Kind.FILE, None, 1.0))


def test_a_new_time_says_nothing_of_it() -> None:
    file = FileTransfer("/s", "/d", "/d.part", FileInfo(Kind.FILE, None, 1.0))
    assert changed(FileInfo(Kind.FILE, None, 2.0), file, 5) == ""
    assert changed(None, file, 5)


def test_the_report_counts_what_came() -> None:
    report = Report("a", "b")
    report.begin(0)
    report.moved(100, 0, listed_bytes=0)
    assert (report.bytes.total, report.bytes.moved) == (100, 100)
