"""Standard output and error that are full, closed or have no reader: a copy goes on, a list says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MPX = f'"{sys.executable}" -m mpx'


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "MPX_STATE_DIR": str(folder / "state"), **environment},
        check=False,
    )


@pytest.mark.parametrize("stdout", ["> /dev/full", ">&-", "| true; exit ${PIPESTATUS[0]}"])
@pytest.mark.parametrize("stderr", ["", "2> /dev/full", "2>&-"])
@pytest.mark.parametrize("options", ["", "-v", "--progress json", "--progress plain"])
def test_a_copy_does_not_mind_its_output(tmp_path: Path, stdout: str, stderr: str, options: str) -> None:
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    done = run(f"{MPX} copy {options} one two {stderr} {stdout}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("stdout", ["> /dev/full", ">&-"])
def test_a_copy_that_fails_keeps_its_exit_code(tmp_path: Path, stdout: str) -> None:
    done = run(f"{MPX} copy missing two {stdout}", tmp_path)
    assert done.returncode == 3
    assert b"missing" in done.stderr


@pytest.mark.parametrize(("source", "code"), [("one", 0), ("missing", 3)])
def test_a_report_that_cannot_be_written_leaves_the_exit_code(tmp_path: Path, source: str, code: int) -> None:
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    done = run(f"{MPX} copy -q --report /dev/full {source} two", tmp_path)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, len(lines)) == (code, 1 if code == 0 else 2), done
    assert lines[0] == "mpx: no report was written: cannot write /dev/full: No space left on device"
    assert code or (tmp_path / "two").read_bytes() == b"1" * 100_000


def test_a_closed_descriptor_is_not_given_to_a_file(tmp_path: Path) -> None:
    """What is printed would be written into what is copied."""
    (tmp_path / "one").write_bytes(b"1" * 100_000)
    assert run(f"{MPX} copy -v --progress json one two <&- >&- 2>&-", tmp_path).returncode == 0
    assert (tmp_path / "two").read_bytes() == b"1" * 100_000


def test_a_list_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    done = run(f"{MPX} list . > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "mpx: cannot write to standard output: No space left on device"
    ]


def test_a_list_whose_reader_has_gone_ends_in_silence(tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"{number:0200}").touch()
    done = run(f"{MPX} list . | head -1; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (done.returncode, done.stderr) == (1, b"")


def test_names_that_the_locale_cannot_show_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "naïve").write_bytes(b"1")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = run(f"{MPX} copy -v na* two", tmp_path, **ascii_only)
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "two").read_bytes() == b"1"
