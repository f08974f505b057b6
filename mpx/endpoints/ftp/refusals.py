"""What a server's refusal means: its code and its own words decide, never the words of a file name."""

import posixpath
import re

from mpx.endpoints.ftp.wire import Reply
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    ListingBroken,
    MpxError,
    NoSpace,
    SessionEnded,
    SourceError,
)

_NO_SPACE = re.compile(r"no space left|\bquota\b|\bdisk full\b|not enough space|insufficient (disk )?space")
_BUSY = re.compile(r"\btoo many\b|\btry again\b|\bbusy\b")
_GONE = ("no such file", "not found", "does not exist", "no such directory")
_LEADS_NOWHERE = ("not a directory", "too many levels of symbolic links")
_UNSUPPORTED = (500, 502, 504)
_OF_A_NAME = (501, 550, 553)  # may mean that the name is not allowed
# What servers say of a file that cannot be created, whatever its name
_NOT_OF_ITS_NAME = re.compile(
    r"permission|permitted|denied|access|privilege|read.?only|(could|can) ?not|can't|unable|exist|director"
    r"|command failed|input/output error"
)
_PROHIBITED = re.compile(r'[\\:*?"<>|\x00-\x1f]|[ .]$')  # by some servers, wherever in a name
# What the C library says of other reasons, and what servers say in its place.
_WHY = re.compile(
    r"permission|permitted|denied|not allowed|access|privilege|forbidden"
    r"|name too long|input/output error|stale|command failed"
)
_FAILED = re.compile(r"\b(fail(ed|ure)|unable|cannot|can't|denied|not permitted)\b")
_FULL = re.compile(r"\b(too many|maximum|limit|try again|later|busy|full|in use|already connected)\b")
_WRONG_PASSWORD = re.compile(r"\b(fail(ed|ures?)?|attempts?|incorrect|invalid|wrong)\b")
_ENCRYPTED = re.compile(
    r"\b(tls|ssl|prot|encrypt(ed|ion)?|unencrypted|cleartext|plaintext|gssapi|gsi)\b"
    r"|\bsecure (connection|session|channel)s?\b"
    r"|\b(use|send|issue|perform|with) auth\b|\bauth (command |is )?(first|required|needed)\b"
)
_OF_GRIDS = re.compile(r"\b(gssapi|gsi)\b")
_OF_PROTECTION = (521, 522, 533, 534, 536)
_NO_ENCRYPTION = (
    "mpx speaks FTP in the clear only, not over TLS: have the server permit that, or use ssh:// or mpx serve "
    "there"
)
_WRITE_GSIFTP = "ftp:// is in the clear: write gsiftp:// (needs a grid proxy, as grid-proxy-init makes one)"
_TLS_RECORD = re.compile(rb"[\x15\x16]\x03[\x00-\x04]")  # how an alert or a handshake begins
_BROKEN_DATA = ("connect", "callback failed", "end-of-file", "broken pipe", "timed out", "econn")


def reply_error(
    reply: Reply, what: str, otherwise: type[MpxError], *, retry: type[MpxError] = ConnectionLost
) -> MpxError:
    """Translate a refusal: `what` says what was tried on what; `otherwise` is what it means by default.

    4xx replies about connections, and servers that are busy, become `retry`.
    """
    text = _words(reply)
    message = f"{what}: {reply.reason}"
    if reply.code in (452, 552) or _NO_SPACE.search(text):
        return NoSpace(f"{message}; free some space there and copy the same SRC to the same DST again")
    if reply.code in (332, 430, 530, 532):
        return AuthenticationError(message)
    if _wants_encryption(reply):
        return otherwise(f"{message}; {_NO_ENCRYPTION}")
    if reply.code in (421, 425, 426) or (reply.code == 450 and _BUSY.search(text)):
        return retry(message)
    return otherwise(message)


def check_first(data: bytes, peer: str) -> None:
    """Raise AuthenticationError where the first that `peer` says is TLS, and not FTP."""
    if _TLS_RECORD.match(data):
        raise AuthenticationError(f"{peer} answers in TLS{if_tls(peer)}; mpx does not speak FTP over TLS")


def if_tls(peer: str) -> str:
    """Return what to try at a server that says nothing, or TLS, which is meant by another scheme."""
    scheme, _, place = peer.partition("://")
    if scheme not in ("ftp", "gsiftp"):
        return ""
    return f"; if it is mpx serve inside TLS, which does not speak first, write mpx://{place}"


def ended_by(reply: Reply, peer: str) -> MpxError:
    """Translate why `peer` ends a session (421): it may be tried again, unless it demands encryption."""
    text = reply.text.lower()
    if _ENCRYPTED.search(text):
        return AuthenticationError(f"{peer} ends the session: {reply.reason}; {_encrypted_by(text, peer)}")
    return SessionEnded(f"{peer} ends the session: {reply.reason}")


def not_let_in(reply: Reply, peer: str, user: str) -> MpxError:
    """Translate a refused login at `peer`: it is full, requires encryption, or rejects the password."""
    text = reply.text.lower()
    if _ENCRYPTED.search(text):
        return AuthenticationError(f"{peer} requires encryption: {reply.reason}; {_encrypted_by(text, peer)}")
    if 400 <= reply.code < 600 and _FULL.search(text) and not _WRONG_PASSWORD.search(text):
        return SessionEnded(f"{peer}: login of {user!r} refused for now (server is full): {reply.reason}")
    if reply.code in (332, 532):
        return AuthenticationError(
            f"{peer} requires an account (ACCT), which mpx does not support: {reply.reason}"
        )
    return AuthenticationError(
        f"{peer}: login failed for {user!r}: {reply.reason}; put user and password in ~/.netrc, or the user "
        "into the URL and the password into MPX_PASSWORD"
    )


def cannot_list(reply: Reply, peer: str, name: str, otherwise: type[MpxError]) -> MpxError:
    """Translate why `peer` did not list a folder, or not all of it."""
    broken = ListingBroken if reply.code == 426 else ConnectionLost
    return reply_error(reply, f"{peer} cannot list {name}", otherwise, retry=broken)


def cannot_store(reply: Reply, peer: str, name: str, partial: str = "") -> MpxError:
    """Translate why `peer` did not take a file; a data connection that broke may be tried again.

    `partial` is the name that it was to grow under: some servers prohibit names that begin with a dot.
    """
    error = reply_error(reply, f"{peer} cannot store {name}", DestinationError)
    if isinstance(error, DestinationError):
        error = _lost_if_broken(error, reply)
    own, grows_as = posixpath.basename(name), posixpath.basename(partial)
    is_hidden = grows_as.startswith(".") and not own.startswith(".") and not _PROHIBITED.search(own)
    may_be_its_name = reply.code in _OF_A_NAME and not _NOT_OF_ITS_NAME.search(_words(reply))
    if isinstance(error, DestinationError) and is_hidden and may_be_its_name:
        return DestinationError(
            f"{error}; until it is whole its name is {grows_as}: if the server prohibits names "
            "that begin with a dot, give --partial-prefix TEXT"
        )
    return error


def cannot_send(reply: Reply, peer: str, name: str) -> MpxError:
    """Translate why `peer` did not send a file; what disk is full there is not our destination's."""
    if is_missing(reply):
        return SourceError(f"{peer} cannot send {name}, which is gone: {reply.reason}")
    error = reply_error(reply, f"{peer} cannot send {name}", SourceError)
    if isinstance(error, NoSpace):
        return SourceError(str(error))
    return _lost_if_broken(error, reply) if isinstance(error, SourceError) else error


def is_missing(reply: Reply) -> bool:
    """Tell whether a refusal says, in words that are known, that the name does not exist.

    False means that it is not known: a server may say so in words of its own, or in none.
    """
    if reply.is_accepted:
        return False
    text = reply.text.lower()
    return reply.error_class == "PATH_NOT_FOUND" or any(word in text for word in (*_GONE, *_LEADS_NOWHERE))


def is_clear(refusal: Reply) -> bool:
    """Tell whether a refusal of MLST says itself what is wrong, so that nothing else need be asked."""
    return is_missing(refusal) or (says_why(refusal) and not is_unsupported(refusal))


def is_unsupported(reply: Reply) -> bool:
    """Tell whether a server refuses the command itself, whatever it is of."""
    return reply.code in _UNSUPPORTED and not reply.error_class and "command failed" not in reply.text.lower()


def says_why(reply: Reply) -> bool:
    """Tell whether a refusal gives, in words that are known, another reason than that a name is missing."""
    return bool(reply.error_class or _WHY.search(_words(reply)))


def says_failed(reply: Reply) -> bool:
    """Tell whether an answer says in its words that something failed, as vsftpd's 226 to LIST does."""
    return bool(_FAILED.search(_words(reply)))


def _encrypted_by(text: str, peer: str) -> str:
    """Return what to do about a server in the clear that demands encryption in these words."""
    return _WRITE_GSIFTP if _OF_GRIDS.search(text) and peer.startswith("ftp://") else _NO_ENCRYPTION


def _wants_encryption(reply: Reply) -> bool:
    return reply.code in _OF_PROTECTION and bool(_ENCRYPTED.search(reply.text.lower()))


def _lost_if_broken(error: MpxError, reply: Reply) -> MpxError:
    text = _words(reply)
    is_broken = not _wants_encryption(reply) and any(words in text for words in _BROKEN_DATA)
    return ConnectionLost(str(error)) if is_broken else error


def _words(reply: Reply) -> str:
    """Return what the server says, without names of files."""
    return " ".join(word for word in reply.text.lower().split() if "/" not in word)
