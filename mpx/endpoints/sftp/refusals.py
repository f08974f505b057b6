"""What it means that an SFTP server refuses something. Pure.

OpenSSH's server says little more than that it failed, also where a disk is full: so room is looked for then.
"""

from mpx.endpoints.sftp.wire import Code, Reply, Status
from mpx.errors import DestinationError, MpxError, NoSpace, SourceError
from mpx.text import shown
from mpx.units import format_size

_WORDS = {
    Code.EOF: "the end was reached",
    Code.NO_SUCH_FILE: "no such file or folder",
    Code.PERMISSION_DENIED: "permission denied",
    Code.FAILURE: "the server says no more than that it failed",
    Code.BAD_MESSAGE: "the name is too long, or not one there",
    Code.OP_UNSUPPORTED: "the server cannot do that",
}
_USUAL = ("", "failure", "success", "permission denied", "no such file", "bad message", "end of file")
_LONGEST_TOLD = 200  # characters
_FREE_SOME = "free some and copy the same SRC to the same DST again"
_LITTLE_BYTES = 1024 * 1024  # that are free, where a write failed: the disk is full


def is_missing(reply: Reply) -> bool:
    """Tell whether a reply says that a name does not exist."""
    return isinstance(reply, Status) and reply.code == Code.NO_SUCH_FILE


def is_denied(reply: Reply) -> bool:
    """Tell whether a reply says that something is not permitted."""
    return isinstance(reply, Status) and reply.code == Code.PERMISSION_DENIED


def is_ok(reply: Reply) -> bool:
    """Tell whether what was asked for was done."""
    return not isinstance(reply, Status) or reply.code == Code.OK


def is_unsupported(reply: Reply) -> bool:
    """Tell whether the server cannot do at all what it was asked for."""
    return isinstance(reply, Status) and reply.code == Code.OP_UNSUPPORTED


def reason(reply: Reply) -> str:
    """Return the reason of a refusal in words."""
    if not isinstance(reply, Status):
        return "the answer makes no sense"
    known = {int(code): words for code, words in _WORDS.items()}.get(reply.code, f"code {reply.code}")
    told = shown(reply.message)[:_LONGEST_TOLD]
    if told.lower() in _USUAL:
        return known
    return told if reply.code == Code.FAILURE else f"{known} ({told})"


def refused(reply: Reply, host: str, what: str, name: str, kind: type[MpxError]) -> MpxError:
    """Return the error of a refusal to do something with a name."""
    return kind(f"{host} cannot {what} {name}: {reason(reply)}")


def cannot_send(reply: Reply, host: str, name: str) -> MpxError:
    """Return what it means that the server does not send a file."""
    if is_missing(reply):
        return SourceError(f"{host} cannot send {name}, which is gone")
    return refused(reply, host, "send", name, SourceError)


def cannot_store(reply: Reply, host: str, name: str, free_bytes: int | None) -> MpxError:
    """Return what it means that the server does not store a file; `free_bytes`: what is free there."""
    is_failure = isinstance(reply, Status) and reply.code == Code.FAILURE
    if isinstance(reply, Status) and "no space left" in reply.message.lower():
        return NoSpace(f"no space at {host} for {name}: {shown(reply.message)[:_LONGEST_TOLD]}; {_FREE_SOME}")
    if is_failure and free_bytes is not None and free_bytes < _LITTLE_BYTES:
        return NoSpace(f"no space at {host} for {name}: {format_size(free_bytes)} left there; {_FREE_SOME}")
    is_untold = is_failure and reason(reply) == _WORDS[Code.FAILURE]
    quota = ", as it does where a quota is used up" if is_untold else ""
    return DestinationError(f"{host} cannot store {name}: {reason(reply)}{quota}")
