"""What a report counts: of an attempt before a fallback, and of lists that are too long to be kept."""

import threading

import pytest

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.tuner import Decision, Sample
from mpx.report import Event, Progress, Report, Severity, Skip, Tally
from mpx.transfer.timeline import Timeline


def begun_anew() -> Report:
    """The report of a copy that begins anew once one file is moved, one resumed, and others are not."""
    report = Report("source", "destination", mptcp=[2, 1])
    for size_bytes in (100, 50, 7, 3):
        report.begin(size_bytes)
    report.moved(100, 0, listed_bytes=100, compared={"adler32": 100})
    report.moved(50, 20, listed_bytes=50)
    report.failed("c", "lost", 7)
    report.mismatch()
    report.skip("d", Skip.SAME, 5)
    report.start_over()
    return report


def test_files_with_their_final_names_count_beyond_a_fallback() -> None:
    report = begun_anew()
    assert report.files == Tally(total=2, moved=1, resumed=1)
    assert report.bytes == Tally(total=150, moved=130, resumed=20)
    assert report.compared == {"adler32": 100, "none": 50}
    assert not report.failures and not report.skipped and not report.mismatched
    assert report.mptcp == []  # its streams are those of another way


def test_progress_after_a_fallback_counts_what_is_there() -> None:
    shown: list[Progress] = []
    report = begun_anew()
    report.begin(50)
    timeline = Timeline(report, FileQueue(threading.Event()), shown.append)
    timeline.measured(1.0, {"default": Sample(streams=1, arrived_bytes=10, bytes_left=40)}, {})
    assert (shown[0].bytes_done, shown[0].bytes_total) == (160, 200)


@pytest.mark.parametrize(("path", "said"), [("default", "more streams"), ("1", "path 1: more streams")])
def test_progress_names_the_path_that_was_decided_on(path: str, said: str) -> None:
    shown: list[Progress] = []
    report = Report("source", "destination")
    timeline = Timeline(report, FileQueue(threading.Event()), shown.append)
    sample = Sample(streams=1, arrived_bytes=10, bytes_left=40)
    timeline.decided(1.0, Decision(path, 2, "more streams"), sample, None, None)
    timeline.measured(2.0, {path: sample}, {})
    assert shown[0].reason == said and report.timeline[0].reason == "more streams"


def an_event(number: int) -> Event:
    return Event(float(number), "default", 1, 0.0, None, None, None, f"decision {number}")


def test_a_long_timeline_keeps_its_beginning_and_its_end() -> None:
    report, most = Report("source", "destination"), Report.MOST_LINES
    for number in range(2 * most):
        report.decided(an_event(number))
    assert "timeline_omitted" not in report.as_dict()
    for number in range(2 * most, 2 * most + 7):
        report.decided(an_event(number))
    kept = [event.t_s for event in report.timeline]
    assert kept == [*range(most), *range(most + 7, 2 * most + 7)]
    assert report.as_dict()["timeline_omitted"] == 7


@pytest.mark.parametrize("reason", Skip)
def test_what_is_there_already_is_shown_to_who_asks_for_details(reason: Skip) -> None:
    is_there = reason in (Skip.EXISTS, Skip.SAME)
    assert reason.severity is (Severity.INFO if is_there else Severity.NOTICE)


@pytest.mark.parametrize(
    ("fails", "at_s", "is_said"), [(True, 1.1, True), (False, 1.1, False), (False, 3.1, True)]
)
def test_that_a_server_fails_is_said_soon(fails: bool, at_s: float, is_said: bool) -> None:
    """Who waits for a server that answers 500 learns of it before others who wait."""
    queue, shown = FileQueue(threading.Event()), list[Progress]()
    queue.put(FileTransfer("a", "b", ".b", FileInfo(Kind.FILE, 10)))
    timeline = Timeline(
        Report("a", "b"), queue, shown.append, what_is_done=lambda: "why", fails=lambda: fails
    )
    for now_s in (0.5, at_s):
        timeline.measured(now_s, {}, {})
    assert shown[0].outage == ""
    assert shown[1].outage == (f"no new data for {round(at_s)} s; why" if is_said else "")
