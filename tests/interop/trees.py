"""Trees to copy, and what a copy did with them."""

import os
from pathlib import Path

import pytest

import mpx as api

TREE = api.CopyOptions(recursive=True)
T0 = 1_500_000_000


def names(folder: Path) -> list[str]:
    """Everything below a folder, folders with a slash."""
    return sorted(
        str(path.relative_to(folder)) + ("/" if path.is_dir() and not path.is_symlink() else "")
        for path in folder.rglob("*")
    )


def readable(root: Path) -> None:
    """Let the account that serves read all of it."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def timed(path: Path, modified_s: float) -> Path:
    """Give a file this modification time."""
    os.utime(path, (modified_s, modified_s))
    return path


def failures(caught: pytest.ExceptionInfo[api.MpxError]) -> dict[str, str]:
    """What could not be copied, and why, by the last part of its name."""
    report = caught.value.report
    assert report is not None
    return {Path(entry["name"]).name: entry["error"] for entry in report.failures}


def skips(report: api.Report) -> dict[str, str]:
    """What was skipped, and why, by the last part of its name."""
    return {Path(entry["name"]).name: entry["reason"] for entry in report.skipped}
