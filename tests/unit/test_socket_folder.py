"""Folders for sockets: what a process leaves that was killed is removed by the next one, and nothing else."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mpx.files.socket_folder import new_socket_folder

KILLED = """
import os, socket, sys
from mpx.files.socket_folder import new_socket_folder
folder = new_socket_folder("mpx-test-")
socket.socket(socket.AF_UNIX).bind(f"{folder.path}/c")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    words = [sys.executable, "-c", KILLED]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        left = Path(other.stdout.readline().strip())
        ours = new_socket_folder("mpx-test-")
        assert ours and (left / "c").is_socket()  # it is held
        ours.remove()
        other.kill()
    again = new_socket_folder("mpx-test-")
    assert again and sorted(tmp_path.iterdir()) == [Path(again.path)]
    assert Path(again.path).stat().st_mode & 0o777 == 0o700
    again.remove()
    assert not list(tmp_path.iterdir())


def prefix() -> str:
    """Return what all such folders begin with that are made here now."""
    made = new_socket_folder("mpx-test-")
    assert made
    made.remove()
    return Path(made.path).name.rpartition("-")[0] + "-"


def test_what_is_of_another_kind_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ours_are = prefix()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    socket.socket(socket.AF_UNIX).bind(str(elsewhere / "c"))
    (tmp_path / f"{ours_are}link").symlink_to(elsewhere)
    (tmp_path / f"{ours_are}file").touch()
    (tmp_path / f"{ours_are}open").mkdir()
    (tmp_path / f"{ours_are}open").chmod(0o755)
    (tmp_path / f"{ours_are}full").mkdir(mode=0o700)
    (tmp_path / f"{ours_are}full" / "data").touch()
    (tmp_path / "other-test").mkdir(mode=0o700)
    (tmp_path / "mpx-test-under-another-kernel").mkdir(mode=0o700)  # that knows nothing of locks here
    before = sorted(tmp_path.rglob("*"))
    ours = new_socket_folder("mpx-test-")
    assert ours and sorted(tmp_path.rglob("*")) == sorted([*before, Path(ours.path)])
    ours.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another account")
def test_what_belongs_to_another_account_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    theirs = tmp_path / f"{prefix()}theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    ours = new_socket_folder("mpx-test-")
    assert ours and theirs.is_dir()
    ours.remove()
