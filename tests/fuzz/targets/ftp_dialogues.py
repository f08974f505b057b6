"""All that a server says from its greeting on, to a client that logs in, asks, lists and commits."""

import atexit
import contextlib
import socket
from collections.abc import Callable
from typing import Any
from unittest import mock

from mpx.endpoints.ftp.data_address import FIRST_PORT, DataPort
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.engine.capabilities import Question
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Stamp
from mpx.errors import MpxError
from mpx.gridftp import GridFtpEndpoint
from mpx.location import Location

SPLIT = b"=====\r\n"  # between the control connection and what comes on each data connection
OPTIONS = SessionOptions(timeout_s=5.0)
SERVER = Location("ftp", "/", "host.example", 2811, "u")
_listener = socket.create_server(("127.0.0.1", 0))
atexit.register(_listener.close)


class FedSession(ClientSession):
    """A session with whom it is given."""

    def __init__(self, connection: socket.socket) -> None:
        self._given = connection
        super().__init__(SERVER, OPTIONS)

    def _connect(self) -> socket.socket:
        return self._given


def fed(data: bytes) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection over which the second has sent all of this, and sends no more."""
    there = socket.create_connection(_listener.getsockname())
    here, _ = _listener.accept()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    there.settimeout(0.0)
    with contextlib.suppress(BlockingIOError):
        there.send(data)
    there.shutdown(socket.SHUT_WR)
    return here, there


def _list(endpoint: GridFtpEndpoint) -> None:
    for name, info in endpoint.entries("/x"):
        assert isinstance(info, MpxError) or (name and "/" not in name and name not in (".", ".."))


def _stat(endpoint: GridFtpEndpoint) -> None:
    for info in endpoint.stats(["/x", "/y"]):
        if isinstance(info, FileInfo) and info.kind is Kind.FILE:
            assert info.size_bytes is None or 0 <= info.size_bytes < 1 << 63


QUESTIONS: list[Callable[[GridFtpEndpoint], Any]] = [
    _list,
    _stat,
    lambda endpoint: endpoint.stat("/x/y"),
    lambda endpoint: endpoint.sizes(["/x", "/y"]),
    lambda endpoint: endpoint.checksums("adler32", [Part("/x", 0, 7), Part("/y", 7, 9)], lambda: False),
    lambda endpoint: endpoint.commit([Commit("/.x", "/x", 1.5, 0o644)], lambda _: None),
    lambda endpoint: endpoint.make_folders(["/x", "/x/y"]),
    lambda endpoint: endpoint.set_times([Stamp("/x", 1.5, 0o755)], lambda _: None),
    lambda endpoint: endpoint.unseal(["/x"]),
    lambda endpoint: endpoint.make_link("/x", "../y"),
    lambda endpoint: endpoint.remove("/x"),
    lambda endpoint: endpoint.find_out(Question.CHECKSUMS),
]
FEAT = (
    b"211-Extensions supported:\r\n MLST Type*;Size*;Modify*;Perm*;UNIX.mode*;Unique*;%sMDTM\r\n"
    b" MFMT\r\n SIZE\r\n"
    b" CKSM ADLER32:10;\r\n REST STREAM\r\n211 End.\r\n"
)
LOGIN = b'220 ready\r\n331 password?\r\n230 in\r\n%s200 Type I\r\n257 "/home" is it\r\n'
GLOBUS = LOGIN % (FEAT % b"UNIX.slink*;\r\n ")
OTHER = LOGIN % (FEAT % b"\r\n ")
OLD = LOGIN % b"500 what?\r\n"
EPSV, SENT = b"200 mode\r\n229 ok (|||40001|)\r\n", b"150 here\r\n226 done\r\n"
FACTS = b"250-status\r\n Type=file;Size=7;Modify=20240102030405;UNIX.mode=0644; /x\r\n250 End\r\n"
LINES = (
    b"Type=cdir;X.count=4; .\r\nType=file;Size=7;Modify=20240102030405; a\r\n"
    b"Type=OS.unix=slink:/t;Size=2; l\r\n"
    b"Type=dir; d/\r\nsize=5; no type\r\n"
)
LISTED = (
    b"total 4\r\n-rw-r--r-- 1 u g 7 Jan  2 03:04 a\r\nlrwxrwxrwx 1 u g 5 Jan 1 10:00 l -> there\r\nd what\r\n"
)
MISSING = b"550 No such file or directory\r\n"
SEEDS = [
    bytes([0]) + GLOBUS + EPSV + SENT + b"213 5\r\n213 20240102030405\r\n250 ok\r\n" + FACTS + SPLIT + LINES,
    bytes([0]) + OLD + b"250 in\r\n" + EPSV + SENT + b"213 7\r\n213 20240102030405\r\n" + SPLIT + LISTED,
    bytes([0]) + OTHER + EPSV + b"550 empty\r\n" + b"250 in it\r\n" + SPLIT,
    bytes([1]) + GLOBUS + FACTS + MISSING + SPLIT,
    bytes([1]) + OTHER + FACTS + b"213 8\r\n" + MISSING * 2 + SPLIT,
    bytes([2]) + OLD + b"213 7\r\n213 20240102030405\r\n550 not a directory\r\n" + SPLIT,
    bytes([2])
    + OTHER
    + FACTS.replace(b"file", b"OS.unix=slink:/t")
    + b"213 1\r\n"
    + FACTS
    + b"213 7\r\n"
    + SPLIT,
    bytes([3]) + OTHER + b"213 7\r\n550 no\r\n" + FACTS + SPLIT,
    bytes([4])
    + OTHER
    + b"501 no markers\r\n113-Checksum\r\n Bytes Processed: 5\r\n113 End\r\n213 0a1b2c3d\r\n"
    b"504 no\r\n" + SPLIT,
    bytes([5])
    + OTHER
    + b"213 Modify=20240102030405; x\r\n250 mode\r\n350 to?\r\n553 there\r\n"
    + FACTS
    + SPLIT,
    bytes([6])
    + OTHER
    + b'257 "/x" made\r\n'
    + MISSING
    + FACTS
    + MISSING
    + b'257 "/x"\r\n257 "/x/y"\r\n'
    + SPLIT,
    bytes([7]) + OTHER + b"213 Modify=20240102030405; x\r\n500 SITE?\r\n" + SPLIT,
    bytes([8]) + OTHER + FACTS.replace(b"0644", b"0444") + b"213 7\r\n200 ok\r\n" + SPLIT,
    bytes([9]) + OTHER + MISSING + b"350 to?\r\n250 made\r\n350 to?\r\n250 there\r\n" + SPLIT,
    bytes([10]) + OTHER + b"550 denied\r\n" + FACTS + SPLIT,
    bytes([11]) + GLOBUS + SPLIT,
]
ALLOWED = (MpxError,)
WEIGHT = 12


def parse(data: bytes) -> None:
    """Ask what the first byte says; ports below 1024 are not connected to."""
    what, (control, _, listing) = (
        QUESTIONS[data[0] % len(QUESTIONS)] if data else _list,
        data[1:].partition(SPLIT),
    )
    here, there = fed(control)
    far_ends: list[socket.socket] = []

    def connect(_: ClientSession, port: DataPort) -> socket.socket:
        assert port.address[1] >= FIRST_PORT
        near, far = fed(listing)
        far_ends.append(far)
        return near

    endpoint = GridFtpEndpoint(SERVER, OPTIONS, writing=True)
    listings = mock.patch("mpx.endpoints.ftp.listing_transfer.connect_data", connect)
    sessions = mock.patch("mpx.endpoints.ftp.session_pool.ClientSession", lambda *_: FedSession(here))
    with there, here, listings, sessions:
        try:
            what(endpoint)
        finally:
            endpoint.close()
            for each in far_ends:
                each.close()
