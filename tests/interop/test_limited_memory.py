"""Copies by a process whose address space is limited (`ulimit -v`)."""

import random
import subprocess
from pathlib import Path

import pytest
from mpx_command import WITHIN_S, command

from mpx.serve.server import Server

MIB = 1024 * 1024


def limited(mebibytes: int, *words: object) -> subprocess.CompletedProcess[bytes]:
    """Run mpx with so much; a command that hangs fails."""
    return subprocess.run(
        ["prlimit", f"--as={mebibytes * MIB}", *command(*words)],
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )


def folder_of(where: Path) -> dict[str, bytes]:
    return {str(file.relative_to(where)): file.read_bytes() for file in where.rglob("*") if file.is_file()}


@pytest.mark.parametrize("mebibytes", [200, 600])
def test_a_limit_is_met(mebibytes: int, tmp_path: Path) -> None:
    source, served = tmp_path / "source", tmp_path / "served"
    (source / "small").mkdir(parents=True)
    served.mkdir()
    (source / "large").write_bytes(random.Random(5).randbytes(30 * MIB + 7))
    for number in range(200):
        (source / "small" / str(number)).write_bytes(random.Random(number).randbytes(20_000))
    with Server(served, port=0, writable=True) as server:
        for pair in (
            (source, f"{server.url}up"),
            (f"{server.url}up", tmp_path / "down"),
            (source, tmp_path / "near"),
        ):
            done = limited(mebibytes, "copy", "-q", "-r", *pair)
            assert (done.returncode, done.stderr) == (0, b""), pair
    assert folder_of(served / "up") == folder_of(tmp_path / "down") == folder_of(source)
    assert folder_of(tmp_path / "near") == folder_of(source)


@pytest.mark.parametrize("mebibytes", range(30, 90, 6))
def test_what_does_not_suffice_is_said_in_one_line(mebibytes: int, tmp_path: Path) -> None:
    """Where Python itself does not begin, nobody can say it."""
    source = tmp_path / "source"
    source.write_bytes(random.Random(5).randbytes(5 * MIB))
    done = limited(mebibytes, "copy", "-q", source, tmp_path / "copy")
    if done.returncode == 0:
        assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    elif b"mpx: " in done.stderr:
        assert done.stderr.count(b"\n") == 1, done.stderr
        assert b"not enough memory" in done.stderr, done.stderr
        assert not (tmp_path / "copy").exists()
