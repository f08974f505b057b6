"""Notes of a report: each line once, and who is shown it goes by its severity."""

import pytest

from mpx.commands import copy as command
from mpx.commands.summary import summary, tell_details, tell_unverified
from mpx.report import Note, Report, Severity


def a_report() -> Report:
    report = Report("source", "destination")
    report.note("a detail")
    report.note("one path is used", Severity.NOTICE)
    report.note("unverified: no checksums", Severity.WARNING)
    return report


def test_a_line_counts_once_and_keeps_its_first_severity() -> None:
    report = a_report()
    report.note("a detail", Severity.WARNING)
    assert report.notes == ["a detail", "one path is used", "unverified: no checksums"]
    assert report.as_dict()["notes"] == report.notes
    assert report.noted(Severity.WARNING) == [Note(Severity.WARNING, "unverified: no checksums")]


def test_there_are_not_more_than_can_be_read() -> None:
    report = Report("source", "destination")
    for i in range(Report.MOST_LINES + 10):
        report.note(f"note {i}")
    assert len(report.notes) == Report.MOST_LINES


@pytest.mark.parametrize(
    ("shown", "hidden", "options"),
    [
        (["note: one path is used"], ["a detail", "unverified"], {"verbose": False, "quiet": False}),
        (
            ["note: one path is used", "note: a detail", "note: unverified"],
            [],
            {"verbose": True, "quiet": False},
        ),
        ([], ["a detail", "one path", "unverified"], {"verbose": False, "quiet": True}),
    ],
)
def test_who_is_shown_what(
    capsys: pytest.CaptureFixture[str], shown: list[str], hidden: list[str], options: dict[str, bool]
) -> None:
    tell_details(a_report(), **options)
    out = capsys.readouterr().out
    assert all(line in out for line in shown) and not any(line in out for line in hidden)


def test_what_is_unverified_stands_beneath_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    report = a_report()
    report.begin(10)
    report.moved(10, 0)
    assert summary(report, verbose=False).startswith("copied 1 of 1 files")
    tell_unverified(report, verbose=False)
    assert capsys.readouterr().out == "unverified: no checksums\n"


def test_details_without_end_leave_room_for_what_everybody_is_to_see() -> None:
    report = Report("source", "destination")
    for i in range(Report.MOST_LINES + 10):
        report.note(f"note {i}")
    report.note("unverified", Severity.WARNING)
    assert report.noted(Severity.WARNING) == [Note(Severity.WARNING, "unverified")]


def test_a_report_for_which_there_is_no_memory_leaves_the_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Report, "write", short)
    command._write(a_report(), "report.json", "destination")
    assert capsys.readouterr().err == "mpx: no report was written: not enough memory\n"
