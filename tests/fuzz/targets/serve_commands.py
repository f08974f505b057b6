"""Everything that a client says to `mpx serve`, from the greeting on: commands, Telnet's bytes, too much."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from mpx.endpoints.ftp.wire import ReplyReader
from mpx.engine.ranges import RangeSet
from mpx.serve import arguments
from mpx.serve.buffers import ConnectionBudget
from mpx.serve.commands import COMMANDS
from mpx.serve.control import LONGEST_LINE_BYTES, Control
from mpx.serve.replies import RefusalReply
from mpx.serve.root import Root, join
from mpx.serve.session import Limits, Session
from mpx.serve.turns import Turns

LOGIN = b"USER anonymous\r\nPASS x\r\n"
SEEDS = [
    LOGIN + b"FEAT\r\nTYPE I\r\nPWD\r\nMLST /f\r\nSIZE f\r\nMDTM f\r\nCKSM ADLER32 0 -1 f\r\nQUIT\r\n",
    LOGIN
    + b"MODE E\r\nOPTS RETR Parallelism=4,4,4;Markers=1;\r\nTREV PERF 1\r\nREST 0-100,200-300\r\nSPAS\r\n",
    LOGIN + b"MKD d\r\nCWD d\r\nRNFR /f\r\nRNTO /d/g\r\nDELE g\r\nCDUP\r\nRMD d\r\nMLSC /\r\nSTAT /\r\n",
    LOGIN + b"PASV\r\nLIST -la /\r\nEPSV 1\r\nMLSD\r\nEPSV ALL\r\nRETR f\r\nESTO A 5 f\r\nERET P 0 5 f\r\n",
    LOGIN + b"SITE CHMOD 644 f\r\nSITE UTIME 20240102030405 f\r\nSITE UTIME f 20240102030405 20240102030405 "
    b"20240102030405 UTC\r\nSITE TRNC 3 f\r\nSITE HELP\r\nMFMT 20240102030405 f\r\nSBUF 65536\r\n",
    LOGIN + b"EPRT |1|127.93.7.1|9|\r\nPORT 10,0,0,1,200,1\r\nSPOR |2|::1|40001|\r\nOPTS MLST Type;Size;\r\n",
    LOGIN + b"\xff\xf4\xf2ABOR\r\nDELE \xff\xff\r\nHELP\r\nSTRU F\r\nSYST\r\nNOOP \r\nALLO 5\r\nWHOAMI\r\n",
    b"OPTS " + b" " * 500 + b"x\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"USER root\r\nPASS x\r\nAUTH TLS\r\nPBSZ 0\r\nPROT P\r\nDCAU A\r\nSITE TASKID x\r\n",
    LOGIN + b"CWD ~/../..\r\nCWD /link\r\nSIZE /link/../f\r\nDELE /..\r\nRNFR ../outside\r\n",
]
ALLOWED = ()
WEIGHT = 15
MOST_BYTES = 2048  # of commands: each walks all folders of its path, and more could make 2000 of them
CLIENT = "127.93.7.1"  # where nobody else listens, as data may be sent there
_folder = Path(tempfile.mkdtemp())
_outside, _served = _folder / "outside", _folder / "served"
_outside.write_text("outside")
_limits = Limits(idle_s=5.0, stall_s=1.0)
_listener = socket.create_server(("127.0.0.1", 0))
atexit.register(_listener.close)


def parse(data: bytes) -> None:
    """Say all of it at once and hang up; the session ends, says replies, and changes nothing elsewhere."""
    _arguments(data[:LONGEST_LINE_BYTES].decode("utf-8", "surrogateescape"))
    _remove(_served)
    _served.mkdir()
    (_served / "f").write_text("content")
    (_served / "link").symlink_to("..")
    client = socket.create_connection(_listener.getsockname(), source_address=(CLIENT, 0))
    server, _ = _listener.accept()
    said = bytearray()

    def read() -> None:  # a server waits for a client that does not
        with suppress(OSError):
            while piece := client.recv(65536):
                said.extend(piece)

    reading = threading.Thread(target=read)
    with client:
        reading.start()
        with suppress(OSError):
            client.send(data[:MOST_BYTES], socket.MSG_DONTWAIT)
            client.shutdown(socket.SHUT_WR)
        _session(server)
        reading.join()
    replies = ReplyReader().feed(bytes(said))
    assert replies[0].code == 220
    assert _outside.read_text() == "outside"
    assert sorted(os.listdir(_folder)) == ["outside", "served"]


def _remove(what: Path) -> None:
    try:
        shutil.rmtree(what, ignore_errors=True)
    except RecursionError:  # shutil goes down by recursion, and folders can be 2000 deep
        subprocess.run(["rm", "-rf", what], check=True)


atexit.register(_remove, _folder)


def _session(server: socket.socket) -> None:
    root = Root(_served)
    try:
        session = Session(
            Control(server, 5.0),
            root,
            writable=True,
            limits=_limits,
            admit=_admit,
            admit_to_echo=lambda _: None,
            budget=ConnectionBudget(),
            turns=Turns(),
        )
        session.run(COMMANDS)
    finally:
        root.close()


def _admit(session: Session) -> None:
    session.logged_in = True


def _arguments(text: str) -> None:
    """Read it as what stands behind commands."""
    assert join("/a", text).startswith("/")
    assert ".." not in join("/a", text).split("/")
    arguments.options(text)
    arguments.without_ls_options(text)
    arguments.numbers_and_name(text, 2)
    with suppress(RefusalReply):
        assert all(0 <= start < end for start, end in RangeSet(arguments.ranges(text)))
