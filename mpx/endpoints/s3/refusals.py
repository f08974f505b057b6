"""What the errors of S3 mean to a copy. Pure, but for the time that is compared with the server's."""

import time
from urllib.parse import urlsplit

from mpx.endpoints.s3.answer import S3Answer, S3AnswerError
from mpx.endpoints.web.dates import http_date
from mpx.endpoints.web.headers import retry_after
from mpx.endpoints.web.refusals import BUSY, REDIRECTS
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
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
from mpx.units import format_duration

LARGEST_ERROR_BYTES = 64 * 1024
NO_UPLOAD = "NoSuchUpload"
EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired")
_MOST_SHOWN = 200
_BAD_REQUEST, _NOT_MET, _UNKNOWN = 400, 412, 501
_CLOCKS_AGREE_S = 60.0  # S3 takes requests of the last 15 minutes
_DENIED = ("AccessDenied", "AllAccessDisabled", "AccountProblem", "NotSignedUp")
_NOT_LET_IN = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    *EXPIRED,
    "AuthorizationHeaderMalformed",
    "InvalidSecurity",
)
_BUSY = ("SlowDown", "ServiceUnavailable", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded")
_FULL = ("QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity", "InsufficientStorage")
_FAILED = ("InternalError", "OperationAborted", "ConditionalRequestConflict", "IncompleteBody")  # once
_DAMAGED = ("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch")
_ELSEWHERE = "the bucket is in another region, which the server does not name; give it with --region"
_OTHER_PARTS = "parts that were stored are not as they were; copy it again, with --no-continue if it stays so"
_HELP = {
    "EntityTooLarge": "it is larger than the server takes",
    "EntityTooSmall": "a part is smaller than the server takes",
    "InvalidObjectState": "it is archived; have it restored, then copy it",
    "PermanentRedirect": _ELSEWHERE,
    "TemporaryRedirect": _ELSEWHERE,
    "IllegalLocationConstraintException": _ELSEWHERE,
    "InvalidPart": _OTHER_PARTS,
    "InvalidPartOrder": _OTHER_PARTS,
    NO_UPLOAD: "the server has forgotten what was stored; copy it again",
    "KeyTooLongError": "the key is longer than S3 permits, 1024 bytes",
}


class S3Error:
    """What the body of a refusal tells: nothing where it tells nothing."""

    def __init__(self, body: bytes) -> None:
        self.code = self.message = self.region = ""
        try:
            answer = S3Answer(body) if body else None
        except S3AnswerError:
            return
        if answer is not None and answer.root == "Error":
            fields = answer.fields
            self.code, self.message = fields.get("Code", ""), fields.get("Message", "")
            self.region = fields.get("Region", "")


def is_unknown(reply: HttpReply, body: bytes, header: str) -> bool:
    """Tell whether a server says that it does not know what it is asked for, or a header of that."""
    error = S3Error(body)
    names_it = reply.status == _BAD_REQUEST and header.lower() in error.message.lower()
    return reply.status == _UNKNOWN or error.code == "NotImplemented" or names_it


def is_not_met(reply: HttpReply, body: bytes) -> bool:
    """Tell whether a server says that a condition is not met."""
    return reply.status == _NOT_MET or S3Error(body).code == "PreconditionFailed"


def refused(
    reply: HttpReply, body: bytes, url: WebUrl, what: str, kind: type[MpxError], *, help_text: str
) -> MpxError | None:
    """Return the error for an answer; None where only its status tells something.

    `what` was tried; `help_text`: how to give credentials, empty where some were shown. No message has
    anything that was sent, as the signature.
    """
    error = S3Error(body)
    code, status = error.code, reply.status
    if not code:
        why = _leads_to(reply, url) or _ELSEWHERE
        tried = f"{url.origin} does not {what} {shown(url.path)}: {status}; {why}"
        return kind(tried) if status in REDIRECTS else None
    said = reply.secrets.hidden_in(f"{code}: {error.message}".rstrip(": "))
    said = shown(said[:_MOST_SHOWN])
    tried = f"{url.origin} does not {what} {shown(url.path)}: {said}"
    if code == "NoSuchBucket":
        return kind(f"{tried}; make it first, or give the --endpoint-url or --profile that has it")
    if code == "RequestTimeTooSkewed":
        return AuthenticationError(f"{tried}; {_skew(reply)}")
    if code in _DENIED:
        return kind(f"{tried}; {help_text or 'the credentials do not permit this'}")
    if code in _NOT_LET_IN:
        return AuthenticationError(f"{tried}; {help_text or _which(code)}")
    if code in _BUSY or status in BUSY:
        return ServerBusy(f"{tried}; it is busy", retry_after(reply.header("Retry-After"), time.time()))
    if code in _FULL and kind is DestinationError:
        return NoSpace(f"{tried}; there is no room left, or the quota is used up")
    if code in _DAMAGED:
        return ConnectionLost(f"{tried}; the data changed on their way")
    if code == "RequestTimeout":
        return TransferTimeout(tried)
    if code == "PreconditionFailed" and kind is not DestinationError:
        return IntegrityError(f"{tried}; it changed meanwhile")
    if code in _FAILED or (status >= 500 and status != 501):
        return ConnectionLost(tried)
    return kind(f"{tried}; {_HELP[code]}" if code in _HELP else tried)


def _leads_to(reply: HttpReply, url: WebUrl) -> str:
    """Return what to do where something before S3 leads to another server, as from http to https."""
    try:
        to = urlsplit(reply.header("Location"))
        place = f"{to.scheme}://{to.netloc.rpartition('@')[2]}" if to.hostname else ""
    except ValueError:
        return ""
    if not place or place == str(url.origin):
        return ""
    return f"it leads to {shown(place[:_MOST_SHOWN])}; if that is the server, give it with --endpoint-url"


def _which(code: str) -> str:
    if code in EXPIRED:
        return "the credentials have expired; get others (aws sso login, or what gives you yours)"
    return "check the credentials (AWS_ACCESS_KEY_ID, --profile) and that they are of this server"


def _skew(reply: HttpReply) -> str:
    there_s = http_date(reply.header("Date"))
    ahead_s = 0.0 if there_s is None else time.time() - there_s
    if abs(ahead_s) < _CLOCKS_AGREE_S:  # by the clock of whatever has answered
        return "compare the clock of this host with the server's"
    way = "ahead of" if ahead_s > 0 else "behind"
    return f"the clock of this host is {format_duration(abs(ahead_s))} {way} the server's; set it right"
