"""The last lines of a copy: what was done, whether it is verified, and what failed."""

import pytest

from mpx.commands.summary import partial_summary, summary, tell_details, tell_unverified
from mpx.report import Report, Severity, Skip


def a_report(*, moved: int, failed: int, dry_run: bool = False) -> Report:
    report = Report("source", "/there", dry_run=dry_run, algorithm="sha256", duration_s=2.0, goodput_bps=8e6)
    for _ in range(moved):
        report.begin(1_048_576)
        report.moved(1_048_576, 0, compared={"sha256": 1_048_576})
    for number in range(failed):
        report.begin(10)
        report.failed(f"file {number}", f"file {number}: damaged", 10)
    return report


def test_what_failed_is_followed_by_what_was_done_as_where_all_is_well() -> None:
    done = "to /there, 3 MiB in 2 s, 8 Mbit/s, verified (sha256)"
    assert summary(a_report(moved=3, failed=0), verbose=False) == f"copied 3 of 3 files {done}"
    report = a_report(moved=3, failed=2)
    assert partial_summary(report) == f"2 of 5 files were not copied; copied 3 of 5 files {done}"
    report.mismatch()  # which is of one that failed
    assert partial_summary(report).endswith(done)
    report.moved(5, 0)
    assert partial_summary(report).endswith("unverified (sha256 3 MiB)")


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({}, "verified (adler32, of what passed here)"),
        ({"adler32": 3}, "verified (adler32, of what passed here: 1 MiB)"),
        ({"md5": 1_048_576}, "verified (adler32 1 MiB, md5 1 MiB, of what passed here: 1 MiB)"),
    ],
)
def test_what_the_destination_was_compared_with(others: dict[str, int], told: str) -> None:
    report = a_report(moved=0, failed=0)
    report.begin(1_048_576)
    report.moved(1_048_576, 0, compared={"adler32 of what passed here": 1_048_576})
    for name, size in others.items():
        report.moved(size, 0, compared={name: size})
    report.files.total = report.files.moved
    assert summary(report, verbose=False).endswith(told)
    assert report.checksum["of_passed"] == 1_048_576


def test_where_nothing_was_copied_nothing_is_called_verified() -> None:
    report = a_report(moved=0, failed=2)
    assert partial_summary(report) == "2 of 2 files were not copied; none was copied to /there"
    report.skip("other", Skip.LINK)
    assert partial_summary(report).endswith("; none was copied to /there, 1 skipped")


def test_a_rehearsal_counts_what_cannot_be_copied() -> None:
    report = a_report(moved=0, failed=2, dry_run=True)
    report.begin(1000)
    assert (
        partial_summary(report)
        == "2 of 3 files cannot be copied; dry run: 1 of 3 files to copy, 1000 B; nothing was copied"
    )


def test_failures_that_are_not_named_are_owned_up_to() -> None:
    report = a_report(moved=1, failed=Report.MOST_LINES + 1)
    assert "were not copied (the first 1000 are named above); copied 1 of 1002" in partial_summary(report)


def test_a_failure_names_its_file_once(capsys: pytest.CaptureFixture[str]) -> None:
    tell_details(a_report(moved=0, failed=2), verbose=False, quiet=True)
    assert capsys.readouterr().err == "".join(f"mpx: not copied file {i}: damaged\n" for i in range(2))


@pytest.mark.parametrize(("count", "shown"), [(4, 4), (6, 3)])
def test_of_many_that_are_unverified_alike_a_few_are_named(
    count: int, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    report = a_report(moved=count, failed=0)
    report.note("not atomic", Severity.WARNING)
    lines = [f"unverified: /q{i}: /q{i} was stored in parts" for i in range(count)]
    for i, line in enumerate(lines):
        report.note(line, Severity.WARNING, name=f"/q{i}")
    tell_unverified(report, verbose=False)
    more = [] if shown == count else ["unverified: ... and 3 more alike; -v names them, as does --report"]
    assert capsys.readouterr().out.splitlines() == ["not atomic", *lines[:shown], *more]
    tell_unverified(report, verbose=True)
    assert capsys.readouterr().out.splitlines() == ["not atomic", *lines]
    assert report.notes == ["not atomic", *lines]
