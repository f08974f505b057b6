"""Files that servers of FTP refuse while others pass through this host: they cost no session."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.foreign_servers import ForeignServer
from interop.scripted_server import Dialogue
from interop.stock_server import StockServer
from interop.storing_server import StoringDialogue, StoringServer
from interop.trees import failures
from interop.vsftpd import VsFtpd
from sites import make

import mpx
from mpx.errors import DestinationError, PartialFailure
from mpx.serve import Server

pytestmark = pytest.mark.peers
ONE_STREAM = mpx.CopyOptions(recursive=True, third_party="never", streams=1)
LARGE_BYTES = 1_200_000  # so that each is passed on by itself
MOST_LOGINS = 4  # scan, committer and one that moves data, and one more for whoever comes in between


@contextmanager
def heard(server: StockServer | ForeignServer | Server) -> Iterator[tuple[ControlRelay, str]]:
    """A server, and the URL of its folder by which it is overheard."""
    port = int(server.url.split(":")[2].split("/")[0])
    with ControlRelay(port) as relay:
        yield relay, server.url.replace(f":{port}/", f":{relay.port}/")


class FailsLast:
    """Answers in place of a server, once, that the part of a file that was stored is not stored after all.

    That takes until the other parts are there, and so the file, if that is believed before; else some time.
    """

    def __init__(self, final: Path) -> None:
        self._final = final
        self.is_storing, self.has_failed = threading.Event(), threading.Event()

    def to_server(self, line: bytes) -> bytes:
        if line.startswith(b"ESTO"):
            self.is_storing.set()
        return line

    def to_client(self, line: bytes) -> bytes:
        if not line.startswith(b"226") or not self.is_storing.is_set() or self.has_failed.is_set():
            return line
        self.has_failed.set()
        until_s = time.monotonic() + 3.0
        while not self._final.exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        return b"451 The disk has failed.\r\n"


def test_a_part_that_is_refused_after_all_its_bytes_were_acknowledged(folders: tuple[Path, Path]) -> None:
    make(folders[0] / "file", 24 << 20)
    fails = FailsLast(folders[1] / "file")
    with (
        Server(folders[0]) as sender,
        Server(folders[1], writable=True) as receiver,
        ControlRelay(receiver.port, to_server=fails.to_server, to_client=fails.to_client) as relay,
    ):
        ends = f"{sender.url}file", receiver.url.replace(f":{receiver.port}/", f":{relay.port}/") + "file"
        options = mpx.CopyOptions(third_party="never", streams=3)
        with pytest.raises(DestinationError, match="The disk has failed"):
            mpx.copy(*ends, options)
        assert fails.has_failed.is_set() and not (folders[1] / "file").exists()
        mpx.copy(*ends, options)
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


def logins(relay: ControlRelay) -> int:
    return sum(line.startswith(b"USER") for line in relay.heard)


def assert_arrived(folders: tuple[Path, Path], names: set[str]) -> None:
    there = folders[1] / "tree"
    arrived = {str(each.relative_to(there)) for each in there.rglob("*") if each.is_file()}
    assert {name for name in arrived if ".part" not in name} == names
    for name in names:
        assert (there / name).read_bytes() == (folders[0] / "tree" / name).read_bytes(), name


@pytest.mark.parametrize("kind", [StockServer, VsFtpd])
@pytest.mark.parametrize("size_bytes", [20_000, LARGE_BYTES])
def test_what_may_not_be_read(
    folders: tuple[Path, Path], with_password: None, kind: type[StockServer] | type[VsFtpd], size_bytes: int
) -> None:
    """Of another user, whom the server is not."""
    for number in range(30):
        file = make(folders[0] / f"tree/{number}", size_bytes + number)
        file.chmod(0 if number % 2 else 0o644)
    with (
        kind(folders[0]) as sender,
        Server(folders[1], writable=True) as receiver,
        heard(sender) as (sent, source),
        heard(receiver) as (stored, destination),
        pytest.raises(PartialFailure) as failed,
    ):
        mpx.copy(source + "tree", destination + "tree", ONE_STREAM)
    assert set(failures(failed)) == {str(number) for number in range(1, 30, 2)}
    assert_arrived(folders, {str(number) for number in range(0, 30, 2)})
    assert (logins(sent) <= MOST_LOGINS, logins(stored) <= MOST_LOGINS) == (True, True)


@pytest.mark.parametrize("kind", [StockServer, VsFtpd])
@pytest.mark.parametrize("size_bytes", [20_000, LARGE_BYTES])
def test_what_may_not_be_stored(
    folders: tuple[Path, Path], with_password: None, kind: type[StockServer] | type[VsFtpd], size_bytes: int
) -> None:
    """The other server has begun to send it by then."""
    for number in range(30):
        make(folders[0] / f"tree/{number}/file", size_bytes + number)
        (folders[1] / f"tree/{number}").mkdir(parents=True)
        (folders[1] / f"tree/{number}").chmod(0o555 if number % 3 == 1 else 0o777)
    (folders[1] / "tree").chmod(0o777)
    with (
        Server(folders[0]) as sender,
        kind(folders[1]) as receiver,
        heard(sender) as (sent, source),
        heard(receiver) as (stored, destination),
        pytest.raises(PartialFailure) as failed,
    ):
        mpx.copy(source + "tree", destination + "tree", ONE_STREAM)
    assert failed.value.report is not None and failed.value.report.files.failed == 10
    assert_arrived(folders, {f"{number}/file" for number in range(30) if number % 3 != 1})
    more = (
        3 if kind is StockServer and size_bytes < LARGE_BYTES else 0
    )  # behind each that is queued with others
    assert (logins(sent) <= MOST_LOGINS, logins(stored) <= MOST_LOGINS + more) == (True, True)


FILES = {f"/d/{number}": bytes([number]) * (LARGE_BYTES + number) for number in range(1, 21)}


def once_more(dialogue: Dialogue, argument: str) -> str | None:
    """A server that says twice that a transfer was cut."""
    assert isinstance(dialogue, StoringDialogue)
    reply = StoringDialogue.answer(dialogue, "RETR", argument)
    if reply and reply.startswith("426"):
        dialogue.say(reply)
        return "226 closing the data connection"
    return reply


def as_preliminary(dialogue: Dialogue, argument: str) -> str | None:
    """One that ends what was cut with one more preliminary reply, as Pure-FTPd does."""
    reply = StoringDialogue.answer(dialogue, "RETR", argument)
    return "150 it was cut" if reply and reply.startswith("426") else reply


def refuse_odd(dialogue: Dialogue, argument: str) -> str | None:
    if int(argument.rsplit("/", 1)[1].strip(".").split(".")[0]) % 2:
        return "553 Permission denied."
    return StoringDialogue.answer(dialogue, "STOR", argument)


@pytest.mark.parametrize("ends", [once_more, as_preliminary])
def test_how_a_server_ends_what_is_cut_does_not_matter(ends) -> None:
    with (
        StoringServer({"RETR": ends}, files=FILES) as sender,
        StoringServer({"STOR": refuse_odd}, files={"/d/else": b""}) as receiver,
        pytest.raises(PartialFailure) as failed,
    ):
        mpx.copy(sender.url + "/d", receiver.url + "/d", ONE_STREAM)
    assert failed.value.report is not None and failed.value.report.files.failed == 10
    arrived = {name: bytes(content) for name, content in receiver.files.items() if name in FILES}
    assert arrived == {name: FILES[name] for name in FILES if int(name[3:]) % 2 == 0}
    assert sender.heard.count("USER") <= MOST_LOGINS
    assert receiver.heard.count("USER") <= MOST_LOGINS
