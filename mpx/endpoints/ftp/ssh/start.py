"""The start of an ssh: the one connection that all sessions with its other end share, and what runs there.

Imports little, as process.py.
"""

import subprocess
from dataclasses import dataclass

from mpx.endpoints.ftp.ssh.command_line import RemoteProgram, arguments, serve_command
from mpx.endpoints.ftp.ssh.process import SshProcess
from mpx.files.socket_folder import new_socket_folder, remove_socket_folder
from mpx.location import Location

_SETTINGS_S = 10.0
_SHARES = ("auto", "autoask", "yes", "ask", "true")


@dataclass(frozen=True, slots=True)
class SshWay:
    """How each ssh of a copy to one end is started; made by `find_way`."""

    location: Location
    host: str  # as ssh knows it
    folder: str  # of ours, for the socket of the connection that is shared; empty: the user's settings do
    command: str  # what runs there
    sent: bytes  # the server, where it is sent

    def first(self) -> SshProcess:
        """Start an ssh that may ask the user. Raises UsageError where there is none here."""
        return self._process(arguments(self.location, self._control_path))

    def further(self, *, shares: bool) -> SshProcess:
        """Start one that asks nothing; `shares`: the connection of the first. Raises as `first`."""
        return self._process(arguments(self.location, self._control_path if shares else "none", batch=True))

    def remove(self) -> None:
        """Remove the folder, once no ssh uses it."""
        if self.folder:
            remove_socket_folder(self.folder)

    @property
    def _control_path(self) -> str | None:
        return f"{self.folder}/c" if self.folder else None

    def _process(self, words: list[str]) -> SshProcess:
        return SshProcess(words, self.command, name_of(self.location))


@dataclass(frozen=True, slots=True)
class EarlySsh:
    """An ssh of which nothing was asked yet."""

    way: SshWay
    process: SshProcess

    def close(self) -> None:
        """End it."""
        self.process.close(0.0)
        self.way.remove()


def early_ssh(location: Location, program: RemoteProgram) -> EarlySsh:
    """Start an ssh that begins to log in. Raises UsageError where there is none here."""
    way = find_way(location, program)
    try:
        return EarlySsh(way, way.first())
    except BaseException:
        way.remove()
        raise


def find_way(location: Location, program: RemoteProgram) -> SshWay:
    """Have all sessions share one connection, as one login is enough: the user's where there is one."""
    command, sent = serve_command(program), b""
    if program.bootstrap:
        from mpx.endpoints.ftp.ssh.bundle import bundle
        from mpx.endpoints.ftp.ssh.loader import loader_words

        sent = bundle()
        command = serve_command(program, loader_words(sent, keep=program.keep))
    told = _settings(location)
    host, path = told.get("hostname", location.host), told.get("controlpath", "none")
    is_theirs = path != "none" and (told.get("controlmaster", "no") in _SHARES or _is_shared(location))
    return SshWay(location, host, "" if is_theirs else new_socket_folder("mpx-ssh-"), command, sent)


def name_of(location: Location) -> str:
    """Return the other end of an ssh, as shown to people."""
    return f"{location.user}@{location.host}" if location.user else location.host


def _settings(location: Location) -> dict[str, str]:
    """Return the settings of the user's ssh for a host, as far as they can be had."""
    words = arguments(location, None)
    try:
        done = subprocess.run(
            [words[0], "-G", *words[1:]], capture_output=True, text=True, timeout=_SETTINGS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs}


def _is_shared(location: Location) -> bool:
    """Tell whether a connection of the user's is there to be shared."""
    words = arguments(location, None)
    try:
        checked = subprocess.run(
            [words[0], "-Ocheck", *words[1:]], capture_output=True, timeout=_SETTINGS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return checked.returncode == 0
