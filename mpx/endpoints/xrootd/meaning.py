"""What XRootD's client library tells, in the words of SFTP. Pure.

XRootD's codes: XProtocol (kXR_...), and those of the client itself (XrdCl::err...).
"""

import stat
from types import MappingProxyType
from typing import Any

from mpx.endpoints.sftp.wire import Attributes, Code, Data, Described, Extended, Status
from mpx.endpoints.xrootd.exits import GONE, NO_LOGIN, NO_TRUST

SUM_TIMEOUT_S = 3600  # for the checksum of a file, which may be read from a tape for it
IS_DIR, IS_OTHER = 2, 4  # of StatInfo.flags
WHOLE = 0  # XrdCl::suDone: of what has succeeded, nothing is missing
ERROR_RESPONSE = 400  # the server has refused, and says why in `errno`
_NO_TRUST = 110  # of the client: TLS was not agreed on, mostly as it knows no CA of the server
_NO_LOGIN = 204  # of the client: no login was accepted
_LOST = (*range(101, 110), 203, 206, 207)  # of the client: there is no server, or it does not answer
# How the process ends then:
ENDS = MappingProxyType({**dict.fromkeys(_LOST, GONE), _NO_TRUST: NO_TRUST, _NO_LOGIN: NO_LOGIN})
FILE_SYSTEM = 3005  # kXR_FSError

_FULL = (3009, 3021)  # kXR_NoSpace, kXR_overQuota
LOCKED = 3003  # kXR_FileLocked: another client writes it, or one that was lost a moment ago
NOT_FOUND = 3011  # kXR_NotFound
_CODES = {
    3010: Code.PERMISSION_DENIED,  # kXR_NotAuthorized
    NOT_FOUND: Code.NO_SUCH_FILE,
    3013: Code.OP_UNSUPPORTED,  # kXR_Unsupported
}


_PLAINLY = {  # what the library says in two words
    "Connection error": "the connection is refused, or was lost; look whether a server runs at that port",
    "Invalid address": "its name has no address; check the name of the host",
    "Operation expired": "it does not answer in time",
    "Socket timeout": "it does not answer in time",
}
ASTRAY = "the server leads to a file of this host, which is refused: it is not to be trusted"
_OF_THIS_HOST = "Local error"  # of the client: it was led to such a file, and may not open it


class Failed:
    """A status of our own, for what the library raises."""

    ok, code, errno = False, 0, 0

    def __init__(self, message: str) -> None:
        self.message = message


def attributes(size_bytes: int, flags: int, modified_s: int) -> Attributes:
    """Return what is told of a name. XRootD tells no modes but whether it can be written."""
    beside = stat.S_IFCHR if flags & IS_OTHER else stat.S_IFREG
    return Attributes(size_bytes, stat.S_IFDIR if flags & IS_DIR else beside, modified_s)


def told_attributes(found: Any) -> Attributes:
    """Return what the library's StatInfo tells of a name."""
    return attributes(found.size, found.flags, found.modtime)


def described(found: Any) -> Described:
    """Return the answer to who asks for a name."""
    return Described(told_attributes(found))


def data(found: bytes) -> Data | Status:
    """Return the answer to a read."""
    return Data(memoryview(found)) if found else Status(Code.EOF)


def checksum(found: bytes) -> Extended:
    """Return the answer to who asks for a checksum."""
    return Extended(found.rstrip(b"\0\n"))


def refusal(errno: int, message: str) -> Status:
    """Return what it means that a server refuses something. What is below a file does not exist."""
    is_below_file = errno == FILE_SYSTEM and "not a directory" in message
    code = Code.NO_SUCH_FILE if is_below_file else _CODES.get(errno, Code.FAILURE)
    is_untold = errno in _FULL and "no space left" not in message
    return Status(code, f"{'no space left: ' if is_untold else ''}{told(message)}")


def not_taken(error: Exception) -> Status:
    """Return the answer to what the library does not take."""
    return Status(Code.BAD_MESSAGE, f"XRootD's library does not take that: {error}")


def has_no_tls(message: str) -> bool:
    """Tell whether the library says of a server that it speaks in the clear alone."""
    return "not configured to support encryption" in message


def told(message: str) -> str:
    """Return what the library says, without `[ERROR] Server responded with an error: [3011]` before it."""
    text = " ".join(message.split())
    for frame in ("[ERROR] Server responded with an error:", "[ERROR]", "[FATAL]"):
        text = text.removeprefix(frame).strip()
    if text.startswith("[3") and "] " in text:
        text = text.partition("] ")[2]
    return ASTRAY if text.startswith(_OF_THIS_HOST) else _PLAINLY.get(text, text)


def parse_sum(content: bytes, algorithm: str) -> str:
    """Read the answer to who asks for a checksum, `adler32 0a1b2c3d`; empty where it is of another kind."""
    name, _, digits = content.decode("ascii", "replace").strip().partition(" ")
    value = digits.strip().lower()
    length = {"adler32": 8, "md5": 32}.get(algorithm, 0)
    is_one = 0 < len(value) <= length and not value.strip("0123456789abcdef")
    return value.zfill(length) if name.lower() == algorithm and is_one else ""
