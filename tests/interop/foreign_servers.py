"""FTP servers of others as they come from Debian and the package index: ProFTPD, Pure-FTPD and pyftpdlib.

Each runs while in the `with` block, on loopback, with one user `u` who may write in `root`. The password is
in ENVIRONMENT, which whoever starts mpx needs (the fixtures set it). vsftpd is in vsftpd.py.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest
from install_peers import find_peer, foreign_environment
from interop.stock_server import open_to_everyone

ENVIRONMENT = {"MPX_PASSWORD": "pw"}
STARTED_WITHIN_S = 30
_HASH = "$1$mpxtests$OHkhQ4HFotm505upyt2Lf/"  # of the password, as crypt(3) has it
_NOBODY = 65534  # who serves; as root it must be an account that may be served


class ForeignServer:
    """One FTP server; subclasses tell how it is started. `url` is that of `root`, with a slash at its end."""

    needs_root = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root.parent / f"{root.name}.{type(self).__name__}"  # its settings and its log
        self.log_path = self.state / "log"
        self.port = 0  # known once started, and kept from then on
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ftp://u@127.0.0.1:{self.port}/"

    def command(self) -> list[str]:
        """Write the settings into `state` and return the command that serves in the foreground."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self.needs_root and os.geteuid() != 0:
            pytest.skip(f"{type(self).__name__} serves a virtual user only when started by root")
        self.state.mkdir()
        open_to_everyone(self.root)
        self.port = _free_port()
        self.start()
        return self

    def start(self) -> None:
        """Start it; once more after `kill`, and then on the same port."""
        command = self.command()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=foreign_environment(), start_new_session=True
            )
        deadline_s = time.monotonic() + STARTED_WITHIN_S
        while not _greets(self.port):
            said = self.log_path.read_text(errors="replace")
            assert self._process.poll() is None, f"{command[0]} has ended at once: {said}"
            assert time.monotonic() < deadline_s, f"{command[0]} does not answer: {said}"
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server and its sessions, which all are in its group of processes."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def __exit__(self, *_: object) -> None:
        self.kill()


class ProFtpd(ForeignServer):
    """ProFTPD; `settings` are lines of proftpd.conf, such as MaxClients 1 or AllowStoreRestart on."""

    def __init__(self, root: Path, settings: str = "") -> None:
        super().__init__(root)
        self._settings = settings

    def command(self) -> list[str]:
        users = self.state / "users"
        users.write_text(f"u:{_HASH}:{_NOBODY}:{_NOBODY}::{self.root}:/bin/false\n")
        users.chmod(0o600)
        configuration = self.state / "proftpd.conf"
        configuration.write_text(
            f"""ServerName test
ServerType standalone
DefaultAddress 127.0.0.1
SocketBindTight on
Port {self.port}
UseIPv6 off
UseReverseDNS off
User nobody
Group nogroup
RequireValidShell off
AuthOrder mod_auth_file.c
AuthUserFile {users}
DefaultRoot ~
AllowOverwrite on
PidFile {self.state}/pid
ScoreboardFile {self.state}/scoreboard
DelayEngine off
WtmpLog off
TransferLog none
SystemLog {self.log_path}
{self._settings}
"""
        )
        return [find_peer("proftpd"), "--nodaemon", "--quiet", "--config", str(configuration)]


class PureFtpd(ForeignServer):
    """Pure-FTPD; `arguments` are its own, such as -c 1 (clients) or -K (nothing is deleted)."""

    def __init__(self, root: Path, arguments: tuple[str, ...] = ()) -> None:
        super().__init__(root)
        self._arguments = arguments

    def command(self) -> list[str]:
        users, compiled = self.state / "users", self.state / "users.pdb"
        users.write_text(f"u:{_HASH}:{_NOBODY}:{_NOBODY}::{self.root}/./::::::::::::\n")
        compile_users = [find_peer("pure-pw"), "mkdb", str(compiled), "-f", str(users)]
        subprocess.run(compile_users, env=foreign_environment(), check=True)
        command = [find_peer("pure-ftpd"), "-E", "-H", "-A", "-S", f"127.0.0.1,{self.port}"]
        command += ["-g", str(self.state / "pid"), "-l", f"puredb:{compiled}"]
        return [*command, *self._arguments]


class PyFtpdLib(ForeignServer):
    """pyftpdlib; `handler` and `server` set attributes of its classes, as max_cons_per_ip of the server."""

    needs_root = False

    def __init__(
        self,
        root: Path,
        handler: Mapping[str, object] | None = None,
        server: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(root)
        self._settings = {"handler": dict(handler or {}), "server": dict(server or {})}

    def command(self) -> list[str]:
        settings = {**self._settings, "root": str(self.root), "port": self.port, **ENVIRONMENT}
        return [sys.executable, "-W", "ignore", "-c", _PYFTPDLIB, json.dumps(settings)]


_PYFTPDLIB = """
import json, sys
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
settings = json.loads(sys.argv[1])
FTPHandler.authorizer = DummyAuthorizer()
FTPHandler.authorizer.add_user("u", settings["MPX_PASSWORD"], settings["root"], perm="elradfmwMT")
for name, value in settings["handler"].items():
    setattr(FTPHandler, name, value)
server = FTPServer(("127.0.0.1", settings["port"]), FTPHandler)
for name, value in settings["server"].items():
    setattr(server, name, value)
server.serve_forever()
"""


@pytest.fixture
def with_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have mpx know the password of the user of these servers."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def proftpd(tmp_path: Path, with_password: None) -> Iterator[ProFtpd]:
    with ProFtpd(_served(tmp_path)) as server:
        yield server


@pytest.fixture
def pureftpd(tmp_path: Path, with_password: None) -> Iterator[PureFtpd]:
    with PureFtpd(_served(tmp_path)) as server:
        yield server


@pytest.fixture
def pyftpd(tmp_path: Path, with_password: None) -> Iterator[PyFtpdLib]:
    with PyFtpdLib(_served(tmp_path)) as server:
        yield server


@pytest.fixture(params=[ProFtpd, PureFtpd, PyFtpdLib], ids=lambda kind: kind.__name__)
def foreign(request: pytest.FixtureRequest, tmp_path: Path, with_password: None) -> Iterator[ForeignServer]:
    """Each of these servers in turn."""
    with request.param(_served(tmp_path)) as server:
        yield server


def _served(tmp_path: Path) -> Path:
    root = tmp_path / "ftp"
    root.mkdir()
    return root


def _free_port() -> int:
    """Return a port that nobody listens on, and that the kernel gives nobody who connects."""
    while True:
        with contextlib.suppress(OSError):
            port = random.randrange(20_000, 32_000)
            socket.create_server(("127.0.0.1", port)).close()
            return port


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as control:
            greeting = control.recv(3)
            control.sendall(b"QUIT\r\n")
            while control.recv(4096):  # until it has ended, so that it counts as no client any more
                pass
            return greeting == b"220"
    except OSError:
        return False
