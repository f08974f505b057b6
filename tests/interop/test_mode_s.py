"""MODE S: servers without MODE E, and clients that no server can connect to."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.mpx_process import Copy
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from interop.vsftpd import session_pids
from mpx_command import command, copied, refused
from mpx_command import mpx as mpx_copy
from random_bytes import random_bytes

import mpx
from mpx.endpoints.ftp.mode_s import worker
from mpx.units import counted

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.peers
@pytest.mark.parametrize("size", [0, 1, 5 * 1024 * 1024 + 3, 80 * 1024 * 1024 + 1])
def test_vsftpd_both_ways(vsftpd, tmp_path, size):
    url, served = vsftpd
    source = tmp_path / "source"
    source.write_bytes(random_bytes(size))
    up = mpx.copy(str(source), f"{url}/a file")
    assert (served / "a file").read_bytes() == source.read_bytes()
    down = mpx.copy(f"{url}/a file", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    for report in (up, down):
        assert report.checksum["result"] == "unverified"
        assert any("MODE S" in note for note in report.notes)
    assert not list(served.glob(".*part"))


@pytest.mark.peers
def test_what_vsftpd_cannot_do_is_refused_when_asked_for(vsftpd, tmp_path):
    url, served = vsftpd
    (tmp_path / "source").write_bytes(b"x")
    with pytest.raises(mpx.UsageError, match="no such checksum"):
        mpx.copy(str(tmp_path / "source"), f"{url}/x", mpx.CopyOptions(checksum="md5"))
    assert not list(served.iterdir())


@pytest.mark.peers
@pytest.mark.parametrize(
    ("direction", "options", "words"),
    [
        ("up", ["--block-size", "1MiB"], ["--block-size", "no MODE E"]),
        ("up", ["--streams", "2"], ["--streams 2", "--files"]),
        ("up", ["--continue"], ["--continue", "first byte"]),
        ("down", ["--streams", "9"], ["--streams 9", "--max-sessions 9"]),
        ("down", ["--initial-streams", "9"], ["--initial-streams 9", "--max-sessions 9"]),
    ],
)
def test_options_that_mode_s_cannot_honour(vsftpd, tmp_path, direction, options, words):
    url, served = vsftpd
    (tmp_path / "near").write_bytes(b"x")
    (served / "far").write_bytes(b"x")
    names = {"up": (tmp_path / "near", f"{url}/new"), "down": (f"{url}/far", tmp_path / "new")}
    refused(mpx_copy("copy", *options, *names[direction]), 2, *words)
    assert os.listdir(served) == ["far"]
    assert not (tmp_path / "new").exists()


@pytest.mark.peers
@pytest.mark.parametrize("direction", ["up", "down"])
def test_what_mode_s_leaves_no_choice_of_is_a_line_of_the_report(vsftpd, tmp_path, direction):
    url, served = vsftpd
    (tmp_path / "near").write_bytes(b"up")
    (served / "far").write_bytes(b"down")
    names = {"up": (tmp_path / "near", f"{url}/new"), "down": (f"{url}/far", tmp_path / "new")}
    ended = mpx_copy("copy", "--tuner", "paper", "--growth", "3", *names[direction])
    copied(ended)
    assert "--tuner paper is not available: in MODE S data does not stop between chunks" in ended.out
    new = {"up": served / "new", "down": tmp_path / "new"}[direction]
    assert new.read_bytes() == direction.encode()


@pytest.mark.peers
@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_an_upload_has_no_more_streams_than_files(vsftpd, tmp_path, names):
    """As each file is one connection: neither the report nor progress tells of more."""
    url, served = vsftpd
    sources = []
    for name in names:
        (tmp_path / name).write_bytes(random_bytes(1_000_000))
        sources.append(str(tmp_path / name))
    report = mpx.copy(sources, f"{url}/", mpx.CopyOptions(rate_bps=40e6))
    assert sorted(os.listdir(served)) == sorted(names)
    first, *rest = report.timeline
    assert (first.streams, first.reason) == (len(names), f"start with {counted(len(names), 'stream')}")
    assert all(event.streams <= len(names) for event in rest)


@pytest.mark.peers
def test_as_many_streams_as_sessions(vsftpd, tmp_path):
    url, served = vsftpd
    content = random_bytes(200_000_000)
    (served / "far").write_bytes(content)
    most = []
    options = mpx.CopyOptions(streams=3, max_sessions=3, rate_bps=800e6)
    report = mpx.copy(
        f"{url}/far",
        str(tmp_path / "new"),
        options,
        on_progress=lambda progress: most.append(progress.streams),
    )
    assert (tmp_path / "new").read_bytes() == content
    assert max(most) == 3
    assert any("at most 3 streams" in note for note in report.notes)


@pytest.mark.peers
def test_a_server_without_rest(vsftpd, tmp_path):
    url, served = vsftpd
    port = int(url.split(":")[2].split("/")[0])
    contents = {f"file {i}": random_bytes(20_000_000 + i) for i in range(3)}
    for name, content in contents.items():
        (served / name).write_bytes(content)

    def without(line: bytes) -> bytes:
        return b"" if line.startswith(b" REST") else line

    with ControlRelay(port, to_client=without) as relay:
        base = url.replace(f":{port}", f":{relay.port}")
        report = mpx.copy([f"{base}/{name}".replace(" ", "%20") for name in contents], str(tmp_path / "new"))
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == contents
    assert any("one whole file each" in note for note in report.notes)
    assert not [line for line in relay.heard if line.startswith(b"REST")]
    assert sum(line.startswith(b"RETR") for line in relay.heard) == 3


@pytest.mark.peers
def test_a_session_killed_in_mid_file_is_no_shorter_file(vsftpd, tmp_path, eventually):
    url, served = vsftpd
    content = random_bytes(24_000_001)
    (served / "far").write_bytes(content)
    running = Copy(tmp_path, f"{url}/far", tmp_path / "near", "--rate", "40Mbit/s", "--files", "1")

    def arrived() -> int:
        return sum(path.stat().st_blocks * 512 for path in tmp_path.glob(".near*.part"))

    eventually(lambda: arrived() > 4_000_000)
    for pid in session_pids(served):
        with contextlib.suppress(ProcessLookupError):  # it ended with its parent
            os.kill(pid, signal.SIGKILL)
    done = running.end()
    assert done.code == 0, done.stderr
    assert (tmp_path / "near").read_bytes() == content
    assert any("trying again" in note for note in done.report["notes"]), done.report["notes"]


@pytest.mark.peers
@pytest.mark.parametrize(("umask", "mode"), [("022", 0o644), ("077", 0o600), ("002", 0o664)])
def test_a_server_that_tells_no_modes(vsftpd, tmp_path, umask, mode):
    url, served = vsftpd
    (served / "far").write_bytes(b"content")
    (served / "far").chmod(0o604)
    copy = command("copy", f"{url}/far", tmp_path / "near")
    subprocess.run(["sh", "-c", f'umask {umask}; exec "$@"', "sh", *copy], check=True, timeout=60)
    assert (tmp_path / "near").read_bytes() == b"content"
    assert (tmp_path / "near").stat().st_mode & 0o7777 == mode


@pytest.mark.peers
def test_a_client_behind_a_firewall_still_downloads(tmp_path, peer):
    peer("globus-gridftp-server")
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    served = tmp_path / "served"
    served.mkdir()
    (served / "source").write_bytes(random_bytes(20_000_000))
    (served / "source").chmod(0o644)
    script = [sys.executable, str(TESTS / "interop" / "blocked_inbound.py"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        ["unshare", "-n", *script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert any("MODE S" in note for note in report["notes"])
    assert report["checksum"]["result"] == "verified"
    assert (tmp_path / "target").read_bytes() == (served / "source").read_bytes()


_KILLED_AT_THE_RENAME = """
import os, signal, sys, mpx, mpx.endpoints.local.endpoint
mpx.endpoints.local.endpoint._rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
mpx.copy(sys.argv[1], sys.argv[2])
"""


def test_a_download_that_was_killed_between_its_last_byte_and_its_name(vsftpd, tmp_path):
    url, served = vsftpd
    content = random_bytes(8 * 1024 * 1024 + 3)
    (served / "big").write_bytes(content)
    state = {"MPX_STATE_DIR": str(tmp_path / "state")}
    command_line = [sys.executable, "-c", _KILLED_AT_THE_RENAME, f"{url}/big", str(tmp_path / "got")]
    killed = subprocess.run(command_line, env={**os.environ, **state}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "got").exists()
    done = Copy(tmp_path, f"{url}/big", tmp_path / "got").end()
    assert done.code == 0
    assert (tmp_path / "got").read_bytes() == content


def test_a_server_that_only_says_150_again_when_a_part_is_closed(tmp_path: Path, monkeypatch) -> None:
    """Pure-FTPD, which then waits for the next command: the session goes on."""

    def retrieve(dialogue: Dialogue, name: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        reply = dialogue._retr(name)
        return "150 0.008 seconds (measured here)" if reply and reply.startswith("426") else reply

    monkeypatch.setattr(worker, "FIRST_PIECE", 256 * 1024)
    content = random_bytes(40_000_000)  # more than fits into the buffers of a connection
    with StoringServer({"RETR": retrieve}, files={"/file": content}) as server:
        report = mpx.copy(
            f"{server.url}/file", str(tmp_path / "file"), mpx.CopyOptions(streams=1, timeout_s=3)
        )
        assert server.heard.count("RETR") > 4
        assert server.heard.count("USER") <= 4  # one asks, one measures, one moves, one commits
    assert (tmp_path / "file").read_bytes() == content
    assert not [note for note in report.notes if "again" in note]


@pytest.mark.parametrize("checksums", [False, True])
def test_what_an_attempt_that_was_lost_brought_too_much_does_not_stay(
    tmp_path: Path, checksums: bool
) -> None:
    attempts = iter([True])

    def retrieve(dialogue: Dialogue, name: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        if not next(attempts, False):
            return dialogue._retr(name)
        dialogue.send(dialogue.server.files[name] * 2)
        return "426 lost"

    with StoringServer({"RETR": retrieve}, files={"/file": b"content"}, checksums=checksums) as server:
        mpx.copy(f"{server.url}/file", str(tmp_path / "file"), mpx.CopyOptions(retries=2))
    assert (tmp_path / "file").read_bytes() == b"content"
