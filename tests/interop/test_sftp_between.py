"""Copies between two servers of which one or both are reached by SFTP: they pass through this host."""

import contextlib
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from interop.bent_sftp import CLOSE_FAILS_ONCE
from interop.foreign_servers import ProFtpd
from interop.ssh_copies import SFTP_SERVER, copied, lanes_of, stand_in
from interop.sshd import HOST, private_sshd
from interop.stock_server import StockServer
from interop.test_between_servers import THROUGH_US, assert_copied, said
from interop.test_sftp import without_further_logins
from interop.vsftpd import VsFtpd
from mpx_command import running
from secure_client import secure_server, token_of
from sites import make

import mpx
from mpx.engine.retry import OneSessionOnly
from mpx.errors import DestinationError, IntegrityError, Interrupted, PartialFailure, SourceError, UsageError

pytestmark = pytest.mark.peers
MIB = 1024 * 1024
TREE = mpx.CopyOptions(recursive=True)
SFTP = "no mpx, so SFTP is used"


@contextlib.contextmanager
def served(kind: str, folder: Path, user: str = "") -> Iterator[str]:
    """Serve a folder; the URL that it has. `user`: another one is another endpoint."""
    if kind == "sftp":
        yield f"ssh://{user}{HOST}{folder}/"
    elif kind == "mpx":
        with secure_server(folder) as (server, secure), token_of(secure):
            yield server.url
    else:
        kinds = {"stock": StockServer, "proftpd": ProFtpd, "vsftpd": VsFtpd}
        with kinds[kind](folder) as server:
            yield server.url


@contextlib.contextmanager
def between(kinds: tuple[str, str], folders: tuple[Path, Path], *settings: str) -> Iterator[tuple[str, str]]:
    with private_sshd(*settings), contextlib.ExitStack() as stack:
        source, destination = kinds
        yield (
            stack.enter_context(served(source, folders[0])),
            stack.enter_context(served(destination, folders[1], "root@" if source == "sftp" else "")),
        )


def a_tree(folder: Path) -> int:
    for size in (0, 1, 999, 70_001, 9 * MIB + 5):
        make(folder / "tree/sub" / f"{size}", size)
    for i in range(40):
        make(folder / "tree/many" / f"{i}", i * 1000)
    (folder / "tree/empty").mkdir()
    make(folder / "tree/large", 24 * MIB + 1)
    return 46


OTHERS = ("mpx", "stock", "proftpd", "vsftpd")
PAIRS = [("sftp", "sftp"), *itertools.product(("sftp",), OTHERS), *itertools.product(OTHERS, ("sftp",))]


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_a_tree_passes_through_this_host(
    folders: tuple[Path, Path], kinds: tuple[str, str], with_password: None
) -> None:
    count = a_tree(folders[0])
    with between(kinds, folders) as urls:
        report = mpx.copy(urls[0] + "tree", urls[1] + "tree", TREE)
        again = mpx.copy(urls[0] + "tree", urls[1] + "tree", TREE)
    assert said(report, THROUGH_US)
    assert sum(SFTP in note for note in report.notes) == kinds.count("sftp")
    assert (report.files.moved, again.files.skipped) == (count, count)
    # Where the source computes no checksums, what is stored is compared with what passed through this host.
    assert report.checksum["result"] == ("unverified" if kinds[1] in ("vsftpd", "proftpd") else "verified")
    assert_copied(folders)


def test_both_ends_may_be_one_host(folders: tuple[Path, Path]) -> None:
    count = a_tree(folders[0])
    with private_sshd():
        report = mpx.copy(f"ssh://{HOST}{folders[0]}/tree", f"ssh://{HOST}{folders[1]}/tree", TREE)
    assert (report.files.moved, sum(SFTP in note for note in report.notes)) == (count, 1)
    assert_copied(folders)


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("sftp", "mpx"), ("mpx", "sftp")], ids="-".join)
@pytest.mark.parametrize("sessions", [1, 2])
def test_few_sessions_are_enough(folders: tuple[Path, Path], kinds: tuple[str, str], sessions: int) -> None:
    count = a_tree(folders[0])
    with between(kinds, folders, f"MaxSessions {sessions}", "MaxStartups 1:100:1") as urls:
        report = mpx.copy(urls[0] + "tree", urls[1] + "tree", TREE)
    assert report.files.moved == count
    assert_copied(folders)


def test_one_host_that_admits_one_session_is_told(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only asks takes turns; a relay needs two sessions at once, which never come."""
    make(folders[0] / "tree/file", 1000)
    with private_sshd("MaxSessions 1") as sshd:
        without_further_logins(sshd, monkeypatch, tmp_path)
        sshd.configure("BatchMode yes")
        ends = f"ssh://{HOST}{folders[0]}/tree", f"ssh://{HOST}{folders[1]}/tree"
        with pytest.raises(OneSessionOnly, match="one session at a time"):
            mpx.copy(*ends, mpx.CopyOptions(recursive=True, timeout_s=0.5))
    assert not [each for each in folders[1].rglob("*") if each.is_file()]


def test_an_ftp_server_that_admits_one_session_is_told(folders: tuple[Path, Path], tmp_path: Path) -> None:
    make(folders[0] / "file", 1000)
    with StockServer(tmp_path, arguments=("-connections-max", "1")) as server:
        ends = f"{server.url}one/from/file", f"{server.url}other/to/file"
        with pytest.raises(OneSessionOnly, match="one session at a time"):
            mpx.copy(*ends, mpx.CopyOptions(timeout_s=0.5))
    assert not list(folders[1].iterdir())


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("sftp", "mpx")], ids="-".join)
def test_sessions_that_are_killed_are_opened_again(
    folders: tuple[Path, Path], kinds: tuple[str, str], eventually: Callable[..., None]
) -> None:
    """Those of one end after those of the other, while data pass."""
    source = make(folders[0] / "file", 6 * MIB)
    with between(kinds, folders) as urls:
        ends = urls[0] + "file", urls[1] + "file"
        with running("copy", *ends, "--rate", "12Mbit/s", "--streams", "2") as copy:
            eventually(lambda: len(lanes_of(copy.pid)) > 1 and list(folders[1].glob(".file*.part")))
            for lane in lanes_of(copy.pid):
                os.kill(lane, signal.SIGKILL)
            said = copy.communicate(240)[1].decode()
            assert copy.returncode == 0, said
    assert (folders[1] / "file").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("kinds", [("sftp", "mpx"), ("stock", "sftp")], ids="-".join)
def test_a_copy_that_is_stopped_goes_on(
    folders: tuple[Path, Path], kinds: tuple[str, str], with_password: None
) -> None:
    make(folders[0] / "large", 40 * MIB + 3)
    with between(kinds, folders) as urls:
        stop = threading.Event()

        def half(progress: mpx.Progress) -> None:
            if progress.bytes_done > 20 * MIB:
                stop.set()

        with pytest.raises(Interrupted):
            mpx.copy(
                urls[0] + "large",
                urls[1] + "large",
                mpx.CopyOptions(rate_bps=100e6),
                on_progress=half,
                cancel=stop,
            )
        assert not (folders[1] / "large").exists()
        report = mpx.copy(urls[0] + "large", urls[1] + "large")
    assert (folders[1] / "large").read_bytes() == (folders[0] / "large").read_bytes()
    assert (report.files.resumed, report.bytes.resumed > 8 * MIB) == (1, True)


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("mpx", "sftp")], ids="-".join)
def test_a_copy_that_is_killed_goes_on(
    folders: tuple[Path, Path], kinds: tuple[str, str], eventually: Callable[..., None]
) -> None:
    make(folders[0] / "large", 24 * MIB)
    with between(kinds, folders) as urls:
        ends = urls[0] + "large", urls[1] + "large"
        with running("copy", *ends, "--rate", "20Mbit/s") as killed:
            eventually(lambda: sum(each.stat().st_blocks for each in folders[1].glob(".large*.part")) > 4000)
            killed.kill()
            killed.wait(240)
        copied(*ends)
    assert (folders[1] / "large").read_bytes() == (folders[0] / "large").read_bytes()


def test_a_rate_is_kept(folders: tuple[Path, Path]) -> None:
    make(folders[0] / "file", 4 * MIB)
    with between(("sftp", "sftp"), folders) as urls:
        options = mpx.CopyOptions(rate_bps=40e6, congestion="cubic")
        report = mpx.copy(urls[0] + "file", urls[1] + "file", options)
    assert report.goodput_bps < 45e6
    assert said(report, "--congestion cubic is not available")
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("mpx", "sftp")], ids="-".join)
def test_a_rate_is_kept_by_small_files(folders: tuple[Path, Path], kinds: tuple[str, str]) -> None:
    """Each is larger than what passes at once at that rate."""
    for number in range(9):
        make(folders[0] / f"tree/{number}", 500_000)
    with between(kinds, folders) as urls:
        report = mpx.copy(urls[0] + "tree", urls[1] + "tree", replace(TREE, rate_bps=40e6))
    assert report.goodput_bps < 45e6
    assert_copied(folders)


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("sftp", "mpx"), ("mpx", "sftp")], ids="-".join)
def test_straight_is_refused(folders: tuple[Path, Path], kinds: tuple[str, str]) -> None:
    make(folders[0] / "file", 1000)
    with between(kinds, folders) as urls, pytest.raises(UsageError, match=r"no mpx at .* that sends"):
        mpx.copy(urls[0] + "file", urls[1] + "file", mpx.CopyOptions(third_party="only"))
    assert not list(folders[1].iterdir())


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("mpx", "sftp")], ids="-".join)
def test_what_may_not_be_stored_is_told(folders: tuple[Path, Path], kinds: tuple[str, str]) -> None:
    make(folders[0] / "file", 3 * MIB)
    with between(kinds, folders) as urls, pytest.raises(DestinationError):
        mpx.copy(urls[0] + "file", urls[1] + "y" * 256)
    assert not list(folders[1].iterdir())


@pytest.mark.parametrize("kinds", [("sftp", "sftp"), ("sftp", "mpx"), ("mpx", "sftp")], ids="-".join)
def test_files_that_are_refused_do_not_keep_others_back(
    folders: tuple[Path, Path], kinds: tuple[str, str]
) -> None:
    as_nobody = folders[0].parent / "sftp-as-nobody"
    as_nobody.write_text(f"#!/bin/sh\nexec setpriv --reuid 65534 --clear-groups {SFTP_SERVER}\n")
    as_nobody.chmod(0o755)
    for folder in folders:
        for each in (folder, *folder.parents[:2]):
            each.chmod(0o777)
    for i in range(20):
        make(folders[0] / f"tree/{i}/file", 10_000 + i)
    make(folders[0] / "tree/3/other", 50_000).chmod(0)
    (folders[1] / "tree/5").mkdir(parents=True)
    for each in (folders[1] / "tree", folders[1] / "tree/5"):
        each.chmod(0o777 if each.name == "tree" else 0o555)
    with (
        between(kinds, folders, f"Subsystem sftp {as_nobody}") as urls,
        pytest.raises(PartialFailure) as failed,
    ):
        mpx.copy(urls[0] + "tree", urls[1] + "tree", TREE)
    report = failed.value.report
    assert report is not None
    refused = int(kinds[0] == "sftp") + int(kinds[1] == "sftp")
    assert (report.files.moved, report.files.failed) == (21 - refused, refused)


def test_files_that_are_refused_cost_no_session(folders: tuple[Path, Path]) -> None:
    """In the middle of their data, by a limit of the shell; nothing of them comes into those that follow."""
    limited = folders[0].parent / "sftp-limited"
    limited.write_text(f"#!/bin/sh\nulimit -f 4096\ntrap '' XFSZ\nexec {SFTP_SERVER}\n")
    limited.chmod(0o755)
    for i in range(30):
        make(folders[0] / f"tree/{i}", 3 * MIB if i % 5 == 1 else 1000 + i)
    with private_sshd(f"Subsystem sftp {limited}") as sshd:
        ends = f"ssh://{HOST}{folders[0]}/tree", f"ssh://{HOST}{folders[1]}/tree"
        with pytest.raises(PartialFailure):
            mpx.copy(*ends, mpx.CopyOptions(recursive=True, streams=1, files=1))
        assert sshd.log.read_text().count("Accepted publickey") < 6
    arrived = {int(each.name): each for each in (folders[1] / "tree").iterdir() if each.is_file()}
    assert {*arrived} == {i for i in range(30) if i % 5 != 1}
    for i, each in arrived.items():
        assert each.read_bytes() == (folders[0] / f"tree/{i}").read_bytes()


@pytest.mark.parametrize("how", ["short", "long"])
def test_a_source_that_changes_is_never_taken_for_whole(
    folders: tuple[Path, Path], how: str, eventually: Callable[..., None]
) -> None:
    source = make(folders[0] / "file", 30 * MIB)
    with between(("sftp", "sftp"), folders) as urls:

        def change(progress: mpx.Progress) -> None:
            if progress.bytes_done > 4 * MIB:
                os.truncate(source, (10 if how == "short" else 40) * MIB)

        with pytest.raises((IntegrityError, SourceError)):
            mpx.copy(urls[0] + "file", urls[1] + "file", mpx.CopyOptions(rate_bps=100e6), on_progress=change)
    assert not (folders[1] / "file").exists()


def through_bent(how: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> mpx.Report:
    stand_in(folders[0].parent, monkeypatch, how, Path(SFTP_SERVER))
    options = mpx.CopyOptions(retries=1)
    return mpx.copy(f"ssh://{HOST}{folders[0]}/file", f"ssh://{HOST}{folders[1]}/file", options)


def test_a_server_may_give_less_than_asked_for(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(folders[0] / "file", 20 * MIB + 7)
    through_bent("short_data", folders, monkeypatch)
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


LIES = (
    *("wrong_number", "wrong_kind", "only_well", "too_large", "no_data", "more_data", "cut_within_a_field"),
    *("ends", "ends_within_a_packet", "longer", "shorter"),
)


@pytest.mark.parametrize("how", LIES)
def test_a_server_that_lies_is_not_believed(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    make(folders[0] / "file", MIB)
    with pytest.raises(mpx.MpxError):
        through_bent(how, folders, monkeypatch)
    assert not (folders[1] / "file").exists()


@pytest.mark.parametrize("source", ["here", "sftp"])
def test_a_part_that_cannot_be_stored_as_it_is_closed_is_told(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """While other sessions bring the rest, of which none fails: all bytes were acknowledged by then."""
    make(folders[0] / "file", 24 * MIB)
    stand_in(folders[0].parent, monkeypatch, "close_fails", Path(SFTP_SERVER))
    once = folders[0].parent / "closed"
    monkeypatch.setenv(CLOSE_FAILS_ONCE, f"{once}:{folders[1]}/file")
    with contextlib.ExitStack() as stack:
        near = f"{folders[0]}/" if source == "here" else stack.enter_context(served(source, folders[0]))
        ends = f"{near}file", f"ssh://root@{HOST}{folders[1]}/file"
        with pytest.raises(DestinationError, match="cannot store"):
            mpx.copy(*ends, mpx.CopyOptions(streams=3))
        assert once.exists() and not (folders[1] / "file").exists()
        mpx.copy(*ends, mpx.CopyOptions(streams=3))
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


@pytest.mark.parametrize("how", ["longer", "shorter", "no_data"])
def test_small_files_that_are_not_as_large_as_was_told_are_not_believed(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    for number in range(30):
        make(folders[0] / "file" / f"{number}", 50_000)
    stand_in(folders[0].parent, monkeypatch, how, Path(SFTP_SERVER))
    ends = f"ssh://{HOST}{folders[0]}/file", f"ssh://{HOST}{folders[1]}/file"
    with pytest.raises(mpx.MpxError):
        mpx.copy(*ends, mpx.CopyOptions(recursive=True, retries=1))
    assert not [path for path in (folders[1] / "file").rglob("[0-9]*") if path.is_file()]
