"""The command line of ssh: what is asked of the user's own client, and what runs at the other end.

Names of files never stand in it, nor does anything secret: they travel inside.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mpx.errors import UsageError
from mpx.location import Location
from mpx.text import quoted

_PATH = re.compile(
    r"[A-Za-z0-9_.~+/@%:=,-]+", re.ASCII
)  # nothing that a shell, whichever it is, would act on
# No agent, no windows and no forwarding: the other end gets nothing but this session.
_OPTIONS = (
    "-oIgnoreUnknown=ForkAfterAuthentication,StdinNull,PermitRemoteOpen",  # before OpenSSH 8.7
    *("-T", "-x", "-a", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no", "-oRemoteCommand=none"),
    *("-oRequestTTY=no", "-oForkAfterAuthentication=no", "-oStdinNull=no"),
)
# A shared connection that the network has forgotten is to end, so that another takes its place.
_ALIVE = ("-oServerAliveInterval=15", "-oServerAliveCountMax=3")
# What starts a GridFTP server for who has logged in, where globus-gridftp-server-enable-sshftp was run.
_EACH_SSHFTP = (
    'for each in "$HOME"/.globus/sshftp /etc/grid-security/sshftp; do test -f "$each" && test -x "$each" && '
)
SSHFTP = "mpx-sshftp"  # the line that precedes the dialogue with it


@dataclass(frozen=True, slots=True)
class RemoteProgram:
    """What runs at the other end: mpx where it is found or named, or a Python that gets it sent."""

    mpx: str | None = None  # a path there; None: the first of those where it usually is
    python: str = "python3"
    bootstrap: bool = False
    keep: bool = True  # what was sent, in a cache there

    def __post_init__(self) -> None:
        """Raise UsageError for what a shell could take for something else."""
        for flag, text in (("--remote-mpx", self.mpx), ("--remote-python", self.python)):
            if text is not None and (not _PATH.fullmatch(text) or text.startswith("-")):
                raise UsageError(
                    f"{flag} is the name of a program, without blanks or quotes, not {quoted(text)}"
                )

    @property
    def is_looked_for(self) -> bool:
        """Whether it may not be there: nobody has named it, nor asked for it to be sent."""
        return self.mpx is None and not self.bootstrap


def arguments(
    location: Location,
    control_path: str | None,
    *,
    batch: bool = False,
    persist_s: int = 0,
    joins: bool = False,
    tells: bool = False,
) -> list[str]:
    """Return the words of an ssh to a location, without the command that runs there.

    `control_path`: where sessions share one connection; None leaves that to the user's settings. `persist_s`:
    for how long that connection is kept when its last session has ended; 0: not longer than its first.
    `batch`: ask the user nothing. `joins`: only join that connection, and fail where it is gone or takes no
    more, where ssh would log in by itself. `tells`: of its login, see login_record.
    """
    words = ["ssh", *_OPTIONS]
    if control_path is not None:
        words += [f"-oControlMaster={'no' if joins else 'auto'}", f"-oControlPath={control_path}"]
        words += [f"-oControlPersist={persist_s or 'no'}", *_ALIVE]
    if batch:
        words += ["-oBatchMode=yes"]
    if joins:
        words += ["-oProxyCommand=false"]
    if tells:
        words += ["-oLogLevel=DEBUG1"]
    if location.port:
        words += ["-p", str(location.port)]
    if location.user:
        words += ["-l", location.user]
    return [*words, "--", location.host]


def of_subsystem(words: Sequence[str]) -> list[str]:
    """Return the words of an ssh whose command names a subsystem of the server."""
    return [words[0], "-s", *words[1:]]


def serve_command(program: RemoteProgram, loader: Sequence[str] = ()) -> str:
    """Return the command that starts the server there; `loader`: the Python that gets it sent, and its words.

    It is one word for the shell of the user, whichever that is: the rest is done by sh.
    """
    tilde = "" if program.mpx is None else re.sub(r"^~/", '"$HOME"/', program.mpx)
    found = [tilde] if tilde else ["mpx", '"$HOME"/.local/bin/mpx']
    script = [f"command -v {name} >/dev/null 2>&1 && exec {name} serve --stdio" for name in found]
    if program.bootstrap:
        python = re.sub(r"^~/", '"$HOME"/', program.python)
        words = " ".join(shlex.quote(word) for word in loader)
        script = [
            f"command -v {python} >/dev/null 2>&1 && exec {python} {words}",
            'echo; echo "mpx-stdio no python"',
        ]
    else:
        if program.is_looked_for:
            told = 'echo && echo "mpx-stdio none sshftp $SSH_CONNECTION" && exit; done'
            script.append(f"{_EACH_SSHFTP}{told}")
        script.append('echo; echo "mpx-stdio none"')
    return f"exec sh -c {shlex.quote('; '.join(script))}"


def sshftp_command() -> str:
    """Return the command that starts a GridFTP server there, which speaks over its input and output."""
    script = f'{_EACH_SSHFTP}echo && echo {SSHFTP} && exec "$each"; done; exit 127'
    return f"exec sh -c {shlex.quote(script)}"
