"""Storing one file by PUT, from its first byte, where the server leads.

The head goes first with `Expect: 100-continue`, so that a server that refuses, or leads elsewhere, says so
before the data are sent. Short files that can be sent again are sent at once where the server has taken one
before.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import Body, BodyLost
from mpx.endpoints.web.dates import date_of
from mpx.endpoints.web.dialogue import MOST_REDIRECTS, redirected
from mpx.endpoints.web.lanes import LaneSet, WebLane
from mpx.endpoints.web.refusals import NOT_MET, REDIRECTS, is_success
from mpx.endpoints.web.reply import EXPECT_CONTINUE, HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, DestinationError, IsThere, MpxError, TransferTimeout

SHORT_BYTES = 64 * 1024  # what is sent at once; less than a connection takes that has just begun
CONTINUE_S = 1.0  # after which a server that says nothing gets the data all the same (RFC 9110, 10.1.1)
STORED_BPS = 160e6  # how fast a server stores what it has, at least: its answer has as much more time
_EXPECTATION_FAILED, _LENGTH_REQUIRED = 417, 411

_ONLY_NEW: Mapping[str, str] = MappingProxyType({"If-None-Match": "*"})

SendBody = Callable[[Body], None]  # sends all of a file but the end of its body


class FilePut:
    """Stores files, one after the other. For one worker's thread."""

    def __init__(self, access: WebAccess, lanes: LaneSet, timeout_s: float) -> None:
        self._access, self._lanes, self._timeout_s = access, lanes, timeout_s
        self.leads_on = True  # whether PUT may lead to another server, as far as that is known
        self.was_tried = False  # something was asked for, over a connection that could be opened
        self.is_under_way = False  # a PUT whose answer was not read
        self._is_begun = False  # the body of a file
        self._leads_late = False  # the server says where it leads only once it has data
        self._only_new: Mapping[str, str] = {}  # what says that the file in hand is to replace none
        self._before_bytes = 0  # that its connection had carried before the file in hand

    def store(self, file: FileTransfer, send: SendBody, *, is_repeatable: bool) -> None:
        """Send a file to where the server leads.

        `send` is called once more where that shows only then, if it is repeatable. Raises what a refusal
        means (ServerBusy), ConnectionLost and the like, BodyCut, and what `send` does.
        """
        self.was_tried = self._is_begun = False
        url, expects = self._access.stored_as(file), True
        self._only_new = self._condition(url, file) if _replaces_none(self._access, file) else {}
        if self._leads_late and not is_repeatable:
            url = self._led_to(url)
        for _ in range(MOST_REDIRECTS + 1):
            is_long = file.is_streamed or file.size_bytes > SHORT_BYTES
            asks_first = expects and (self.leads_on or is_long or not is_repeatable)
            if self._is_begun and not is_repeatable:
                self._leads_late = True
                raise ConnectionLost(f"{url.origin} leads elsewhere only once it has the data; asked again")
            reply = self._put(file, send, url, asks_first=asks_first, is_repeatable=is_repeatable)
            if reply.status == _EXPECTATION_FAILED and asks_first:
                expects = False
                continue
            if reply.status not in REDIRECTS:
                break
            to = redirected(reply, url)
            assert to is not None
            url = to
        else:
            raise DestinationError(f"{file.final}: the server leads from one URL to the next without end")
        self.leads_on = url.origin != self._access.origin
        if not is_success(reply):
            raise self._refusal(reply, url, file)

    def _condition(self, url: WebUrl, file: FileTransfer) -> Mapping[str, str]:
        """Return what says that a file is to be new; nothing where it may be ours that is there.

        Servers may ignore conditions: raises IsThere for what others have stored, which is longer, or there
        before the first attempt.
        """
        http = self._lanes.open_to(url.origin).http
        http.send(self._access.request("HEAD", url, {}))
        reply = http.reply("HEAD")
        if not reply.is_reusable:
            self._lanes.drop(url.origin)
        if not is_success(reply):
            return _ONLY_NEW
        is_longer = not file.is_streamed and (reply.told_bytes or 0) > file.size_bytes
        if is_longer or not _was_tried_before(file):
            raise IsThere(str(url))
        return {}

    def _led_to(self, url: WebUrl) -> WebUrl:
        """Return where a URL leads: what shows that is given no data."""
        http = self._lanes.to(url.origin).http
        http.send(self._access.request("PUT", url, body_headers(0, asks_first=False)))
        reply = http.reply("PUT")
        reply.read(SHORT_BYTES)
        if not reply.is_reusable:
            self._lanes.drop(url.origin)
        return redirected(reply, url) or url

    def _refusal(self, reply: HttpReply, url: WebUrl, file: FileTransfer) -> MpxError:
        if reply.status == NOT_MET and self._only_new:
            return IsThere(str(url))
        error = self._access.refused(reply, url, "store", DestinationError)
        if reply.status == _LENGTH_REQUIRED and file.is_streamed:
            return DestinationError(
                f"{error}; it takes nothing of unknown length: copy {file.source} from a file"
            )
        return error

    def _put(
        self, file: FileTransfer, send: SendBody, url: WebUrl, *, asks_first: bool, is_repeatable: bool
    ) -> HttpReply:
        """Do one PUT; return the answer. Once more where a connection that was kept had ended."""
        lane = self._lanes.open_to(url.origin)
        was_used, self.was_tried = lane.http.answered > 0, True
        try:
            return self._put_over(lane, file, send, url, asks_first=asks_first)
        except ConnectionLost:
            if self._is_begun and not is_repeatable:
                raise
            sent_bytes = lane.passed_bytes - self._before_bytes
            if not was_used or lane.http.incoming.has_some or sent_bytes > SHORT_BYTES:
                raise
        self._lanes.drop(url.origin)
        self._only_new = {}  # as it may be stored, and only the answer be lost
        return self._put_over(self._lanes.to(url.origin), file, send, url, asks_first=asks_first)

    def _put_over(
        self, lane: WebLane, file: FileTransfer, send: SendBody, url: WebUrl, *, asks_first: bool
    ) -> HttpReply:
        http = lane.http
        self._before_bytes = lane.passed_bytes
        size_bytes = None if file.is_streamed else file.size_bytes
        self.is_under_way = True
        headers = body_headers(size_bytes, asks_first=asks_first)
        given = {**headers, **dated(self._access, file), **self._only_new}
        http.send(self._access.request("PUT", url, given))
        if asks_first and (early := self._early(lane)):
            self._lanes.drop(url.origin)  # it may wait for the data still
            self.is_under_way = False
            if is_success(early) and size_bytes != 0:
                raise ConnectionLost(f"{url} is stored, says the server, before it was sent: {early.status}")
            return early
        self._is_begun, body = True, Body(lane, size_bytes)
        try:
            send(body)
            body.end()
        except (BodyLost, TransferTimeout) as lost:
            return self._why_refused(lane, lost)
        http.incoming.timeout_s = self._timeout_s + file.size_bytes * 8 / STORED_BPS
        reply = http.reply("PUT")
        reply.read(SHORT_BYTES)
        http.incoming.timeout_s = self._timeout_s
        self.is_under_way = False
        if not reply.is_reusable:
            self._lanes.drop(url.origin)
        return reply

    def _early(self, lane: WebLane) -> HttpReply | None:
        """Return the answer of a server that wants no data; None where they are to be sent."""
        incoming = lane.http.incoming
        incoming.timeout_s = CONTINUE_S
        try:
            reply = lane.http.reply("PUT", wants_continue=True)
        except TransferTimeout:
            return None
        finally:
            incoming.timeout_s = self._timeout_s
        if reply.status == EXPECT_CONTINUE:
            return None
        reply.read(SHORT_BYTES)
        return reply

    def _why_refused(self, lane: WebLane, lost: BodyLost | TransferTimeout) -> HttpReply:
        """Return the answer that a server gave before it stopped to take data; raises `lost` without one."""
        try:
            reply = lane.http.reply("PUT")
            reply.read(SHORT_BYTES)
        except MpxError:
            raise lost from None
        self._lanes.drop(lane.http.origin)
        if is_success(reply):  # of what it has not got
            raise lost
        return reply


def body_headers(size_bytes: int | None, *, asks_first: bool) -> Mapping[str, str]:
    """Return what the head of a PUT tells of its body; None: that is sent in chunks."""
    told = {"Transfer-Encoding": "chunked"} if size_bytes is None else {"Content-Length": str(size_bytes)}
    expect = {"Expect": "100-continue"} if asks_first else {}
    return {**told, **expect, "Content-Type": "application/octet-stream"}


def part_headers(start: int, end: int, size_bytes: int) -> Mapping[str, str]:
    """Return the same of a part of a file: [start, end) of so many bytes (RFC 9110, 14.5)."""
    return {
        **body_headers(end - start, asks_first=False),
        "Content-Range": f"bytes {start}-{end - 1}/{size_bytes}",
    }


def only_new(access: WebAccess, file: FileTransfer) -> Mapping[str, str]:
    """Return what says that a file is to replace none; nothing for a partial one.

    Nor where an attempt before may have stored some of it under this name.
    """
    return _ONLY_NEW if _replaces_none(access, file) and not _was_tried_before(file) else {}


def _replaces_none(access: WebAccess, file: FileTransfer) -> bool:
    """Tell whether a file is stored under its final name at once, and nothing there is to be replaced."""
    return access.options.only_new and file.partial == file.final


def _was_tried_before(file: FileTransfer) -> bool:
    """Tell whether an attempt before may have stored some of a file."""
    return bool(file.failures or file.was_begun or file.was_misfit or file.retried_sections)


def dated(access: WebAccess, file: FileTransfer) -> Mapping[str, str]:
    """Return what gives a file its modification time as it is stored, where a server takes that."""
    is_taken = access.speaks_dav and access.quirks and access.quirks.dates_files
    if file.modified_s is None or not is_taken:
        return {}
    date = date_of(file.modified_s)
    return {"Date": date} if date else {}
