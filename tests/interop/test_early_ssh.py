"""An ssh is started before the rest of a copy is imported: when, when not, and what becomes of it."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_command import command, mpx
from sites import make

from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.transfer.early_start import EarlyStart

WITHIN_S = 60.0
FOREVER = "exec sleep 1000"  # as one that asks for a password


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the `ssh` in PATH was called with, a line each; there is none until it is called."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    put(tmp_path, FOREVER)
    return tmp_path / "calls"


def put(tmp_path: Path, session: str, settings: str = "") -> None:
    """Have ssh do this for a session, and that when it is asked for its settings."""
    script = tmp_path / "bin" / "ssh"
    script.write_text(
        f'#!/bin/sh\necho "$$ $*" >> {tmp_path}/calls\n'
        f'case "$*" in -G*) {settings or ":"}; exit;; esac\n{session}\n'
    )
    script.chmod(0o755)


def has_ended(process: int) -> bool:
    """Tell whether it waits no more; its number may be another's by now."""
    try:
        return b"sleep" not in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return True


@pytest.mark.parametrize(
    "words",
    [
        ("copy", "there:a", "elsewhere:b", "--block-size", "1MiB"),
        ("copy", "there:a", "near", "--third-party", "only"),
        ("copy", "there:a", "local", "near"),
        ("copy", "there:a", "near", "--in-place"),
        ("copy", "there:a", "near", "--block-size", "1MiB"),
        ("copy", "there:a", "near", "--remote-mpx", "a b"),
        ("copy", "there:a", "near", "--data-ports", "1"),
        ("copy", "there:a", "near", "--rate", "fast"),
        ("copy", "there:a", "near", "-v", "-q"),
        ("copy", "there:a", "near", "--report", "near"),
        ("copy", "there:a", "near", "--nonsense"),
        ("copy", "local", "there:a", "--files", "9"),
        ("copy", "local", "there:a", "--source-ports", "40000-40003", "--streams", "8"),
        ("copy", "local", "there:a", "--data-address", "192.0.2.1"),
        ("copy", "local", "-x@there:a"),
        ("copy", "local", "there:a", "--require-controller"),
        ("list", "there:a", "--remote-mpx", "a b"),
        ("list", "there:a", "--data-ports", "1"),
    ],
)
def test_what_is_refused_starts_no_ssh(calls: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    make(tmp_path / "local")
    done = mpx(*words, folder=tmp_path)
    assert done.code == 2, done.err
    assert not calls.exists()


@pytest.mark.parametrize(
    ("words", "later"),
    [
        (("copy", "local", "there:far"), "mpx.transfer.copy"),
        (("copy", "there:far", "near"), "mpx.transfer.copy"),
        (("list", "there:far"), "mpx.transfer.registry"),
    ],
)
def test_it_is_started_before_the_rest_is_imported(
    calls: Path, tmp_path: Path, words: tuple[str, ...], later: str
) -> None:
    """What has been imported is seen while ssh tells its settings, for which mpx waits."""
    make(tmp_path / "local")
    put(tmp_path, "echo Permission denied >&2; exit 255", f"cp {tmp_path}/said {tmp_path}/said-by-then")
    with (tmp_path / "said").open("wb") as said:
        python, *rest = command(*words)
        done = subprocess.run([python, "-X", "importtime", *rest], stderr=said, cwd=tmp_path, check=False)
    assert done.returncode == 5
    by_then, in_the_end = (tmp_path / "said-by-then").read_text(), (tmp_path / "said").read_text()
    for name in (later, "ssl", "mpx.endpoints.ftp.session"):
        assert f" {name}\n" not in by_then
        assert f" {name}\n" in in_the_end


@pytest.mark.parametrize("words", [("copy", "local", "there:far"), ("list", "there:far")])
def test_the_early_one_is_the_one_that_is_used(calls: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    make(tmp_path / "local")
    put(tmp_path, "echo 'me@there: Permission denied (publickey).' >&2; exit 255")
    done = mpx(*words, folder=tmp_path)
    assert done.code == 5
    assert "ssh to there: me@there: Permission denied (publickey).; try: ssh there true" in done.err
    settings, session, *ended = calls.read_text().splitlines()
    assert all("-Oexit" in each for each in ended)  # what the first login may have shared
    assert " -G " in settings and " serve --stdio" in session


def test_where_no_program_can_be_run_the_copy_tells(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "local")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    done = mpx("copy", "local", "there:far", folder=tmp_path)
    assert (done.code, "cannot run ssh" in done.err) == (2, True), done.err
    assert not calls.exists()


@pytest.mark.parametrize("words", [("copy", "local", "there:far"), ("list", "there:far")])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_leaves_no_ssh_that_asks_for_a_password(
    calls: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    number: signal.Signals,
    eventually: Callable[..., None],
) -> None:
    make(tmp_path / "local")
    with subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.PIPE) as process:
        eventually(lambda: calls.exists() and "serve --stdio" in calls.read_text(), WITHIN_S)
        process.send_signal(number)
        assert process.wait(WITHIN_S) == 128 + number
    asking = int(calls.read_text().splitlines()[1].split()[0])
    eventually(lambda: has_ended(asking), WITHIN_S)


def test_what_was_begun_and_never_used_is_ended(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with EarlyStart() as early:
        early.reach(parse_location("there:far"), CopyOptions())
        eventually(lambda: "serve --stdio" in calls.read_text(), WITHIN_S)
        assert list(tmp_path.glob("mpx-ssh-*"))
    assert has_ended(int(calls.read_text().splitlines()[1].split()[0]))
    assert not list(tmp_path.glob("mpx-ssh-*"))
