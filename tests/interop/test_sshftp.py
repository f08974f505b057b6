"""Copies to and from a host with ssh, no mpx, and a stock GridFTP server that was enabled for its account."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.ssh_copies import contents, copied, kill_halfway, refused, there
from interop.sshd import HOST
from interop.sshftp_account import SshftpAccount, sshftp_account
from interop.stock_server import StockServer
from interop.test_sftp import without_further_logins
from mpx_command import mpx
from sites import make

pytestmark = pytest.mark.peers
MIB = 1024 * 1024
CHOSEN = f"note: {HOST} has no mpx, so its GridFTP server is used (sshftp)"
NOT_CHOSEN = f"note: {HOST} has no mpx, so SFTP is used, as its GridFTP server cannot be ("
PLAIN = (
    "plain",
    "with blanks",
    "-rf",
    "it's",
    '"; touch hit; "',
    "$(touch hit)",
    "*?",
    "back\\slash",
    "%41",
    "~",
)


@pytest.fixture(scope="module")
def made() -> Iterator[SshftpAccount]:
    with sshftp_account("Banner /etc/debian_version") as account:
        yield account


@pytest.fixture
def account(made: SshftpAccount) -> SshftpAccount:
    made.sshd.configure()
    made.enable()
    return made


def both_ways(source: Path, words: str, *options: str) -> str:
    """Copy a file or tree there and back, by what a note calls so; return what was said on the way back."""
    far, back = source.with_name("far"), source.with_name("back")
    said = copied("-r", source, there(far), *options)
    assert words in said, said
    said = copied("-r", f"ssh://{HOST}{far}", back, *options)
    assert words in said, said
    for copy in (far, back):
        assert (
            contents(copy) == contents(source)
            if source.is_dir()
            else copy.read_bytes() == source.read_bytes()
        )
    return said


@pytest.mark.parametrize("size", [0, 20 * MIB + 7])
def test_a_file_goes_both_ways_and_data_pass_encrypted_only(
    account: SshftpAccount, tmp_path: Path, size: int
) -> None:
    source = make(tmp_path / "source", size)
    os.utime(source, (0, 1_234_567_890))
    said = both_ways(source, CHOSEN)
    assert said.count("note: ") == 1
    assert "verified" in said
    assert (tmp_path / "back").stat().st_mtime == 1_234_567_890
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["back", "far", "source"]
    assert ("MODE E" in account.log, "PROT C" in account.log, "DCAU N" in account.log) == (True, False, False)


def test_a_tree_of_many_small_files(account: SshftpAccount, tmp_path: Path) -> None:
    for number in range(200):
        make(tmp_path / "tree" / f"sub {number % 7}" / f"file {number}", 10 * number)
    for name in PLAIN:
        make(tmp_path / "tree" / name / name, 100)
    (tmp_path / "tree" / "empty folder").mkdir()
    both_ways(tmp_path / "tree", CHOSEN)
    assert (tmp_path / "back" / "empty folder").is_dir()
    assert not list(tmp_path.rglob("hit"))


def test_names_that_its_control_channel_would_change_go_over_sftp(
    account: SshftpAccount, tmp_path: Path
) -> None:
    """A Globus server drops bytes of them; in a tree that shows once they are met."""
    for name in ("a", "b", "é", "a\udcffb"):
        make(tmp_path / "tree" / "sub" / name, 1000)
    said = both_ways(tmp_path / "tree", "SFTP is used in place of sshftp: ")
    assert "printable ASCII" in said
    both_ways(make(tmp_path / "ü" / "source", 1000), NOT_CHOSEN)


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_killed_copy_goes_on(
    account: SshftpAccount, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    source = make(tmp_path / "source", 24 * MIB + 11)
    ends = (source, there(tmp_path / "new")) if way == "up" else (there(source), tmp_path / "new")
    kill_halfway(ends, tmp_path, eventually)
    report = tmp_path / "report.json"
    assert CHOSEN in copied(*ends, "--report", report)
    assert (tmp_path / "new").read_bytes() == source.read_bytes()
    assert json.loads(report.read_text())["bytes"]["resumed"] > 0


# --- where it cannot be used -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"first": "export X509_CERT_DIR=/nowhere"}, "refuses DCSC (500 "),
        ({"arguments": "-disable-command-list DCSC"}, "refuses DCSC (500 "),
        ({"arguments": "-disable-command-list DCAU"}, "refuses DCAU (500 "),
        ({"first": "exit 3"}, "it ended with code 3"),
        ({"first": "echo no server here >&2; exit 0"}, "no server here"),
        ({"first": "echo -e 500 Not configured; echo 500 Not configured."}, "500 Not configured."),
        ({"first": "echo 220 hello; echo 999 what; exit"}, "ssh://there"),
        pytest.param(
            {"within": "unshare -n"},  # as behind a firewall
            "cannot connect to 127.0.0.1:",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own"),
        ),
    ],
)
def test_where_it_does_not_serve_sftp_does(
    account: SshftpAccount, tmp_path: Path, how: dict[str, str], why: str
) -> None:
    account.enable(**how)
    source = make(tmp_path / "source", 1000)
    said = copied(source, there(tmp_path / "far"))
    assert NOT_CHOSEN in said
    assert why in said
    assert said.count("note: ") == 1
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("refusal", ["PORT is refused", "addresses are translated"])
def test_a_server_that_cannot_connect_to_us_sends_over_connections_of_ours(
    account: SshftpAccount, tmp_path: Path, refusal: str
) -> None:
    if refusal == "PORT is refused":
        account.enable("-disable-command-list PORT,EPRT")
    else:
        account.sshd.configure("BindAddress 127.0.0.2")  # so that it does not see our own
    source = make(tmp_path / "source", 9 * MIB + 1)
    said = copied("-v", there(source), tmp_path / "back")
    assert CHOSEN in said
    assert "using MODE S" in said
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    assert "PROT C" not in account.log


def test_what_precedes_the_greeting_does_no_harm(account: SshftpAccount, tmp_path: Path) -> None:
    account.enable(first="echo; echo Welcome; printf 'no 220 end '; echo; echo 22; echo 2")
    (account.home / ".bashrc").write_text("echo 220 noise; echo 500 noise; printf 'no end'\n")
    both_ways(make(tmp_path / "source", 1000), CHOSEN)


def test_one_session_in_one_connection_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sshftp_account("MaxSessions 1") as account:
        account.enable()
        without_further_logins(account.sshd, monkeypatch, tmp_path)
        account.sshd.configure("BatchMode yes")
        for number in range(20):
            make(tmp_path / "tree" / f"file {number}", 100_000 * number)
        both_ways(tmp_path / "tree", CHOSEN)


# --- who else listens, and other commands ----------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to see what passes on loopback")
def test_neither_data_nor_names_pass_in_the_clear(
    account: SshftpAccount, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    mark, told = os.urandom(32), os.urandom(32)
    tree = tmp_path / "tree"
    name = f"name-{os.urandom(8).hex()}"
    tree.mkdir()
    (tree / name).write_bytes(mark * (3 * MIB // 32))
    seen, sizes, over = set[bytes](), [0], threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as wire:
        wire.bind(("lo", 0))
        wire.setsockopt(socket.SOL_SOCKET, 33, 64 * MIB)  # SO_RCVBUFFORCE
        wire.settimeout(0.1)

        def watch() -> None:
            while not over.is_set():
                try:
                    packet = wire.recv(1 << 17)
                except TimeoutError:
                    continue
                sizes[0] += len(packet)
                seen.update(each for each in (mark, told, name.encode()) if each in packet)

        watching = threading.Thread(target=watch)
        watching.start()
        both_ways(tree, CHOSEN)
        with (
            socket.create_server(("127.0.0.1", 0)) as plain,
            socket.create_connection(plain.getsockname()) as ours,
        ):
            ours.sendall(told)
            eventually(lambda: told in seen)
        over.set()
        watching.join()
    assert sizes[0] > 6 * MIB
    assert seen == {told}


def test_other_commands_and_copies_between_servers(account: SshftpAccount, tmp_path: Path) -> None:
    source = make(tmp_path / "served" / "source", 3 * MIB)
    listed = mpx("list", f"ssh://{HOST}{tmp_path}/served")
    assert (listed.code, listed.out) == (0, "source\n"), listed.err
    rehearsed = f"would copy ssh://{HOST}{source} to {tmp_path}/new"
    assert rehearsed in copied("--dry-run", there(source), tmp_path / "new")
    with StockServer(tmp_path / "served") as stock:
        for number, ends in enumerate(
            ((f"{stock.url}source", there(tmp_path / "far")), (there(source), f"{stock.url}new"))
        ):
            said = copied(*ends)
            assert CHOSEN in said
            assert "data pass through this host" in said
            assert (tmp_path / ("far", "served/new")[number]).read_bytes() == source.read_bytes()
        only = refused(2, *ends, "--third-party", "only")
        assert "no direct way" in only
        account.enable("-disable-command-list DCSC")
        source.touch()
        assert "SFTP is used, as its GridFTP server cannot be" in copied(*ends)
    assert "probes do not go through ssh" in mpx("probe", f"ssh://{HOST}/").err
