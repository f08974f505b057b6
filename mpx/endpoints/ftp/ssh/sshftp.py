"""A GridFTP server at the other end of the user's ssh, shared by all sessions of a copy with that host.

Each session is an ssh of its own, in the connection that all share, and starts a server process. Data
connections are made between the two hosts. Both ends show a certificate that was made for this copy and is
handed over through ssh.
"""

import re
import socket
import threading
import time
from collections.abc import Callable

from mpx.endpoints.ftp.gsi.data_certificate import DataCertificate
from mpx.endpoints.ftp.secured import DataHosts
from mpx.endpoints.ftp.ssh.answer import heard_of
from mpx.endpoints.ftp.ssh.lane import Lanes, LaneSocket
from mpx.endpoints.ssh.addresses import addresses_of
from mpx.endpoints.ssh.command_line import SSHFTP, sshftp_command
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import ConnectionLost
from mpx.net import tcp
from mpx.net.reach import is_another
from mpx.text import shown

_LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor
_MAGIC = f"\n{SSHFTP}\n".encode("ascii")
_GREETING = re.compile(rb"\n([2345]\d\d[ -])")  # or a refusal
_MOST_SAID = 300
_ANY_PORT = 9
_STARTS_S = 10.0  # the server, once it is found


class SshftpServer:
    """For any thread, but for `use`, which comes before sessions that move data."""

    def __init__(self, login: SshLogin, connection: str) -> None:
        """`connection`: the ssh's, as the other end sees it: address and port of ours, and of its own."""
        self.login = login
        self.name = login.name
        self.certificate = DataCertificate()
        self.hosts = DataHosts(login.host, "")
        self._seen_from, self._named = _addresses(connection)
        self._lanes = Lanes()
        self._first_login = threading.Lock()  # held while it is made, so that the user is asked once

    def addresses(self, stop: Callable[[], bool]) -> list[str]:
        """Return where its data connections may be reached."""
        return addresses_of(self.login.host, self._named, stop)

    def use(self, address: str) -> None:
        """Have data connections go to an address, and come to the one of ours that leads there.

        Raises ConnectionLost where no network leads there.
        """
        try:
            with socket.socket(tcp.family_of(address), socket.SOCK_DGRAM) as asking:
                asking.connect((address, _ANY_PORT))  # sends nothing
                self.hosts = DataHosts(address, str(asking.getsockname()[0]))
        except OSError as error:
            raise ConnectionLost(f"cannot reach {address}: {error.strerror or error}") from None

    @property
    def is_translated(self) -> bool:
        """Whether it sees another address of ours than we have, so that it cannot connect to us."""
        return is_another(self._seen_from, self.hosts.ours)

    def control(self, timeout_s: float, stop: Callable[[], bool]) -> LaneSocket:
        """Return a control channel, whose greeting is the next that comes. Raises as SshProcess.peek."""
        with self._first_login:
            if not self._lanes.are_alive:
                self.login.share()
                return self._started(self.login.first(persists=True), max(timeout_s, _LOGIN_S), stop)
        return self._started(self.login.shared(), timeout_s, stop)

    def close(self) -> None:
        """End each ssh to it."""
        self._lanes.close()

    def _started(self, words: list[str], wait_s: float, stop: Callable[[], bool]) -> LaneSocket:
        def begin(process: SshProcess) -> bytes:
            heard_of(process, _behind_magic, time.monotonic() + wait_s, wait_s, stop)
            code = heard_of(process, _greeting, time.monotonic() + _STARTS_S, _STARTS_S, stop)
            if code.startswith(b"2"):
                return code
            said = process.socket.recv(_MOST_SAID).decode("utf-8", "replace").partition("\n")[0].strip()
            raise ConnectionLost(
                f"the GridFTP server of {self.name} refuses: {code.decode('ascii')}{shown(said)}"
            )

        return self._lanes.begun(SshProcess(words, sshftp_command(), self.name), begin)


def _behind_magic(heard: bytes) -> tuple[None, int] | None:
    begin = heard.find(_MAGIC)
    return (None, begin + len(_MAGIC)) if begin >= 0 else None


def _greeting(heard: bytes) -> tuple[bytes, int] | None:
    """Return the code that the first line with one begins with, and where it ends."""
    found = _GREETING.search(heard)
    return (found.group(1), found.end()) if found else None


def _addresses(connection: str) -> tuple[str, str]:
    """Return the client's and the server's address of SSH_CONNECTION; empty where it has none."""
    words = connection.split()
    return (words[0], words[2]) if len(words) == 4 else ("", "")
