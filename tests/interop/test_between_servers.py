"""Copies between servers of all kinds: straight where both allow it, else through this host, or refused."""

import contextlib
import itertools
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from grids import as_user, shared_grid
from interop.control_relay import ControlRelay
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd
from interop.mpx_process import assert_clear, copy
from interop.stock_server import StockServer
from interop.trees import names
from interop.vsftpd import VsFtpd
from sites import make, opened, own_site, stock_site

import mpx
from mpx.errors import IntegrityError, UsageError
from mpx.serve import Server

pytestmark = pytest.mark.peers
MIB = 1024 * 1024
ONLY = mpx.CopyOptions(third_party="only", recursive=True)
NEVER = mpx.CopyOptions(third_party="never", recursive=True)
AUTO = mpx.CopyOptions(recursive=True)
NO_DCSC = ("-disable-command-list", "DCSC")
STRAIGHT, THROUGH_US = "data go straight", "data pass through this host"
ELSEWHERE = "127.0.0.3"  # another address of this host


def a_tree(folder: Path) -> None:
    for size in (0, 1, 999, 70_001, 9 * MIB + 5):
        make(folder / "tree/sub" / f"{size}", size)
    (folder / "tree/empty").mkdir()


def assert_copied(folders: tuple[Path, Path]) -> None:
    source, destination = (folder / "tree" for folder in folders)
    assert names(source) == names(destination)
    for path in (path for path in source.rglob("*") if path.is_file()):
        assert (destination / path.relative_to(source)).read_bytes() == path.read_bytes(), path


def said(report: mpx.Report, words: str) -> bool:
    return any(words in note for note in report.notes)


# --- the security of grids -------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"encrypt": True}, {"dcau": False}], ids=str)
@pytest.mark.parametrize("without_dcsc", ["neither", "source", "destination", "both"])
def test_servers_of_a_grid_send_to_each_other(
    folders: tuple[Path, Path], without_dcsc: str, given: dict[str, bool]
) -> None:
    a_tree(folders[0])
    grid = shared_grid()
    lacks = [without_dcsc in ("both", which) for which in ("source", "destination")]
    with (
        as_user(grid),
        StockServer(folders[0], grid=grid, arguments=NO_DCSC if lacks[0] else ()) as sender,
        StockServer(folders[1], grid=grid, arguments=NO_DCSC if lacks[1] else ()) as receiver,
    ):
        options = mpx.CopyOptions(third_party="only", recursive=True, retries=1, **given)
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", options)
    assert said(report, STRAIGHT) and not said(report, "trying again")
    assert report.checksum["result"] == "verified"
    assert_copied(folders)


def test_a_name_with_an_escape_of_telnet_is_asked_about_between_transfers(folders: tuple[Path, Path]) -> None:
    """Not while others are under way: the refusal of the question was taken for that of one of them."""
    for i in range(40):
        make(folders[0] / f"tree/many/{i}", 1000)
    make(folders[0] / "tree/large", 64 * MIB)
    make(Path(os.fsdecode(os.fsencode(folders[0]) + b"/tree/z\xff")), 1000)
    grid = shared_grid()
    with (
        as_user(grid),
        StockServer(folders[0], grid=grid) as sender,
        StockServer(folders[1], grid=grid) as receiver,
    ):
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", ONLY)
    assert said(report, STRAIGHT) and report.files.moved == 42
    assert_copied(folders)


# --- plain FTP -------------------------------------------------------------------------------------

PLAIN = {"vsftpd": VsFtpd, "proftpd": ProFtpd, "pureftpd": PureFtpd, "stock": StockServer}
PAIRS = [pair for pair in itertools.product(PLAIN, PLAIN) if pair != ("stock", "stock")]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_ftp_servers_send_to_each_other_in_mode_s(
    folders: tuple[Path, Path], with_password: None, pair: tuple[str, str]
) -> None:
    a_tree(folders[0])
    with PLAIN[pair[0]](folders[0]) as sender, PLAIN[pair[1]](folders[1]) as receiver:
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", ONLY)
    assert said(report, STRAIGHT) and said(report, "using MODE S")
    assert (report.files.moved, report.files.failed) == (5, 0)
    assert_copied(folders)


# --- refusals --------------------------------------------------------------------------------------


@contextlib.contextmanager
def refusing_sender(folders: tuple[Path, Path]) -> Iterator[tuple[str, str]]:
    """vsftpd sends to nobody but to whom it talks."""
    with VsFtpd(folders[0]) as sender, StockServer(folders[1], host=ELSEWHERE) as receiver:
        yield sender.url, receiver.url


@contextlib.contextmanager
def closed_port(folders: tuple[Path, Path]) -> Iterator[tuple[str, str]]:
    """The sender cannot reach the receiver, as if a firewall refused its connections."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        number = nobody.getsockname()[1]
        closed = b"PORT 127,0,0,1,%d,%d\r\n" % (number // 256, number % 256)
        with (
            StockServer(folders[0]) as sender,
            StockServer(folders[1]) as receiver,
            ControlRelay(
                sender.port, to_server=lambda line: closed if line.startswith(b"PORT") else line
            ) as relay,
        ):
            yield sender.url.replace(f":{sender.port}/", f":{relay.port}/"), receiver.url


@pytest.mark.parametrize("refusing", [refusing_sender, closed_port])
def test_who_does_not_send_to_others_is_sent_from_here(folders: tuple[Path, Path], refusing) -> None:
    a_tree(folders[0])
    with refusing(folders) as (source, destination):
        report = mpx.copy(source + "tree", destination + "tree", AUTO)
    assert said(report, THROUGH_US)
    assert report.files.moved == 5
    assert_copied(folders)


@pytest.mark.parametrize("refusing", [refusing_sender, closed_port])
def test_or_refused_where_nothing_else_is_permitted(
    tmp_path: Path, folders: tuple[Path, Path], refusing
) -> None:
    a_tree(folders[0])
    with refusing(folders) as (source, destination):
        done = copy(tmp_path, source + "tree", destination + "tree", "-r", "--third-party", "only")
    assert_clear(done, 2, "--third-party only is not possible here")
    assert [name for name in names(folders[1]) if not name.endswith(("/", ".part"))] == []


def test_an_address_that_may_mean_another_host_is_not_handed_on(
    folders: tuple[Path, Path],
) -> None:
    """We reach the receiver at an address of this host, and the sender at that of another one."""
    a_tree(folders[0])
    if not (ours := own_address()):
        pytest.skip("this host has no address but that of loopback")
    with StockServer(folders[0], host=ours) as sender, StockServer(folders[1]) as receiver:
        with pytest.raises(UsageError, match="may mean another host"):
            mpx.copy(sender.url + "tree", receiver.url + "tree", ONLY)
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", AUTO)
    assert said(report, THROUGH_US)
    assert_copied(folders)


def own_address() -> str:
    """The address that this host has for others, if any; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, contextlib.suppress(OSError):
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])
    return ""


@pytest.mark.parametrize("which", ["source", "destination"])
def test_servers_that_lie_about_checksums(folders: tuple[Path, Path], which: str) -> None:
    make(folders[0] / "file", 5 * MIB)

    def lie(line: bytes) -> bytes:
        sum_of_8 = re.fullmatch(rb"213 ([0-9a-f]{8})\r\n", line)
        return b"213 0123abcd\r\n" if sum_of_8 else line

    with (
        StockServer(folders[0]) as sender,
        StockServer(folders[1]) as receiver,
        ControlRelay((sender if which == "source" else receiver).port, to_client=lie) as relay,
    ):
        urls = {"source": sender.url, "destination": receiver.url}
        urls[which] = re.sub(r":\d+/", f":{relay.port}/", urls[which])
        with pytest.raises(IntegrityError, match="another adler32 at the destination although"):
            mpx.copy(urls["source"] + "file", urls["destination"] + "file", ONLY)
    assert os.listdir(folders[1]) == []


# --- through this host -----------------------------------------------------------------------------

KINDS = ("stock server", "grid server", "mpx serve", "mpx serve with a token")


PAIRS = [
    pair for pair in itertools.product(KINDS, KINDS) if pair != (KINDS[3], KINDS[3])
]  # one token at a time


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_all_other_pairs_go_through_this_host(folders: tuple[Path, Path], pair: tuple[str, str]) -> None:
    a_tree(folders[0])
    with contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context(opened(kind, folder.parent)).url
            for kind, folder in zip(pair, folders, strict=True)
        ]
        for folder in folders:
            (folder.parent / "served").chmod(0o777)
        a_tree(folders[0].parent / "served")
        report = mpx.copy(urls[0] + "tree", urls[1] + "tree", NEVER)
    assert said(report, THROUGH_US)
    assert (report.files.moved, report.checksum["result"]) == (5, "verified")
    assert_copied((folders[0].parent / "served", folders[1].parent / "served"))


@pytest.mark.parametrize("pair", [(ProFtpd, VsFtpd), (StockServer, PureFtpd), (PureFtpd, StockServer)])
def test_plain_servers_through_this_host(
    folders: tuple[Path, Path], with_password: None, pair: tuple[type[ForeignServer], type[ForeignServer]]
) -> None:
    a_tree(folders[0])
    with pair[0](folders[0]) as sender, pair[1](folders[1]) as receiver:
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", NEVER)
    assert (report.files.moved, said(report, THROUGH_US)) == (5, True)
    assert_copied(folders)


def test_a_rate_is_kept_through_this_host(folders: tuple[Path, Path]) -> None:
    make(folders[0] / "file", 4 * MIB)
    with StockServer(folders[0]) as sender, StockServer(folders[1]) as receiver:
        report = mpx.copy(sender.url + "file", receiver.url + "file", mpx.CopyOptions(rate_bps=40e6))
    assert said(report, "--rate")
    assert report.goodput_bps < 45e6
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


def test_several_streams_share_a_large_file_through_this_host(folders: tuple[Path, Path]) -> None:
    make(folders[0] / "file", 100 * MIB)
    with stock_site(folders[0]) as sender, own_site(folders[1]) as receiver:
        report = mpx.copy(
            sender.url + "file", receiver.url + "file", mpx.CopyOptions(third_party="never", streams=4)
        )
    assert report.compared == {"adler32": 100 * MIB}
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


def test_sources_in_two_places_are_refused(folders: tuple[Path, Path]) -> None:
    with (
        Server(folders[0]) as one,
        Server(folders[1], writable=True) as other,
        pytest.raises(UsageError, match="different places"),
    ):
        mpx.copy([one.url + "a", other.url + "b"], other.url + "c/")
