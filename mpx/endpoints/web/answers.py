"""What the answer to a GET means: data, another place to ask, or an error."""

from mpx.endpoints.web import headers
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import MOST_REDIRECTS, redirected
from mpx.endpoints.web.fetch import FileTags, WebFetch
from mpx.endpoints.web.refusals import REDIRECTS, is_success
from mpx.endpoints.web.reply import Reply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.carrier import CarrierContext
from mpx.engine.source_change import why_elsewhere
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, OffsetsUnproven, SourceError

_PARTIAL = 206
_NO_SUCH_RANGE = 416


class Answers:
    """What the workers of a copy share. For any thread."""

    def __init__(self, access: WebAccess, context: CarrierContext) -> None:
        self._access = access
        self._supervisor = context.supervisor
        self._tags = FileTags()

    def judge(self, fetch: WebFetch, reply: Reply) -> WebUrl | MpxError | None:
        """Decide on an answer: None where its body is what was asked for, a URL to ask next, or an error.

        An error is of this file. Raises what concerns all: OffsetsUnproven where the server sends no parts,
        AuthenticationError, ConnectionLost.
        """
        if reply.status in REDIRECTS:
            return self._redirected(fetch, reply)
        if reply.status == _PARTIAL and not fetch.is_whole:
            return self._tags.why_another(fetch.file, fetch.at.origin, reply) or self._check_part(
                fetch, reply
            )
        if is_success(reply):
            return self._check_whole(fetch, reply)
        if reply.status == _NO_SUCH_RANGE:
            what = f"there is nothing from {fetch.start} on, of {fetch.file.size_bytes} in all"
            return self._elsewhere(fetch, what)
        if fetch.at != fetch.url and self._access.forget_moved(fetch.url):
            return fetch.url  # what a redirect leads to may be good for some time only
        error = self._access.refused(reply, fetch.at, "send", SourceError)
        if isinstance(error, (AuthenticationError, ConnectionLost)) or error.may_retry:
            raise error
        return error

    def _redirected(self, fetch: WebFetch, reply: Reply) -> WebUrl | MpxError:
        fetch.hops += 1
        if fetch.hops > MOST_REDIRECTS:
            return SourceError(f"{fetch.file.named()}: the server leads from one URL to the next without end")
        to = redirected(reply, fetch.at)
        assert to is not None
        self._access.moved(fetch.url, to)
        return to

    def _check_part(self, fetch: WebFetch, reply: Reply) -> MpxError | None:
        file = fetch.file
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

    def _check_whole(self, fetch: WebFetch, reply: Reply) -> MpxError | None:
        file = fetch.file
        if not fetch.is_whole:
            raise OffsetsUnproven(f"{file.source}: all of it comes where a part was asked for")
        if another := self._tags.why_another(file, fetch.at.origin, reply):
            return another
        if not file.is_streamed and reply.size_bytes not in (None, file.size_bytes):
            return self._elsewhere(fetch, f"it has {reply.size_bytes} bytes, and had {file.size_bytes}")
        return None

    def _elsewhere(self, fetch: WebFetch, what: str) -> MpxError:
        error = why_elsewhere(self._supervisor.describe(fetch.file.source), fetch.file, what)
        if isinstance(error, OffsetsUnproven):
            raise error
        return error
