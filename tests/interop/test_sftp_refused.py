"""Copies over SFTP that go wrong: one clear line each, and nothing that looks whole. Other commands."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from interop.ssh_copies import SFTP_SERVER, contents, copied, refused, stand_in, there
from interop.sshd import HOST, PrivateSshd, private_sshd
from mpx_command import mpx, running
from sites import make

from mpx.endpoints.sftp.lane_pool import LanePool
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.refusals import is_ok
from mpx.endpoints.sftp.session import Request, SftpSession
from mpx.endpoints.sftp.ssh_files import SshFilesEndpoint
from mpx.endpoints.sftp.wire import FSYNC, Reply
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.engine.endpoint import Commit
from mpx.errors import ConnectionLost
from mpx.location import parse_location

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateSshd]:
    with private_sshd() as sshd:
        yield sshd


@pytest.fixture
def sshd(server: PrivateSshd) -> PrivateSshd:
    server.configure()
    return server


# --- what goes wrong -------------------------------------------------------------------------------


def test_where_sftp_is_not_offered_either_one_line_tells_so(tmp_path: Path) -> None:
    with private_sshd("Subsystem sftp /nowhere/sftp-server"):
        make(tmp_path / "source")
        said = refused(2, tmp_path / "source", there(tmp_path / "far"))
        assert "--bootstrap" in said
        assert "SFTP" in said


def test_a_menu_in_place_of_sftp_is_not_waited_for(tmp_path: Path) -> None:
    """As a shell that serves people: it says less than a packet has, and then waits."""
    menu = tmp_path / "menu"
    menu.write_text("#!/bin/sh\nprintf '$ '\nexec sleep 1000\n")
    menu.chmod(0o755)
    session = SftpSession(SshProcess([str(menu)], "sftp", HOST), 60.0, lambda: False)
    with contextlib.closing(session), pytest.raises(ConnectionLost, match="instead of SFTP"):
        session.begin(1.0)


def test_what_a_longer_file_has_left_is_not_taken_for_part_of_a_copy(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """An unfinished copy of a longer file, its journal gone, has the name that the next one grows under."""
    make(tmp_path / "source", 12 * MIB)
    words = ("copy", tmp_path / "source", there(tmp_path / "far"), "--rate", "20Mbit/s")
    with running(*words) as copy:
        eventually(lambda: any(part.stat().st_size > 4 * MIB for part in tmp_path.glob(".far*.part")))
        copy.kill()
        copy.wait(240)
    assert mpx("unfinished", "--forget").code == 0
    make(tmp_path / "source", 3 * MIB)
    copied(tmp_path / "source", there(tmp_path / "far"))
    assert (tmp_path / "far").read_bytes() == (tmp_path / "source").read_bytes()


@pytest.mark.parametrize(
    "option", [("--remote-mpx", "/nowhere/mpx"), ("--bootstrap", "--remote-python", "/no")]
)
def test_what_was_asked_for_by_hand_is_not_replaced(
    sshd: PrivateSshd, tmp_path: Path, option: tuple[str, ...]
) -> None:
    make(tmp_path / "source")
    refused(2, tmp_path / "source", there(tmp_path / "far"), *option)
    assert not (tmp_path / "far").exists()


@pytest.mark.parametrize(
    "option",
    [("--congestion", "cubic"), ("--data-ports", "50000-50100"), ("--streams", "20"), ("--block-size", "1M")],
)
def test_options_that_mean_nothing_here_are_refused(
    sshd: PrivateSshd, tmp_path: Path, option: tuple[str, ...]
) -> None:
    make(tmp_path / "source")
    assert option[0] in refused(2, tmp_path / "source", there(tmp_path / "far"), *option)


def test_a_missing_file_is_told(sshd: PrivateSshd, tmp_path: Path) -> None:
    assert "does not exist" in refused(3, there(tmp_path / "missing"), tmp_path / "here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for file systems of their own")
def test_a_full_disk_is_told(sshd: PrivateSshd, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", small], check=True)
    try:
        make(tmp_path / "source", 9 * MIB)
        said = refused(9, tmp_path / "source", there(small / "far"))
        assert "space" in said
        with (small / "filler").open("wb") as filler:  # that is not known before
            filler.write(bytes(5 * MIB))
        make(tmp_path / "source", MIB // 2)
        copied(tmp_path / "source", there(small / "fits"))
        assert not (small / "far").exists()
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for file systems of their own")
def test_a_disk_that_fills_up_meanwhile_is_told(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", small], check=True)
    try:
        make(tmp_path / "source", 16 * MIB)
        with running("copy", tmp_path / "source", there(small / "far"), "--rate", "40Mbit/s") as copy:
            eventually(lambda: list(small.glob(".far*.part")))
            with contextlib.suppress(OSError), (small / "filler").open("wb", 0) as filler:
                while True:
                    filler.write(bytes(4096))
            said = copy.communicate(120)[1].decode()
            assert copy.wait(1) == 9, said
        assert "no space" in said
        assert len(said.strip().splitlines()) == 1
        assert not (small / "far").exists()
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_quota_that_is_used_up_is_told(tmp_path: Path) -> None:
    """A limit of the shell stands for one: the server says of both that it failed."""
    limited = tmp_path / "sftp-limited"
    limited.write_text(f"#!/bin/bash\nulimit -f 1024; trap '' XFSZ; exec {SFTP_SERVER}\n")
    limited.chmod(0o755)
    with private_sshd(f"Subsystem sftp {limited}"):
        make(tmp_path / "source", 8 * MIB)
        said = refused(4, tmp_path / "source", there(tmp_path / "far"))
        assert "quota" in said
        assert not (tmp_path / "far").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another account there")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    as_nobody = tmp_path / "sftp-as-nobody"
    as_nobody.write_text(f"#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups {SFTP_SERVER}\n")
    as_nobody.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o755)
    with private_sshd(f"Subsystem sftp {as_nobody}"):
        make(tmp_path / "source", 1000)
        assert "permission denied" in refused(4, tmp_path / "source", there(tmp_path / "closed" / "far"))
        (tmp_path / "source").chmod(0o600)
        assert "permission denied" in refused(3, there(tmp_path / "source"), tmp_path / "near")
        assert not (tmp_path / "near").exists()


def test_a_start_up_file_that_prints_is_told(tmp_path: Path) -> None:
    noisy = tmp_path / "sftp-noisy"
    noisy.write_text(f"#!/bin/sh\necho Welcome to this host, dear user; exec {SFTP_SERVER}\n")
    noisy.chmod(0o755)
    with private_sshd(f"Subsystem sftp {noisy}"):
        make(tmp_path / "source")
        said = refused(6, tmp_path / "source", there(tmp_path / "far"), "--retries", "0")
        assert "Welcome" in said
        assert "start-up file" in said


# --- other commands --------------------------------------------------------------------------------


def test_a_folder_is_listed(sshd: PrivateSshd, tmp_path: Path) -> None:
    for number in range(300):
        make(tmp_path / "tree" / f"file {number}")
    (tmp_path / "tree" / "link").symlink_to("file 1")
    listed = mpx("list", "-l", f"ssh://{HOST}{tmp_path}/tree")
    assert (listed.code, len(listed.out.splitlines())) == (0, 301), listed.err
    assert "link -> file 1" in listed.out


def test_discarding_may_be_stopped_and_done_later(tmp_path: Path, eventually: Callable[..., None]) -> None:
    """At any moment: here while SFTP does not begin, as the host there hangs."""
    make(tmp_path / "source", 12 * MIB)
    program = tmp_path / "sftp-may-hang"
    program.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/hangs ] && {{ echo >{tmp_path}/hanging; exec cat >/dev/null; }}\n"
        f"exec {SFTP_SERVER}\n"
    )
    program.chmod(0o755)
    with private_sshd(f"Subsystem sftp {program}") as sshd:
        with running("copy", tmp_path / "source", there(tmp_path / "far"), "--rate", "8Mbit/s") as copy:
            eventually(lambda: list(tmp_path.glob(".far*.part")))
            copy.send_signal(signal.SIGINT)
            assert copy.wait(240) == 130
        eventually(lambda: not sshd.sessions())  # none of them is the one that is to hang
        (tmp_path / "hangs").touch()
        with running("unfinished", "--discard") as discard:
            eventually((tmp_path / "hanging").exists)
            discard.send_signal(signal.SIGTERM)
            said = discard.communicate(240)[1].decode()
            assert discard.returncode in (143, -signal.SIGTERM), said  # a shell tells both as 143
        assert len(said.strip().splitlines()) <= 1, said
        assert list(tmp_path.glob(".far*.part"))
        (tmp_path / "hangs").unlink()
        done = mpx("unfinished", "--discard")
        assert done.code == 0, done.err
        assert not list(tmp_path.glob(".far*.part"))


def test_an_unfinished_upload_is_discarded(
    sshd: PrivateSshd, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    make(tmp_path / "source", 12 * MIB)
    with running("copy", tmp_path / "source", there(tmp_path / "far"), "--rate", "8Mbit/s") as copy:
        eventually(lambda: list(tmp_path.glob(".far*.part")))
        copy.kill()
        copy.wait(240)
    assert mpx("unfinished", "--discard").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


# --- few handles -----------------------------------------------------------------------------------

FEW = '#!/bin/sh\nulimit -n 24; exec {} "$@"\n'  # descriptors, of which the program needs some itself


def a_few_handles(folder: Path) -> Path:
    program = folder / "sftp-few"
    program.write_text(FEW.format(SFTP_SERVER))
    program.chmod(0o755)
    return program


def count_synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files a server has synced, each time that it was asked."""
    ask, counts = SftpSession.ask, list[int]()

    def counted(session: SftpSession, requests: Sequence[Request], **how: Any) -> list[Reply]:
        replies = ask(session, requests, **how)
        asked = [reply for one, reply in zip(requests, replies, strict=True) if one.extension == FSYNC]
        counts.append(sum(map(is_ok, asked)))
        return replies

    monkeypatch.setattr(SftpSession, "ask", counted)
    return counts


@pytest.mark.parametrize("tells", [True, False])
def test_a_server_that_admits_few_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tells: bool
) -> None:
    """Whether it tells how many or not; and none is left open."""
    program = a_few_handles(tmp_path)
    for number in range(60):
        make(tmp_path / "tree" / f"{number}", 2000)
    with contextlib.ExitStack() as stack:
        if tells:
            stack.enter_context(private_sshd(f"Subsystem sftp {program}"))
        else:
            stand_in(tmp_path, monkeypatch, "no_limits", program)
        copied("-r", tmp_path / "tree", there(tmp_path / "far"))
        copied("-r", there(tmp_path / "far"), tmp_path / "back")
        for copy in ("far", "back"):
            assert contents(tmp_path / copy) == contents(tmp_path / "tree")
        location = parse_location(f"ssh://{HOST}{tmp_path}/far")
        login = stack.enter_context(contextlib.closing(SshLogin(location)))
        pool = stack.enter_context(contextlib.closing(LanePool(login)))
        options = LaneOptions(20.0, 20.0, lambda: False)
        end = stack.enter_context(contextlib.closing(SshFilesEndpoint(location, pool, options, writing=True)))
        notes: list[str] = []
        synced = count_synced(monkeypatch)
        for _ in range(3):
            partials = [make(tmp_path / "far" / f".{number}.part", 100) for number in range(60)]
            commits = [Commit(str(path), f"{path}.done", 1e9, 0o640) for path in partials]
            assert end.commit(commits, notes.append) == [None] * 60
        assert not notes and sum(synced) == 3 * 60
        assert all(path.stat().st_mtime == 1e9 for path in (tmp_path / "far").glob(".*.done"))
