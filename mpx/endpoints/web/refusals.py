"""What the statuses of HTTP mean to a copy. Pure, but for the time of a date in Retry-After."""

import time

from mpx.endpoints.web.headers import login_schemes, retry_after
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.retry import ServerBusy, ServerFailed
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

MISSING = (404, 410)
NOT_MET = 412  # a condition
NOT_SUPPORTED = (405, 501)
UNAUTHORIZED = 401
REDIRECTS = (301, 302, 303, 307, 308)
BUSY = (429, 503)
_NOT_YET = 202  # to who asks for data: they are fetched from a tape, say, or made
_DATA = (200, 203)
_KNOWN = frozenset(("bearer", "basic"))  # ways to log in
_MOST_SHOWN = 200
FAILED, _NO_ROOM = 500, (507, 509)


def is_success(reply: HttpReply) -> bool:
    """Tell whether the server did what it was asked for."""
    return 200 <= reply.status < 300


def has_data(reply: HttpReply) -> bool:
    """Tell whether an answer to GET or HEAD is about all of a file: other successes bring a message."""
    return reply.status in _DATA


def refused(
    reply: HttpReply,
    url: WebUrl,
    what: str,
    kind: type[MpxError],
    *,
    has_credentials: bool,
    help_text: str = "",
) -> MpxError:
    """Return the error for an answer that is no success. `what` was tried: "read", "list", "store".

    `has_credentials`: a token, a password or a certificate was shown; `help_text`: how to give one.
    """
    status, said = reply.status, shown(f"{reply.status} {reply.reason}".strip()[:_MOST_SHOWN])
    tried = f"{url.origin} does not {what} {shown(url.path)}: {said}"
    asked = login_schemes(reply.all("WWW-Authenticate"))
    if status == UNAUTHORIZED and asked and _KNOWN.isdisjoint(each.lower() for each in asked):
        return AuthenticationError(
            f"{tried}; it asks for a login by {' or '.join(asked)}; mpx knows tokens (Bearer), passwords "
            "(Basic) and certificates"
        )
    if status == UNAUTHORIZED:
        return AuthenticationError(
            f"{tried}; it does not accept the credentials that were sent"
            if has_credentials
            else f"{tried}; {help_text}"
        )
    if status == 403:
        why = "what was sent does not permit this" if has_credentials else help_text
        if not (has_credentials or asked):  # some that want a token do not say so
            forbids = (
                "does not let that be made there" if kind is DestinationError else "may forbid this to all"
            )
            why = f"the server {forbids}: it asks for no login" + (
                f"; if it lets some in: {why}" if why else ""
            )
        return kind(f"{tried}; {why}" if why else tried)
    if status in MISSING:
        return kind(f"{shown(str(url))} does not exist ({said})")
    if status == 407:
        return AuthenticationError(
            f"{tried}; a proxy asks for credentials: put them into http_proxy (https_proxy)"
        )
    if status == 408:
        return TransferTimeout(tried)
    if status == 409 and kind is DestinationError:
        return kind(f"{tried}; the folder that it is in does not exist, or something is in its way")
    if status == NOT_MET and kind is DestinationError:
        return kind(f"{tried}; a condition that the server sets for it is not met")
    if status == NOT_MET:
        return IntegrityError(f"{tried}; it changed meanwhile")
    if status == 423:
        return kind(f"{tried}; another program has locked it")
    if status in _NO_ROOM and kind is DestinationError:
        return NoSpace(f"{tried}; there is no room left, or the quota is used up")
    if status == _NOT_YET:
        return ServerBusy(f"{tried}; it has it later", retry_after(reply.header("Retry-After"), time.time()))
    if status in BUSY:
        return ServerBusy(f"{tried}; it is busy", retry_after(reply.header("Retry-After"), time.time()))
    if status >= 500 and status not in NOT_SUPPORTED:
        is_unclear = status == FAILED and not reply.header("Retry-After")
        return ServerFailed(tried, kind) if is_unclear else ConnectionLost(tried)
    return kind(tried)
