"""One ssh: a process whose input and output are one socket of ours, and what it says on standard error.

Imports little: it is started before most of a copy is imported (transfer/early_start.py).
"""

import re
from collections.abc import Sequence

from mpx.endpoints.child_process import ChildProcess
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, UsageError
from mpx.text import shown

_OF_SSH = 255  # its exit code where it has failed itself; else that of what ran at the other end
_LONGEST_TOLD = 300  # characters of what ssh said
# Ctrl-C goes to all that run in a terminal; a copy that ends in order needs its ssh a little longer.
_UNINTERRUPTED = (
    *("sh", "-c"),
    'trap "" INT; command -v "$1" >/dev/null || { echo "no ssh is installed" >&2; exit 255; }; exec "$@"',
    "sh",
)
_OF_LOGIN = re.compile(
    r"permission denied|host key verification failed|authentication fail|no matching host key|access denied|"
    r"too many authentication|remote host identification has changed|account .*(expired|locked)",
    re.IGNORECASE,
)
_IDLE_WORDS = re.compile(
    r"^(\*\* |Warning: Permanently added|Connection to .* closed|@+$|debug1: |Authenticated |Transferred: |"
    r"Bytes per second: )"
)
# Of an ssh that was to join a shared connection, and did not.
_OF_JOINING = re.compile(r"^(kex_exchange_identification: .*|Connection closed by UNKNOWN port \d+)$")
_OF_SESSIONS = re.compile(r"session open refused|session request failed", re.IGNORECASE)


class CommandEnded(ConnectionLost):
    """The login was fine, but what was to run at the other end has ended, or did not start."""


class SessionRefused(ConnectionLost):
    """The shared connection is there, and the server admits no further session in it."""


class SshProcess(ChildProcess):
    """A running ssh; `socket` goes through it to the program at the other end."""

    def __init__(self, words: Sequence[str], command: str, host: str) -> None:
        """`host`: as shown to people. Raises UsageError where there is no ssh here."""
        try:
            super().__init__([*_UNINTERRUPTED, *words, command], host)
        except OSError as error:
            raise UsageError(f"cannot run ssh: {error.strerror}") from None

    def late(self, wait_s: float) -> MpxError:
        """Return that what was waited for has not come."""
        return ConnectionLost(f"ssh to {self.host} brought no answer within {wait_s:g} s")

    def ended(self) -> MpxError:
        """Return why ssh has ended, in its own words."""
        code = self.code()
        lines = [line.strip() for line in self.said().splitlines()]
        words = [line for line in lines if line and not _IDLE_WORDS.match(line)]
        words = [word for word in words if not _OF_JOINING.match(word)] or words
        told = shown(words[-1])[:_LONGEST_TOLD] if words else f"it ended with code {code}"
        if code is not None and 0 <= code < _OF_SSH:
            return CommandEnded(f"ssh to {self.host}: {told}")
        if any(_OF_LOGIN.search(word) for word in words):
            return AuthenticationError(f"ssh to {self.host}: {told}; try: ssh {self.host} true")
        if any(_OF_SESSIONS.search(word) for word in words):
            return SessionRefused(f"ssh to {self.host}: {told}")
        return ConnectionLost(f"ssh to {self.host}: {told}")
