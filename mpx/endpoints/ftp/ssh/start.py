"""An ssh that begins to log in before anything is asked of it, and what runs at its other end.

Imports little, as ssh/process.py.
"""

from dataclasses import dataclass

from mpx.endpoints.ssh.command_line import RemoteProgram, serve_command
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.location import Location


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """What starts our server there; `sent`: the server, where it is sent."""

    text: str
    sent: bytes = b""


@dataclass(frozen=True, slots=True)
class EarlySsh:
    """An ssh of which nothing was asked yet."""

    login: SshLogin
    command: ServerCommand
    process: SshProcess

    def close(self) -> None:
        """End it."""
        self.process.close(0.0)
        self.login.close()


def early_ssh(location: Location, program: RemoteProgram) -> EarlySsh:
    """Start an ssh that begins to log in. Raises UsageError where there is none here."""
    login, command = SshLogin(location), server_command(program)
    try:
        login.share()
        return EarlySsh(login, command, first_ssh(login, command, program))
    except BaseException:
        login.close()
        raise


def first_ssh(login: SshLogin, command: ServerCommand, program: RemoteProgram) -> SshProcess:
    """Start the ssh that may ask the user. Raises UsageError where there is none here."""
    return SshProcess(login.first(persists=program.is_looked_for), command.text, login.name)


def server_command(program: RemoteProgram) -> ServerCommand:
    """Return what starts the server."""
    if not program.bootstrap:
        return ServerCommand(serve_command(program))
    from mpx.endpoints.ftp.ssh.bundle import bundle
    from mpx.endpoints.ftp.ssh.loader import loader_words

    sent = bundle()
    return ServerCommand(serve_command(program, loader_words(sent, keep=program.keep)), sent)
