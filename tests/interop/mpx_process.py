"""The command `mpx copy` as a process of its own, with its report."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked_mpx

ENDS_WITHIN_S = 240  # a command that takes longer hangs


@dataclass(frozen=True)
class Done:
    """How a command ended; `report` is empty if it wrote none."""

    code: int
    stderr: str
    report: dict[str, Any]

    @property
    def moved_bytes(self) -> int:
        return int(self.report["bytes"]["moved"])

    @property
    def resumed_bytes(self) -> int:
        return int(self.report["bytes"]["resumed"])


class Copy:
    """`mpx copy` while it runs; `folder` holds its journals and its report."""

    def __init__(self, folder: Path, source: object, destination: object, *options: str) -> None:
        self._folder = folder
        words = [os.fsencode(word) for word in _words(folder, source, destination, *options)]
        self.process = forked_mpx.Forked(words, environment=_environment(folder), stderr=subprocess.PIPE)

    def kill(self) -> None:
        """End it with SIGKILL, unless it has ended before."""
        self.process.kill()

    def end(self) -> Done:
        """Wait for it; a command that hangs is killed and fails the test."""
        try:
            _, stderr = self.process.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return _done(self._folder, self.process.wait(), stderr.decode())


def copy(folder: Path, source: object, destination: object, *options: str) -> Done:
    """Run `mpx copy` to its end."""
    words = [os.fsencode(word) for word in _words(folder, source, destination, *options)]
    code, _, stderr = forked_mpx.run(words, b"", os.getcwd(), _environment(folder), ENDS_WITHIN_S)
    return _done(folder, code, stderr.decode())


def _words(folder: Path, source: object, destination: object, *options: str) -> list[str]:
    _report(folder).unlink(missing_ok=True)
    return ["copy", "-q", "--report", str(_report(folder)), *options, str(source), str(destination)]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MPX_STATE_DIR": str(folder / "state")}


def _report(folder: Path) -> Path:
    return folder / "report.json"


def _done(folder: Path, code: int, stderr: str) -> Done:
    report = _report(folder)
    return Done(code, stderr, json.loads(report.read_text()) if report.exists() else {})


def measured(*words: object, environment: dict[str, str] | None = None) -> tuple[int, str, int]:
    """Run mpx to its end; return its exit code, what it says, and the most memory that it had, in KiB."""
    told = [os.fsencode(str(word)) for word in words]
    with forked_mpx.Forked(told, environment=environment, stderr=subprocess.PIPE) as process:
        try:
            _, stderr = process.communicate(ENDS_WITHIN_S)
        finally:
            process.kill()
    return process.wait(), stderr.decode(), process.peak_kib


def assert_clear(done: Done, code: int, *words: str) -> None:
    """A failure is its exit code and one clear line on stderr, without a traceback."""
    assert done.code == code, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("mpx: "), lines
    assert "unexpected" not in lines[0], lines
    for word in words:
        assert word in lines[0], lines
