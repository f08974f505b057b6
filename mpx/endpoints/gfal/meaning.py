"""What gfal2's errors mean. Pure.

Their codes are those of the system (errno); plugins use some for several things, so words count as well, but
not those of names (`names`: of the files that an error may be about, as mpx has them).
"""

import errno
import re
from collections.abc import Iterable
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
_WITH_NAMES = re.compile(r"\S*/\S*")  # URLs, and names of files that are not known
_BLANK = re.compile(r"\s")
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
# The same of what is denied, which most files are that have such words in their names as well:
_LOGIN_DENIED = re.compile(
    r"gss_init_sec_context|globus_gsi|globus_credential|proxy credential|proxy (has )?expired|ssl error|"
    r"handshake|auth failed|authentication (error|fail)|no protocols left|\bHTTP 401\b|\berror (530|535)\b",
    re.IGNORECASE,
)
_FULL = re.compile(r"no space left|quota|not enough (disk )?space|\b(452|507|552)\b", re.IGNORECASE)
_DAMAGED = re.compile(r"checksum.*(mismatch|differ|different|not match)", re.IGNORECASE)
# The server is there, and says so by GridFTP or HTTP:
_REFUSED = re.compile(r"the server responded with an error|HTTP (4\d\d|500|501|505|507)")
_BUSY = re.compile(r"HTTP (429|502|503|504)")
# What words of gfal2 mean that say too little:
_MORE = {
    "HTTP 403": (
        "if the server lets some in: get a token (--token-file, BEARER_TOKEN_FILE) or a proxy "
        "(X509_USER_PROXY) that permits this"
    ),
    r"\(Network dropped connection on reset\)": "the folder of CAs, or the proxy, is not there or of no use",
    "GLOBUS_FTP_CLIENT_IDLE not allowed": "the server refuses the file, of which gfal2 has lost the reason",
    "CGSI-gSOAP running on .* reports could not open connection": "the server is not reached",
    "CGSI-gSOAP running on .* reports Error reading token data": "what is there speaks no SRM, or has ended",
    "CGSI-gSOAP running on .* reports No such file": "SRM takes a proxy, and none is found",
}
_UNREACHED = re.compile(
    r"connection refused|could not connect|connect(ion)? (failed|timed out)|could not read status line|"
    r"unexpected eof|connection reset|reset by peer",
    re.IGNORECASE,
)


def without_names(message: str, names: Iterable[str]) -> str:
    """Return what gfal2 says without names, as they are or percent-encoded, and without URLs."""
    whole = {f"/{name.strip('/')}" for name in names if name.strip("/")}
    # Which may be below another folder there, by another name; without a blank they go by themselves.
    parts = {f"/{part}" for name in whole for part in name.split("/") if _BLANK.search(part)}
    for each in (*sorted(whole, key=len, reverse=True), *sorted(parts, key=len, reverse=True)):
        message = re.sub(r"\S*" + "".join(map(_encoded_or_not, each)), " ", message)
    return _WITH_NAMES.sub(" ", message)


def _encoded_or_not(character: str) -> str:
    """Return the pattern of a character of a name."""
    encoded = "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
    return f"(?:{re.escape(character)}|(?i:{encoded}))"


def trouble(code: int, message: str, names: Iterable[str] = ()) -> Trouble:
    """Return what a failure was."""
    message = without_names(message, names)
    found = _BY_CODE.get(code, Trouble.OTHER)
    if found is Trouble.MISSING:
        # Also the code of a certificate of ours that is not there.
        return Trouble.LOGIN if _NO_CREDENTIAL.search(message) else found
    if code in (errno.EACCES, errno.EPERM):
        is_login = _LOGIN_DENIED.search(message) or _NOT_TRUSTED.search(message)
        return Trouble.LOGIN if is_login else found
    if _DAMAGED.search(message):
        return Trouble.DAMAGED
    if _FULL.search(message):
        return Trouble.FULL
    if _NO_CREDENTIAL.search(message):
        return Trouble.LOGIN
    if _NOT_TRUSTED.search(message):  # of which XRootD's is the code of what is to be tried again
        return Trouble.LOGIN
    if found is Trouble.STOPPED:
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
    """Return what gfal2 says, in one line."""
    text = " ".join(message.replace("\\n", " ").replace("\\x00", " ").split())
    return text if len(text) <= 2 * _MOST_TOLD else f"{text[:_MOST_TOLD]} ... {text[-_MOST_TOLD:]}"


def explained(message: str, names: Iterable[str] = ()) -> str:
    """Return what gfal2 says, and what it means where that says too little."""
    text = without_names(message, names)
    return told(message) + next((f"; {more}" for words, more in _MORE.items() if re.search(words, text)), "")


def is_not_trusted(message: str) -> bool:
    """Tell whether a server has shown a certificate that nobody here vouches for."""
    return bool(_NOT_TRUSTED.search(message))


def status(code: int, message: str, names: Iterable[str] = ()) -> Status:
    """Return a failure as SFTP has it."""
    names = tuple(names)
    found, words = trouble(code, message, names), explained(message, names)
    if found is Trouble.MISSING:
        return Status(Code.NO_SUCH_FILE, words)
    if found is Trouble.DENIED:
        return Status(Code.PERMISSION_DENIED, words)
    full = "no space left: " if found is Trouble.FULL else ""
    return Status(Code.FAILURE, f"{full}{words}")


_SIDES = (
    ("(source)", True),
    ("(destination)", False),
    ("SOURCE", True),
    ("DESTINATION", False),
)


def is_of_source(message: str, names: Iterable[str] = ()) -> bool | None:
    """Tell which end of a copy a failure is about; None where gfal2 does not say."""
    message = without_names(message, names)
    return next((is_source for words, is_source in _SIDES if words in message), None)
