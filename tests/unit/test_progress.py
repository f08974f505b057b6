"""The live view: what a person reads while a copy runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpx.commands.progress import line_of, view
from mpx.report import Progress, before_data

MIB = 1024**2
HALF = Progress(
    elapsed_s=5.0,
    files_total=4,
    files_done=1,
    files_failed=0,
    bytes_total=200 * MIB,
    bytes_done=100 * MIB,
    goodput_bps=100 * MIB * 8 / 10,
    streams=12,
    is_listed=True,
    reason="why",
)


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (HALF, " 50%  100 MiB of 200 MiB  1/4 files  83.9 Mbit/s  12 streams  10 s left  why"),
        (replace(HALF, streams=1, files_failed=2), "1/4 files, 2 failed  83.9 Mbit/s  1 stream  "),
        (replace(HALF, goodput_bps=0.0), "1/4 files  0 bit/s  12 streams  why"),
        (
            replace(HALF, outage="no new data for 12 s; reconnecting, attempt 2 of 10"),
            " 50%  100 MiB of 200 MiB  no new data for 12 s; reconnecting, attempt 2 of 10  1/4 files",
        ),
        (replace(HALF, is_listed=False), "100 MiB of 200 MiB  1/4 files  still listing  83.9 Mbit/s  "),
        (replace(HALF, bytes_done=200 * MIB), "100%  200 MiB of 200 MiB  1/4 files  verifying"),
        (replace(HALF, bytes_done=200 * MIB, files_done=4), "100%  200 MiB of 200 MiB  4/4 files"),
        (replace(HALF, bytes_done=0, bytes_total=0, files_done=3), "0 B of 0 B  3/4 files  verifying"),
        (before_data(1.0, "probing for 10 s before data move"), "probing for 10 s before data move"),
    ],
)
def test_a_line(progress: Progress, line: str) -> None:
    assert line in line_of(progress)


def test_json_is_as_the_guide_tells_it(capsys) -> None:
    with view("json") as show:
        assert show is not None
        show(replace(HALF, elapsed_s=1.23456789, goodput_bps=1e6 / 3))
    told = json.loads(capsys.readouterr().err)
    assert (told["elapsed_s"], told["goodput_bps"]) == (1.235, 333_333)
    page = (Path(__file__).parents[2] / "docs/user-guide.md").read_text()
    assert [key for key in told if f"`{key}`" not in page] == []


@pytest.mark.parametrize("kind", ["plain", "json"])
def test_who_reads_lines_sees_the_beginning_and_the_end(kind: str, capsys) -> None:
    with view(kind) as show:
        assert show is not None
        for i in range(5):
            show(replace(HALF, files_done=i))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    if kind == "json":
        assert [json.loads(line)["files_done"] for line in lines] == [0, 4]
    else:
        assert ["0/4 files" in lines[0], "4/4 files" in lines[1]] == [True, True]
