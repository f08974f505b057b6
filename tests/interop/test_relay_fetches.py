"""Small files that pass through this host from a server of FTP: many are fetched at once, in MODE E."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from interop.control_relay import Change, ControlRelay, unchanged
from interop.scripted_server import Dialogue
from interop.stock_server import StockServer
from interop.storing_server import StoringDialogue, StoringServer, framed
from interop.test_between_servers import assert_copied, closed_port, said
from interop.trees import failures
from sites import grid_site, make, own_site, stock_site, token_site

import mpx
from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, BlockHeader
from mpx.errors import PartialFailure
from mpx.serve import Server

pytestmark = pytest.mark.peers
TREE = mpx.CopyOptions(recursive=True, third_party="never")
ONE_SESSION = mpx.CopyOptions(recursive=True, third_party="never", streams=1)
IN_TURN = "small files come one after the other"


def many(folder: Path, count: int = 100) -> None:
    for number in range(count):
        make(folder / f"tree/{number}", number * 997)


def commands(relay: ControlRelay, verb: bytes) -> list[bytes]:
    return [line for line in relay.heard if line.startswith(verb + b" ") or line.strip() == verb]


@contextmanager
def heard(
    folders: tuple[Path, Path], *, to_server: Change = unchanged, to_client: Change = unchanged
) -> Iterator[tuple[ControlRelay, str, str]]:
    """A stock server as the source, and `mpx serve` as the destination."""
    with (
        StockServer(folders[0]) as sender,
        own_site(folders[1]) as receiver,
        ControlRelay(sender.port, to_server=to_server, to_client=to_client) as relay,
    ):
        yield relay, sender.url.replace(f":{sender.port}/", f":{relay.port}/"), receiver.url


@pytest.mark.parametrize("site", [stock_site, own_site])
def test_many_are_asked_for_over_one_connection(folders: tuple[Path, Path], site) -> None:
    many(folders[0])
    with site(folders[0]) as sender, Server(folders[1], writable=True) as receiver:
        port = int(sender.url.split(":")[2].split("/")[0])
        with ControlRelay(port) as relay:
            source = sender.url.replace(f":{port}", f":{relay.port}")
            report = mpx.copy(source + "tree", receiver.url + "tree", ONE_SESSION)
    assert (report.files.moved, report.checksum["result"]) == (100, "verified")
    assert_copied(folders)
    # Those that wait alone while others are looked for come alone.
    assert len(commands(relay, b"ERET")) >= 90
    assert len(commands(relay, b"PORT")) <= 4


@pytest.mark.parametrize("site", [token_site, grid_site])
def test_secured_connections_bring_them_too(folders: tuple[Path, Path], site) -> None:
    many(folders[0])
    with site(folders[0]) as sender, Server(folders[1], writable=True) as receiver:
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", TREE)
    assert report.files.moved == 100 and not said(report, IN_TURN)
    assert_copied(folders)


def test_between_them_large_ones_come_as_ever(folders: tuple[Path, Path]) -> None:
    for number in range(30):
        make(folders[0] / f"tree/{number}", 3_000_000 if number % 5 == 4 else 1000 + number)
    with heard(folders) as (relay, source, destination):
        report = mpx.copy(source + "tree", destination + "tree", ONE_SESSION)
    assert report.files.moved == 30
    assert_copied(folders)
    assert len(commands(relay, b"USER")) <= 4  # scan, committer and one that moves data, once more at most


def test_one_that_is_refused_costs_the_others_nothing(folders: tuple[Path, Path]) -> None:
    many(folders[0], 60)
    for number in (7, 8, 30):
        (folders[0] / f"tree/{number}").chmod(0)  # of another user, whom the server is not
    with heard(folders) as (relay, source, destination), pytest.raises(PartialFailure) as failed:
        mpx.copy(source + "tree", destination + "tree", ONE_SESSION)
    assert sorted(failures(failed)) == ["30", "7", "8"]
    for number in {*range(60)} - {7, 8, 30}:
        name = f"tree/{number}"
        assert (folders[1] / name).read_bytes() == (folders[0] / name).read_bytes()
        assert sum(line.strip().endswith(f"/{number}".encode()) for line in commands(relay, b"ERET")) <= 1


@pytest.mark.parametrize("size_bytes", [0, 100, 5001, 3_000_000])
def test_one_that_changes_meanwhile_is_never_taken_for_whole(
    folders: tuple[Path, Path], size_bytes: int
) -> None:
    """It changes when it is asked for: it was listed with other bytes, and another size."""
    for number in range(20):
        os.utime(make(folders[0] / f"tree/{number}", 5000), (1e9, 1e9))

    def change(line: bytes) -> bytes:
        if line.startswith((b"ERET", b"RETR")) and line.strip().endswith(b"/tree/9"):
            make(folders[0] / "tree/9", size_bytes)
        return line

    with (
        heard(folders, to_server=change) as (_, source, destination),
        pytest.raises(PartialFailure) as failed,
    ):
        mpx.copy(source + "tree", destination + "tree", TREE)
    assert [*failures(failed)] == ["9"] and "changed while it was copied" in failures(failed)["9"]
    assert sorted(os.listdir(folders[1] / "tree")) == sorted(map(str, {*range(20)} - {9}))
    for number in {*range(20)} - {9}:
        name = f"tree/{number}"
        assert (folders[1] / name).read_bytes() == (folders[0] / name).read_bytes()


def test_a_server_that_is_started_anew_is_waited_for(folders: tuple[Path, Path]) -> None:
    for number in range(60):
        make(folders[0] / f"tree/{number}", 100_000)
    with StockServer(folders[0]) as sender, own_site(folders[1]) as receiver:
        killed = threading.Event()

        def kill(progress: mpx.Progress) -> None:
            if progress.bytes_done > 1_000_000 and not killed.is_set():
                killed.set()
                sender.kill()
                sender.start()

        options = mpx.CopyOptions(recursive=True, third_party="never", rate_bps=40e6)
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", options, on_progress=kill)
    assert killed.is_set() and report.files.moved == 60
    assert_copied(folders)


@pytest.mark.parametrize("port", ["closed", "refused"])
def test_where_the_server_cannot_connect_to_us_they_come_in_turn(
    folders: tuple[Path, Path], port: str
) -> None:
    many(folders[0], 60)

    def refuse(line: bytes) -> bytes:
        return b"PORT 1\r\n" if line.startswith(b"PORT") else line

    with ExitStack() as stack:
        if port == "closed":
            source, destination = stack.enter_context(closed_port(folders))
        else:
            _, source, destination = stack.enter_context(heard(folders, to_server=refuse))
        report = mpx.copy(source + "tree", destination + "tree", TREE)
    assert sum(IN_TURN in note for note in report.notes) == 1
    assert report.files.moved == 60
    assert_copied(folders)


def test_without_a_port_of_ours_they_come_in_turn(folders: tuple[Path, Path]) -> None:
    many(folders[0], 60)
    with StockServer(folders[0]) as sender, own_site(folders[1]) as receiver:
        import socket

        with socket.create_server(("127.0.0.1", 0)) as taken:
            number = taken.getsockname()[1]
            options = mpx.CopyOptions(recursive=True, third_party="never", port_range=f"{number}-{number}")
            report = mpx.copy(sender.url + "tree", receiver.url + "tree", options)
    assert said(report, IN_TURN) and report.files.moved == 60
    assert_copied(folders)


# --- servers that do it otherwise, or lie ----------------------------------------------------------

CONTENTS = {f"/d/{number}": bytes([number]) * (number * 1000) for number in range(1, 41)}
Sends = Callable[[StoringDialogue, str, bytes], bytes]  # what goes over the data connection, of a file


def closes(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    """Over a connection of its own, as servers send that have their data at other hosts."""
    dialogue.ends = True
    return framed(content)[:-17] + BlockHeader(EOD | EOF | CLOSE, 0, 1).pack()


def breaks_off(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    dialogue.ends = name == "/d/9"
    return framed(content)[:3000] if dialogue.ends else framed(content)


def without_blocks(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    return content + bytes(17) if name == "/d/9" else framed(content)


def too_much(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    return framed(content + b"too much") if name == "/d/9" else framed(content)


def beyond(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    return BlockHeader(0, 1, 1 << 40).pack() + b"x" + framed(content) if name == "/d/9" else framed(content)


def with_a_gap(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    if name != "/d/9":
        return framed(content)
    first, last = content[:1000], content[2000:]
    twice = BlockHeader(0, 1000, 0).pack() + first
    return twice + twice + BlockHeader(0, len(last), 2000).pack() + last + BlockHeader(EOD | EOF, 0, 1).pack()


def over_two(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    return framed(content)[:-17] + BlockHeader(EOD | EOF, 0, 2).pack()


def another(dialogue: StoringDialogue, name: str, content: bytes) -> bytes:
    """Of another file, and its size."""
    return framed(content[:-1]) if name == "/d/9" else framed(content)


class FetchedDialogue(StoringDialogue):
    ends = False  # the data connection, behind what was sent

    def _eret(self, argument: str) -> str | None:
        if not self.blocks:
            return super()._eret(argument)
        start, size, name = self.part(argument)
        if self._kept is None:
            self._kept = self.open_data()
        self.say("150 go")
        self._kept.sendall(self.server.sends(self, name, bytes(self.server.files[name][start:][:size])))
        if self.ends:
            self._keep_nothing()
        return "226 done"


class FetchedServer(StoringServer):
    dialogue = FetchedDialogue

    def __init__(self, sends: Sends, script: Mapping[str, Callable[[Dialogue, str], str | None]]) -> None:
        super().__init__(script, files=CONTENTS, checksums=True, mode_e=True)
        self.sends = sends


def fetched(server: StoringServer, folder: Path, **given: object) -> mpx.Report:
    options = mpx.CopyOptions(recursive=True, third_party="never", timeout_s=5.0, **given)
    with Server(folder, writable=True) as receiver:
        report = mpx.copy(server.url + "/d", receiver.url + "d", options)
    assert report.files.moved == len(CONTENTS)
    assert {f"/d/{each.name}": each.read_bytes() for each in (folder / "d").iterdir()} == CONTENTS
    return report


BENT = (closes, breaks_off, without_blocks, too_much, beyond, with_a_gap, over_two, another)


@pytest.mark.parametrize("sends", BENT)
def test_what_does_not_come_whole_comes_once_more_by_itself(folders: tuple[Path, Path], sends: Sends) -> None:
    with FetchedServer(sends, {}) as server:
        fetched(server, folders[1])


def test_a_server_that_closes_each_connection_is_asked_in_turn(folders: tuple[Path, Path]) -> None:
    with FetchedServer(closes, {}) as server:
        fetched(server, folders[1], streams=1)
    assert server.heard.count("RETR") == len(CONTENTS) - 1


@pytest.mark.parametrize("reply", ["500 what?", "502 no ERET here", "501 not beyond its end"])
def test_a_server_that_does_not_send_parts_is_asked_in_turn(folders: tuple[Path, Path], reply: str) -> None:
    with FetchedServer(closes, {"ERET": lambda *_: reply}) as server:
        fetched(server, folders[1], streams=1)
    assert server.heard.count("ERET") <= 4
