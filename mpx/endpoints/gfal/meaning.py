"""What gfal2's errors mean. Pure.

Their codes are those of the system (errno); plugins use some for several things, so words count as well.
"""

import errno
import re
from enum import Enum

from mpx.endpoints.sftp.wire import Code, Status

_MOST_TOLD = 145  # characters of the beginning, and of the end, where GSI has the cause


class Trouble(Enum):
    """What kind of failure it was."""

    MISSING = "missing"
    THERE = "there already"
    DENIED = "denied"
    LOGIN = "no login"
    FULL = "full"
    LOST = "lost"
    LATE = "late"
    STOPPED = "stopped"
    DAMAGED = "damaged"
    NO_PLUGIN = "no plugin"
    OTHER = "other"


_BY_CODE = {
    errno.ENOENT: Trouble.MISSING,
    errno.EEXIST: Trouble.THERE,
    errno.EPERM: Trouble.DENIED,
    errno.EACCES: Trouble.DENIED,
    errno.EROFS: Trouble.DENIED,
    errno.ENOSPC: Trouble.FULL,
    errno.EDQUOT: Trouble.FULL,
    errno.ETIMEDOUT: Trouble.LATE,
    errno.ECANCELED: Trouble.STOPPED,
    errno.EPROTONOSUPPORT: Trouble.NO_PLUGIN,
    **dict.fromkeys(
        (
            errno.ECOMM,
            errno.ECONNREFUSED,
            errno.ECONNRESET,
            errno.EPIPE,
            errno.EHOSTDOWN,
            errno.EHOSTUNREACH,
            errno.ENETUNREACH,
            errno.ENOTCONN,
            errno.ESTALE,
        ),
        Trouble.LOST,
    ),
    **dict.fromkeys((errno.EBADE, errno.EBADR, errno.ENETRESET), Trouble.LOGIN),  # of TLS
}
_WITH_NAMES = re.compile(r"\S*/\S*")  # names of files, and URLs: of no error, whatever they are made of
_NO_CREDENTIAL = re.compile(
    r"could not open the user certificate|CGSI-gSOAP running on \S+ reports No such file or directory",
    re.IGNORECASE,
)
# In the words of libraries that verify certificates; the last is what gfal2 has of XRootD's:
_NOT_TRUSTED = re.compile(
    r"certificate verif|issuer is not trusted|unable to get (local )?issuer|self.signed certificate|"
    r"failed to .* \(resource temporarily unavailable\)",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"authenticat|\b(530|535|401)\b|credential|certificate|handshake|proxy (has )?expired|"
    r"gss_init_sec_context|ssl error|auth failed|no protocols left",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left|quota|not enough (disk )?space|\b(452|507|552)\b", re.IGNORECASE)
_DAMAGED = re.compile(r"checksum.*(mismatch|differ|different|not match)", re.IGNORECASE)
# The server is there, and says so by GridFTP or HTTP:
_REFUSED = re.compile(r"the server responded with an error|HTTP (4\d\d|500|501|505|507)")
_BUSY = re.compile(r"HTTP (429|502|503|504)")
NO_PROXY = "SRM takes a proxy, and none is found"
# What words of gfal2 mean that say too little:
_MORE = {
    "HTTP 403": (
        "if the server lets some in: get a token (--token-file, BEARER_TOKEN_FILE) or a proxy "
        "(X509_USER_PROXY) that permits this"
    ),
    r"\(Network dropped connection on reset\)": "the folder of CAs, or the proxy, is not there or of no use",
    "CGSI-gSOAP running on .* reports could not open connection": "the server is not reached",
    "CGSI-gSOAP running on .* reports Error reading token data": "what is there speaks no SRM, or has ended",
    "CGSI-gSOAP running on .* reports No such file": NO_PROXY,
}
# Around what a server of XRootD says:
_FRAMES = re.compile(
    r"(Error on XrdCl::\S+ )?(\[(ERROR|FATAL)\] )+(Server responded with an error: \[\d+\] )?", re.IGNORECASE
)
_UNREACHED = re.compile(
    r"connection refused|could not connect|connect(ion)? (failed|timed out)|could not read status line|"
    r"unexpected eof|connection reset|reset by peer|"
    # of XRootD's library, not of a server:
    r"\[(error|fatal)\] (connection error|socket (error|timeout|disconnected)|stream disconnect|"
    r"initialization error|invalid session|operation interrupted)",
    re.IGNORECASE,
)


def trouble(code: int, message: str) -> Trouble:
    """Return what a failure was."""
    message = _WITH_NAMES.sub(" ", message)
    if _DAMAGED.search(message):
        return Trouble.DAMAGED
    if _FULL.search(message):
        return Trouble.FULL
    if _NO_CREDENTIAL.search(message):  # whose code is that of a file which is not there
        return Trouble.LOGIN
    if _NOT_TRUSTED.search(message):  # of which XRootD's is the code of what is to be tried again
        return Trouble.LOGIN
    found = _BY_CODE.get(code, Trouble.OTHER)
    if found in (Trouble.MISSING, Trouble.STOPPED):
        return found
    if _UNREACHED.search(message):
        return Trouble.LOST
    if _LOGIN.search(message):
        return Trouble.LOGIN
    if found is Trouble.LOST and _REFUSED.search(message):
        return Trouble.OTHER
    if _BUSY.search(message):
        return Trouble.LOST
    return found


def told(message: str) -> str:
    """Return what gfal2 says, in one line: of what passes from module to module the last cause first."""
    text = " ".join(message.replace("\\n", " ").replace("\\x00", " ").split())
    text = _FRAMES.sub("", text)
    before, module, cause = text.rpartition(" globus_")
    cause = cause.partition(": ")[2]
    if module and cause and len(text) > _MOST_TOLD:
        return f"{cause[:_MOST_TOLD]} ({before[:_MOST_TOLD]} ...)"
    return text if len(text) <= 2 * _MOST_TOLD else f"{text[:_MOST_TOLD]} ... {text[-_MOST_TOLD:]}"


def explained(message: str) -> str:
    """Return what gfal2 says, and what it means where that says too little."""
    text = _WITH_NAMES.sub(" ", message)
    return told(message) + next((f"; {more}" for words, more in _MORE.items() if re.search(words, text)), "")


def is_not_trusted(message: str) -> bool:
    """Tell whether a server has shown a certificate that nobody here vouches for."""
    return bool(_NOT_TRUSTED.search(message))


def status(code: int, message: str) -> Status:
    """Return a failure as SFTP has it."""
    found = trouble(code, message)
    if found is Trouble.MISSING:
        return Status(Code.NO_SUCH_FILE, explained(message))
    if found is Trouble.DENIED:
        return Status(Code.PERMISSION_DENIED, explained(message))
    full = "no space left: " if found is Trouble.FULL else ""
    return Status(Code.FAILURE, f"{full}{explained(message)}")


_SIDES = (
    ("(source)", True),
    ("(destination)", False),
    ("SOURCE", True),
    ("DESTINATION", False),
)


def is_of_source(message: str) -> bool | None:
    """Tell which end of a copy a failure is about; None where gfal2 does not say."""
    return next((is_source for words, is_source in _SIDES if words in message), None)
