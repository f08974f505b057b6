"""What errors of Globus mean: which of ours each is, and which command mends it.

The service tells errors of collections as text of the GridFTP servers there, with a code in it (`c=...`);
tasks tell them by the same codes.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpx.endpoints.globus.network_troubles import of_network
from mpx.engine.retry import ServerBusy
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    IntegrityError,
    MpxError,
    NoSpace,
    TransferTimeout,
)
from mpx.text import shown

if TYPE_CHECKING:
    from globus_sdk import GlobusAPIError, GlobusError

LOG_IN = "mpx globus login"
_MOST_SHOWN = 300  # characters of what the service says
_OF_COLLECTION = re.compile(r"https://auth\.globus\.org/scopes/([0-9a-f-]{36})/(data_access|https)")
_SENDABLE = re.compile(r"[A-Za-z0-9@:/._\[\]*-]{1,500}")  # of what a command is shown with
_CODE = re.compile(r"\bc=([A-Z_]+)")
_NO_ROOM = ("QUOTA_EXCEEDED", "NO_SPACE", "NOT_ENOUGH_SPACE", "DISK_FULL")
_NOT_LET_IN = ("AUTH", "CREDENTIALS_EXPIRED", "LOGIN_FAILED", "LOGIN_DENIED", "NO_CREDENTIALS", "AUTH_FAILED")
_DIFFERS = ("VERIFY_CHECKSUM", "CHECKSUM_MISMATCH", "FILE_SIZE_MISMATCH", "EXTERNAL_CHECKSUM_MISMATCH")
_LATE = ("EXPIRED", "TIMEOUT", "DEADLINE_EXPIRED")
# That no further try of the service mends, as files and permissions stay what they are.
LASTING = (
    "PERMISSION_DENIED",
    "FILE_NOT_FOUND",
    "PATH_NOT_FOUND",
    "NOT_A_DIRECTORY",
    "IS_A_DIRECTORY",
    "PATH_EXISTS",
    "INVALID_PATH_NAME",
    "AMBIGUOUS_PATH",
    *_NO_ROOM,
    *_NOT_LET_IN,
)
_PASSING = ("Connect", "Disconnect", "Timeout", "Busy", "Unavailable")  # in codes of errors
_MISSING, _CONFLICT, _TOO_MANY = 404, 409, (429, 503)


def meaning(error: "GlobusError", what: str, kind: type[MpxError], hidden: Sequence[str] = ()) -> MpxError:
    """Return what an error of the SDK means; `what` could not be done, `kind` is that of a file.

    `hidden`: secrets, of which none is in what is returned.
    """
    from globus_sdk import AuthAPIError, GlobusAPIError, NetworkError

    if isinstance(error, NetworkError):
        return of_network(error, what, lambda text: _without(hidden, shown(text[:_MOST_SHOWN])))
    if not isinstance(error, GlobusAPIError):
        return MpxError(f"cannot {what}: {_without(hidden, shown(str(error)))}")
    text = f"cannot {what}: {_without(hidden, told(error))}"
    if login := how_to_log_in(error):
        return AuthenticationError(f"{text}; run: {login}")
    is_of_login = isinstance(error, AuthAPIError) and 400 <= error.http_status < 500
    if error.http_status == 401 or (is_of_login and error.http_status not in _TOO_MANY):
        return AuthenticationError(
            f"{text}; run: {LOG_IN} (or set GLOBUS_CLIENT_ID and GLOBUS_CLIENT_SECRET)"
        )
    if error.http_status in _TOO_MANY:
        return ServerBusy(text, _wait_s(error))
    if code := _code(error):
        return of_code(code, text, kind)
    return kind(text) if _is_final(error) else ConnectionLost(text)


def _is_final(error: "GlobusAPIError") -> bool:
    """Tell whether no other try helps: of errors of collections few pass, as the SDK has it, too."""
    if 400 <= error.http_status < 500:
        return True
    code = error.code or ""
    is_of_collection = "ExternalError" in code or "EndpointError" in code
    return is_of_collection and not any(word in code for word in _PASSING)


def of_code(code: str, text: str, kind: type[MpxError]) -> MpxError:
    """Return the error that a code of a task, or of a server at a collection, stands for."""
    if code in _NO_ROOM:
        return NoSpace(text)
    if code in _NOT_LET_IN:
        return AuthenticationError(text)
    if code in _DIFFERS:
        return IntegrityError(text)
    if code in _LATE:
        return TransferTimeout(text)
    if code in LASTING or code.startswith("CANCELED"):
        return kind(text)
    return ConnectionLost(text)


def is_missing(error: "GlobusAPIError") -> bool:
    """Tell whether it is a file or folder that does not exist, not the collection."""
    if "EndpointNotFound" in (error.code or ""):
        return False
    return error.http_status == _MISSING or _code(error) in ("PATH_NOT_FOUND", "FILE_NOT_FOUND")


def is_there(error: "GlobusAPIError") -> bool:
    """Tell whether what was to be made is there already."""
    is_code = (error.code or "").endswith("Exists") or error.http_status == _CONFLICT
    return is_code or _code(error) == "PATH_EXISTS"


def required_scopes(error: "GlobusAPIError") -> list[str]:
    """Return the scopes that the user has not consented to, as far as that is what is missing."""
    consent = error.info.consent_required
    return list(consent.required_scopes) if consent else []


def data_access_in(scope: str) -> list[str]:
    """Return the scopes for the data of collections in a scope that is asked for: itself, or in brackets."""
    return [found[0] for found in _OF_COLLECTION.finditer(scope) if found[2] == "data_access"]


def how_to_log_in(error: "GlobusAPIError") -> str:
    """Return the command that mends a missing consent, or a session that is not what a collection wants."""
    words: list[str] = []
    for scope in required_scopes(error):
        if of_collections := list(_OF_COLLECTION.finditer(scope)):
            for found in of_collections:
                words += ["--data-access" if found[2] == "data_access" else "--https", found[1]]
        elif _SENDABLE.fullmatch(scope):
            words += ["--scope", f"'{scope}'"]
    session = error.info.authorization_parameters
    if session:
        for option, values in (
            ("--identity", session.session_required_identities),
            ("--domain", session.session_required_single_domain),
            ("--auth-policy", session.session_required_policies),
        ):
            for value in values or ():
                words += [option, value] if _SENDABLE.fullmatch(value) else []
        words += ["--mfa"] if session.session_required_mfa else []
        if not words:
            words.append("--again")
    return " ".join([LOG_IN, *words]) if words else ""


def told(error: "GlobusAPIError") -> str:
    """Return what the service says in one line: the first, and what a server at a collection has said."""
    lines = [line.strip() for line in (error.message or error.http_reason or "").splitlines()]
    said = next((line.removeprefix("Message: ") for line in lines if line.startswith("Message: ")), "")
    first = next(filter(None, lines), f"status {error.http_status}")
    text = f"{first} ({said})" if said and said not in first else first
    session = error.info.authorization_parameters
    if session and session.session_message:
        text = f"{text}: {session.session_message}"
    return shown(text[:_MOST_SHOWN])


def _without(hidden: Sequence[str], text: str) -> str:
    """Return a text without secrets that a service sends back to us."""
    for secret in hidden:
        text = text.replace(secret, "...") if secret else text
    return text


def _code(error: "GlobusAPIError") -> str:
    found = _CODE.search(error.message or "")
    return found[1] if found else ""


def _wait_s(error: "GlobusAPIError") -> float | None:
    given = error.headers.get("Retry-After", "")
    return float(given) if re.fullmatch(r"[0-9]{1,6}", given) else None


def kind_of_end(*, writing: bool) -> type[MpxError]:
    """Return the kind of an error of a file at a collection that is the destination, or the source."""
    from mpx.errors import SourceError

    return DestinationError if writing else SourceError
