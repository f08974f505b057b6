"""Copies to and from a host with ssh and without mpx: over SFTP, by a real ssh and sftp-server."""

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.ssh_copies import SFTP_SERVER, contents, copied, kill_halfway, lanes_of, there
from interop.sshd import HOST, PrivateSshd, private_sshd
from mpx_command import running
from random_bytes import random_bytes
from sites import make

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateSshd]:
    with private_sshd("Banner /etc/debian_version") as sshd:
        yield sshd


@pytest.fixture
def sshd(server: PrivateSshd) -> PrivateSshd:
    server.configure()
    return server


# --- what is copied --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4097, 20 * MIB + 7])
def test_a_file_goes_both_ways(sshd: PrivateSshd, tmp_path: Path, size: int) -> None:
    source = make(tmp_path / "source", size)
    os.utime(source, (0, 1_234_567_890))
    source.chmod(0o640)
    said = copied(source, there(tmp_path / "far"))
    assert said.count("note: ") == 1
    assert f"note: {HOST} has no mpx, so SFTP is used" in said
    assert "--bootstrap" in said
    copied(f"ssh://{HOST}{tmp_path}/far", tmp_path / "back")
    for copy in (tmp_path / "far", tmp_path / "back"):
        assert copy.read_bytes() == source.read_bytes()
        assert (copy.stat().st_mtime, copy.stat().st_mode & 0o777) == (1_234_567_890, 0o640)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["back", "far", "source"]


def test_an_mpx_that_cannot_serve_is_as_none(tmp_path: Path) -> None:
    """Its Python was built without TLS, which shows once its server is loaded."""
    (tmp_path / "bin").mkdir()
    without = "import runpy, sys; sys.modules['_ssl'] = None; runpy.run_module('mpx', None, '__main__')"
    script = f'#!/bin/sh\ncd {Path(__file__).parents[2]}\nexec {sys.executable} -c "{without}" "$@"\n'
    (tmp_path / "bin" / "mpx").write_text(script)
    (tmp_path / "bin" / "mpx").chmod(0o755)
    source = make(tmp_path / "source", 1000)
    with private_sshd(f"SetEnv PATH={tmp_path}/bin:/usr/bin:/bin"):
        assert f"note: {HOST} has no mpx, so SFTP is used" in copied(source, there(tmp_path / "far"))
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


def test_a_file_with_holes_goes_both_ways(sshd: PrivateSshd, tmp_path: Path) -> None:
    """What arrives has zeros for them, as with servers of FTP."""
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.write(random_bytes(70_000))
        file.truncate(9 * MIB)
        file.seek(6 * MIB + 1)
        file.write(random_bytes(1000))
    copied(source, there(tmp_path / "far"))
    copied(there(source), tmp_path / "back")
    for copy in ("far", "back"):
        assert (tmp_path / copy).read_bytes() == source.read_bytes()


ODD = (
    *("plain", "with blanks", "-rf", "it's", '"; touch hit; "', "$(touch hit)", "a\udcffb", "*?", "a\nb"),
    *("back\\slash", "\\n", " ", "%41", "\x01", "-", "#", "~", "é", "x" * 255),
)


def test_a_tree_with_odd_names(sshd: PrivateSshd, tmp_path: Path) -> None:
    for name in ODD:
        make(tmp_path / "tree" / "sub" / name, 100)
        make(tmp_path / "tree" / name[:200] / "deeper", 100)
    (tmp_path / "tree" / "empty folder").mkdir()
    report = tmp_path / "report.json"
    copied("-r", tmp_path / "tree", there(tmp_path / "far"), "--report", report)
    assert contents(tmp_path / "far") == contents(tmp_path / "tree")
    told = json.loads(report.read_text())
    assert told["checksum"]["result"] == "verified"
    copied("-r", there(tmp_path / "far"), tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tmp_path / "tree")
    assert (tmp_path / "back" / "empty folder").is_dir()
    assert not list(tmp_path.rglob("hit"))


def test_names_are_relative_to_home_as_of_scp(sshd: PrivateSshd, tmp_path: Path) -> None:
    import pwd

    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    source = make(tmp_path / "source", 1000)
    relative = os.path.relpath(source, home)
    copied(f"{HOST}:{relative}", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_names_are_relative_to_where_sftp_begins(tmp_path: Path) -> None:
    """As with scp; the shell that computes the checksums begins at home all the same."""
    begins = tmp_path / "begins"
    begins.mkdir()
    source = make(tmp_path / "source", 100_000)
    with private_sshd(f"Subsystem sftp internal-sftp -d {begins}"):
        for name, url in (("a", f"{HOST}:a"), ("b", f"ssh://{HOST}/~/b")):
            assert "verified (sha256)" in copied(source, url)
            assert (begins / name).read_bytes() == source.read_bytes()
            assert "verified (sha256)" in copied(url, tmp_path / name)
            assert (tmp_path / name).read_bytes() == source.read_bytes()


def test_neither_names_nor_secrets_stand_in_any_command_line(sshd: PrivateSshd, tmp_path: Path) -> None:
    source = make(tmp_path / "telltale-source", 3 * MIB)
    seen: set[bytes] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        copied(source, there(tmp_path / "telltale-far"))
    finally:
        over.set()
        watching.join()
    of_ssh = [words for words in seen if b"-oClearAllForwardings" in words]
    assert any(words.endswith(b"\0sftp\0") for words in of_ssh)
    assert not [words for words in of_ssh if b"telltale" in words]


# --- interrupted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_copy_that_was_killed_goes_on(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    source = make(tmp_path / "source", 24 * MIB + 11)
    ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
    kill_halfway(ends, tmp_path, eventually)
    for (
        session
    ) in sshd.sessions():  # so that nothing goes on writing; the shared one would last half a minute
        with contextlib.suppress(ProcessLookupError):
            os.kill(session, signal.SIGKILL)
    eventually(lambda: not sshd.sessions())
    report = tmp_path / "report.json"
    copied(*ends, "--report", report)
    assert (tmp_path / "new").read_bytes() == source.read_bytes()
    assert json.loads(report.read_text())["bytes"]["resumed"] > 0


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_session_that_is_killed_is_opened_again(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    source = make(tmp_path / "source", 16 * MIB)
    ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
    with running("copy", *ends, "--rate", "20Mbit/s", "--streams", "3") as copy:
        eventually(lambda: len(lanes_of(copy.pid)) > 1 and list(tmp_path.glob(".new*.part")))
        for lane in lanes_of(copy.pid):  # one after the other; some list, or verify
            os.kill(lane, signal.SIGKILL)
        assert copy.wait(120) == 0
    assert (tmp_path / "new").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("way", ["up", "down"])
def test_sessions_that_stall_are_replaced(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    source = make(tmp_path / "source", 8 * MIB)
    ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
    with running("copy", *ends, "--rate", "20Mbit/s", "--timeout", "2s", "--connect-timeout", "5s") as copy:
        eventually(lambda: lanes_of(copy.pid) and list(tmp_path.glob(".new*.part")))
        for lane in lanes_of(copy.pid):
            os.kill(lane, signal.SIGSTOP)
        assert copy.wait(120) == 0
    assert (tmp_path / "new").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_shared_connection_alone_is_lost(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    """What is asked later, to verify and to name, goes through it; those that move data have others."""
    source = make(tmp_path / "source", 12 * MIB)
    ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
    with running("copy", *ends, "--rate", "20Mbit/s", "--streams", "2", "--retries", "2") as copy:
        eventually(lambda: len(sshd.sessions()) >= 2 and list(tmp_path.glob(".new*.part")))
        os.kill(min(sshd.sessions()), signal.SIGKILL)
        assert copy.wait(240) == 0
    assert (tmp_path / "new").read_bytes() == source.read_bytes()


def test_a_lost_network_is_waited_for(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    source = make(tmp_path / "source", 12 * MIB)
    with running("copy", source, there(tmp_path / "new"), "--rate", "60Mbit/s") as copy:
        eventually(lambda: list(tmp_path.glob(".new*.part")))
        for session in sshd.sessions():
            os.kill(session, signal.SIGKILL)
        assert copy.wait(120) == 0
    assert (tmp_path / "new").read_bytes() == source.read_bytes()


def test_an_interrupted_copy_leaves_no_ssh(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    make(tmp_path / "source", 24 * MIB)
    with running("copy", tmp_path / "source", there(tmp_path / "new"), "--rate", "8Mbit/s") as copy:
        eventually(lambda: list(tmp_path.glob(".new*.part")))
        copy.send_signal(signal.SIGINT)
        assert copy.wait(240) == 130
    eventually(lambda: not sshd.sessions())
    assert not (tmp_path / "new").exists()


# --- what a server allows --------------------------------------------------------------------------

ONLY_ONE_LOGIN = """#!/bin/sh
case "$*" in *ControlPath=none*) echo 'Permission denied (password).' >&2; exit 255;; esac
"""


def without_further_logins(sshd: PrivateSshd, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have ssh refuse each login but the first, as it does where somebody would have to type."""
    real = next(path for path in (sshd.folder / "bin" / "ssh",) if path.exists())
    programs = folder / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'{ONLY_ONE_LOGIN}exec {real} "$@"\n')
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


@pytest.mark.parametrize("way", ["up", "down"])
def test_one_session_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """No further login, and one session in the connection that there is: listing and moving take turns."""
    with private_sshd("MaxSessions 1") as sshd:
        without_further_logins(sshd, monkeypatch, tmp_path)
        sshd.configure("BatchMode yes")
        for number in range(30):
            make(tmp_path / "tree" / f"file {number}", 1000 * number)
        make(tmp_path / "tree" / "large", 6 * MIB)
        ends = (tmp_path / "tree", there(tmp_path / "new"))
        if way == "down":
            ends = (there(tmp_path / "tree"), tmp_path / "new")
        copied("-r", *ends, "--report", tmp_path / "report.json")
        assert contents(tmp_path / "new") == contents(tmp_path / "tree")
        told = (sshd.folder / "log").read_text()
        assert told.count("Accepted publickey") >= 1


@pytest.mark.parametrize("settings", [(), ("ControlMaster auto", "ControlPath {}/%C")])
def test_where_a_login_needs_somebody_who_types_one_is_enough(
    sshd: PrivateSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    """Whether mpx or the user has the connection shared."""
    without_further_logins(sshd, monkeypatch, tmp_path)
    sshd.configure(*(line.format(tmp_path) for line in settings))
    source = make(tmp_path / "source", 12 * MIB)
    before = sshd.log.read_text().count("Accepted publickey")
    report = tmp_path / "report.json"
    copied(source, there(tmp_path / "far"), "--streams", "4", "--report", report)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()
    assert "refused a further session" not in report.read_text()  # all share that connection
    assert sshd.log.read_text().count("Accepted publickey") == before + 1


@pytest.mark.parametrize("way", ["up", "down"])
def test_an_account_for_sftp_only(tmp_path: Path, way: str) -> None:
    """It has no shell, so nothing there computes checksums: the copy says so."""
    with private_sshd("ForceCommand internal-sftp"):
        source = make(tmp_path / "source", 9 * MIB + 1)
        ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
        report = tmp_path / "report.json"
        said = copied(*ends, "--report", report)
        assert (tmp_path / "new").read_bytes() == source.read_bytes()
        assert "unverified" in said
        assert json.loads(report.read_text())["checksum"]["result"] == "unverified"


def test_a_program_as_the_subsystem_does_as_well(tmp_path: Path) -> None:
    with private_sshd(f"Subsystem sftp {SFTP_SERVER}"):
        source = make(tmp_path / "source", 5 * MIB)
        copied(source, there(tmp_path / "far"))
        assert (tmp_path / "far").read_bytes() == source.read_bytes()


def test_a_few_connections_at_a_time_are_enough(tmp_path: Path) -> None:
    """sshd drops those that are one too many before they have logged in."""
    with private_sshd("MaxStartups 1:100:1", "PerSourceMaxStartups 1"):
        source = make(tmp_path / "source", 24 * MIB)
        copied(source, there(tmp_path / "far"), "--streams", "6")
        assert (tmp_path / "far").read_bytes() == source.read_bytes()
