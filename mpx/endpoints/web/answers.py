"""What the answer to a GET means: data, another place to ask, or an error."""

import functools
from dataclasses import replace

from mpx.endpoints.web import headers
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.describe import info_of_head, plain_tag
from mpx.endpoints.web.dialogue import MOST_REDIRECTS, redirected
from mpx.endpoints.web.fetch import FileTags, WebFetch
from mpx.endpoints.web.refusals import MISSING, REDIRECTS, has_data, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.server_digests import NOT_COMPUTED, digests_told
from mpx.endpoints.web.url import WebUrl
from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import ServerFailed
from mpx.engine.source_change import changed, is_told_by_another_server, why_elsewhere
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, OffsetsUnproven, SourceError
from mpx.text import shown

_NO_CONTENT, _PARTIAL = 204, 206
_NO_SUCH_RANGE = 416
MOST_MISSES = 5  # answers that there is no such file, to one fetch of a file that is there when asked about
_MOST_SHOWN = 80  # characters of a header, in a message


class Answers:
    """What the workers of a copy share. For any thread."""

    def __init__(self, access: WebAccess, context: CarrierContext, *, whole_files: bool) -> None:
        """With `whole_files` each answer brings all of a file, anew."""
        self._access = access
        self.whole_files = whole_files
        self._supervisor = context.supervisor
        self._tags = FileTags()

    def is_of_another(self, fetch: WebFetch, reply: HttpReply) -> bool:
        """Tell whether an answer belongs to another request, as it does not look like one to this."""
        if fetch.at == fetch.url and is_success(reply) and not self._tags.is_as_listed(fetch.file, reply):
            return True
        if reply.status == _PARTIAL and not fetch.is_whole:
            try:
                return headers.content_range(reply.header("Content-Range"))[0] != fetch.start
            except headers.HeaderError:
                return False
        is_known = is_success(reply) and fetch.is_whole and not fetch.file.is_streamed
        return is_known and reply.size_bytes not in (None, fetch.file.size_bytes)

    def told_behind(self, fetch: WebFetch, about: HttpReply) -> FileInfo | None:
        """Return what an answer to HEAD tells of a file that was read, and keep its digest."""
        file = fetch.file
        if not is_success(about):
            if about.status in NOT_COMPUTED and fetch.at.origin == self._access.origin:
                self._access.server.lacks(file.sums.algorithm)
            return None
        if digest := digests_told(about).get(file.sums.algorithm):
            file.far_digest = file.size_bytes, digest
        info = info_of_head(about, about.told_bytes)
        return replace(info, tag=plain_tag(about.header("ETag"))) if fetch.at == fetch.url else info

    def judge(self, fetch: WebFetch, reply: HttpReply) -> WebUrl | MpxError | None:
        """Decide on an answer: None where its body is what was asked for, a URL to ask next, or an error.

        An error is of this file. Raises what concerns all: OffsetsUnproven where the server sends no parts,
        AuthenticationError, ConnectionLost.
        """
        if reply.status in REDIRECTS:
            return self._redirected(fetch, reply)
        file = fetch.file
        is_empty = reply.status == _NO_CONTENT and file.listed_bytes == 0
        if reply.status == _PARTIAL or has_data(reply) or is_empty:
            is_part = reply.status == _PARTIAL and not fetch.is_whole
            error = self._check_part(fetch, reply) if is_part else self._check_whole(fetch, reply)
            if error is None and (digest := self._access.digest_with(reply, file.sums.algorithm)):
                file.far_digest = file.size_bytes, digest
            self._access.failures.over(file.source)
            return error
        if reply.status == _NO_SUCH_RANGE:
            what = f"there is nothing from {fetch.start} on, of {fetch.file.size_bytes} in all"
            return self._elsewhere(fetch, what)
        if fetch.at != fetch.url and not fetch.is_led_anew:
            fetch.is_led_anew = True
            self._access.forget_moved(fetch.url, fetch.at)
            return fetch.url  # what a redirect leads to may be good for some time only
        error = self._access.refused(reply, fetch.at, "send", SourceError)
        if reply.status in MISSING:
            # One of several servers that share its name may not have it yet. It is asked about once: where
            # these take connections in turn, asking before each GET would lead all GETs to the same one.
            if fetch.misses < MOST_MISSES and (fetch.misses or self._is_there(file)):
                fetch.misses, fetch.hops = fetch.misses + 1, 0
                reply.leave_connection()
                return fetch.url
            if fetch.misses and file.arrived_bytes and self._is_there(file):
                raise ConnectionLost(
                    f"{error}, and is there when asked again: several servers may share its name"
                )
        if isinstance(error, ServerFailed):
            error = self._access.failures.judged(file.source, error)
        else:
            self._access.failures.over(file.source)
        if isinstance(error, (AuthenticationError, ConnectionLost)) or error.may_retry:
            raise error
        return error

    def _is_there(self, file: FileTransfer) -> bool:
        """Tell whether a file is what it was, where not all servers have it."""
        now = self._supervisor.describe(file.source, anew=True)
        return now is not None and not changed(now, file, file.size_bytes)

    def _redirected(self, fetch: WebFetch, reply: HttpReply) -> WebUrl | MpxError:
        fetch.hops += 1
        if fetch.hops > MOST_REDIRECTS:
            return SourceError(f"{fetch.file.named()}: the server leads from one URL to the next without end")
        to = redirected(reply, fetch.at)
        assert to is not None
        self._access.moved(fetch.url, to)
        return to

    def _check_part(self, fetch: WebFetch, reply: HttpReply) -> MpxError | None:
        file = fetch.file
        if another := self._why_another(fetch, reply):
            return another
        try:
            start, end, size_bytes = headers.content_range(reply.header("Content-Range"))
        except headers.HeaderError as error:
            raise OffsetsUnproven(f"{file.source}: a part that does not say which it is ({error})") from None
        if size_bytes not in (None, file.size_bytes):
            return self._elsewhere(fetch, f"it has {size_bytes} bytes, and had {file.size_bytes}")
        if start != fetch.start or end > fetch.end:
            raise OffsetsUnproven(
                f"{file.source}: {start} to {end} came, where {fetch.start} to {fetch.end} was asked for"
            )
        if reply.size_bytes not in (None, end - start):
            raise ConnectionLost(f"{fetch.at.origin} sends another number of bytes than it says")
        fetch.end = end
        return None

    def _check_whole(self, fetch: WebFetch, reply: HttpReply) -> MpxError | None:
        file = fetch.file
        if not fetch.is_whole:
            raise OffsetsUnproven(f"{file.source}: all of it comes where a part was asked for")
        if reply.status == _PARTIAL and not _is_all(reply):
            return SourceError(f"{file.named()}: the server sends a part of it where all was asked for")
        encoding = reply.header("Content-Encoding").lower()
        if encoding not in ("", "identity") and (
            reply.size_bytes is None or reply.size_bytes != file.listed_bytes
        ):
            return SourceError(
                f"{file.named()}: the server sends it encoded ({shown(encoding[:_MOST_SHOWN])}), although it "
                "was asked for as it is; have the server leave it as it is"
            )
        if another := self._why_another(fetch, reply):
            return another
        if not file.is_streamed and reply.size_bytes not in (None, file.size_bytes):
            return self._elsewhere(fetch, f"it has {reply.size_bytes} bytes, and had {file.size_bytes}")
        return None

    def _why_another(self, fetch: WebFetch, reply: HttpReply) -> MpxError | None:
        """As FileTags; OffsetsUnproven where several servers that share a name tell tags of their own.

        No part of it is taken from anybody then: it is read whole, from one of them.
        """
        file = fetch.file
        another = self._tags.why_another(file, fetch.at.origin, reply)
        if another is None or fetch.at != fetch.url:
            return another
        now = replace(info_of_head(reply, file.size_bytes), tag=plain_tag(reply.header("ETag")))
        tag, modified_s = self._tags.first(file, fetch.at.origin)
        describe = functools.partial(self._supervisor.describe, file.source, anew=True)
        if not is_told_by_another_server(now, file, plain_tag(tag), describe, modified_s):
            return another
        if not self.whole_files:
            raise self._tags.mixed(file)
        self._tags.begin(file, fetch.at.origin, reply)
        return None

    def _elsewhere(self, fetch: WebFetch, what: str) -> MpxError:
        error = why_elsewhere(self._supervisor.describe(fetch.file.source), fetch.file, what)
        if isinstance(error, OffsetsUnproven):
            raise error
        return error


def _is_all(reply: HttpReply) -> bool:
    """Tell whether a part is the whole file, as some send it where no part was asked for."""
    try:
        start, end, size_bytes = headers.content_range(reply.header("Content-Range"))
    except headers.HeaderError:
        return False
    return start == 0 and end == size_bytes
