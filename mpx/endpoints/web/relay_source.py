"""The source of a relay: parts of files, or whole ones, by GET; small files several at once."""

from collections.abc import Callable, Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.answers import Answers
from mpx.endpoints.web.fetch import FIRST_PIECE, WebFetch
from mpx.endpoints.web.lanes import WebLane
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.relay_end import AT_ONCE, MOST_FILES, WebRelayEnd
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Put, Relayed
from mpx.engine.stream import BUFFER_BYTES
from mpx.errors import ConnectionLost, MpxError, TransferTimeout

_DRAINED_BYTES = 256 * 1024  # of a body that nobody wants any more; a longer one costs the connection


class WebRelaySource(WebRelayEnd):
    """See RelaySource."""

    def __init__(
        self, access: WebAccess, context: CarrierContext, answers: Answers, pipelining: Pipelining
    ) -> None:
        """`answers`, `pipelining`: all sources of a copy share them."""
        super().__init__(access, context, pipelining, "sink")
        self._answers = answers
        self._under_way: WebFetch | None = None  # whose answer was not read to its end
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    @property
    def files_at_once(self) -> int:
        """See RelayEnd."""
        return MOST_FILES if self._pipelining.is_possible(self._access.origin) else 1

    def receive(self, piece: Piece, store: Callable[[Pull], Relayed], *, is_whole: bool) -> Relayed:
        """See RelaySource. Where a file ends, the head of each answer says."""
        is_all = is_whole or (piece.start == 0 and piece.end == piece.file.size_bytes)
        fetch = self._begun(piece)
        if fetch is None:
            fetch = self._fetch(piece, piece.start, is_whole=is_all)
            self._ask(fetch)
        first = fetch
        return store(lambda put: self._pass_on(piece, first, put))

    def _pass_on(self, piece: Piece, fetch: WebFetch, put: Put) -> Relayed:
        """Give all that comes to `put`; what a server does not send at once is asked for behind that."""
        limiter = self._context.limiter
        while True:
            while size := fetch.read(self._buffer[: limiter.piece(BUFFER_BYTES)]):
                put(fetch.position - size, self._buffer[:size])
            self._end(fetch)
            if fetch.is_whole or fetch.position < fetch.end or fetch.end >= piece.end:
                return Relayed(fetch.position - piece.start, is_ended=True)
            fetch = self._fetch(piece, fetch.end, is_whole=False)
            self._ask(fetch)

    def finish(self, piece: Piece, came: Relayed) -> None:
        """See RelaySource. What was not all has been told."""

    def settle(self) -> bool:
        """See RelayEnd. A connection that brings much that nobody wants is closed."""
        fetch, self._under_way = self._under_way, None
        if fetch is None or (lane := self._lanes.get(fetch.at.origin)) is None:
            return True
        try:
            if fetch.left_bytes <= _DRAINED_BYTES and fetch.reply is not None:
                fetch.reply.read(_DRAINED_BYTES)
        except (ConnectionLost, TransferTimeout):
            pass
        self._leave(lane, fetch.reply)
        return True

    # --- one answer ----------------------------------------------------------------------------------

    def _fetch(self, piece: Piece, start: int, *, is_whole: bool) -> WebFetch:
        """Make a fetch of all of a piece from an offset on."""
        url = self._access.url_of(piece.file.source)
        fetch = WebFetch(piece.file, start, piece.end, url, is_whole=is_whole)
        fetch.at = self._access.leads_to(url)
        return fetch

    def _begun(self, piece: Piece) -> WebFetch | None:
        """Return the fetch of the beginning of a file which was asked for when that was described."""
        file = piece.file
        begun = self._access.take_begun(self._access.url_of(file.source))
        if begun is None:
            return None
        end = min(FIRST_PIECE, file.size_bytes)
        # What follows a part may be of another replica.
        is_part = end < file.size_bytes and self._answers.whole_files
        if piece.start or piece.end < end or file.is_streamed or is_part or not self._lanes.is_free:
            begun.connection.close()
            return None
        fetch = WebFetch(file, 0, end, begun.url, is_whole=False)
        self._lanes.adopt(begun.connection)
        return fetch if self._judge(fetch, begun.reply) is None else None

    def _ask(self, fetch: WebFetch) -> None:
        """Ask, and follow redirects, until the data come; raises what other answers mean."""
        while to := self._judge(fetch, self._answer(fetch)):
            fetch.at = to

    def _answer(self, fetch: WebFetch) -> HttpReply:
        """Ask, and read the head of the answer; once more where a connection that was kept had ended."""
        http = self._lanes.to(fetch.at.origin).http
        was_used = http.answered > 0
        try:
            self._lanes.ask(fetch)
            return http.reply("GET")
        except ConnectionLost:
            if not was_used or http.incoming.has_some:
                raise
        self._lanes.drop(fetch.at.origin)
        self._lanes.ask(fetch)
        return self._lanes.to(fetch.at.origin).http.reply("GET")

    def _judge(self, fetch: WebFetch, reply: HttpReply) -> WebUrl | None:
        """Decide what an answer means: None where the data come, a URL to ask next; raises the rest."""
        fate = self._answers.judge(fetch, reply)
        if fate is None:
            fetch.reply, self._under_way = reply, fetch
            return None
        if (lane := self._lanes.get(fetch.at.origin)) is not None:
            reply.read(_DRAINED_BYTES)
            self._leave(lane, reply)
        if isinstance(fate, MpxError):
            raise fate
        return fate

    def _end(self, fetch: WebFetch) -> None:
        """Keep the connection of an answer that was read to its end, if it lasts."""
        self._under_way = None
        if (lane := self._lanes.get(fetch.at.origin)) is not None:
            self._leave(lane, fetch.reply)

    def _leave(self, lane: WebLane, reply: HttpReply | None) -> None:
        """Close a connection where nothing more can be asked over it."""
        if reply is None or not reply.is_reusable:
            self._lanes.drop(lane.http.origin)

    # --- small files ---------------------------------------------------------------------------------

    def fetch(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """See RelaySource. All of a server are asked for ahead of their answers, where it takes that."""
        fetches = [self._fetch(piece, 0, is_whole=True) for piece in pieces]
        contents: dict[WebFetch, bytes] = {}
        waiting = fetches
        while waiting:
            origin = waiting[0].at.origin
            others = [each for each in waiting if each.at.origin != origin]
            waiting = others + self._fetch_ahead(
                [each for each in waiting if each.at.origin == origin], contents
            )
        return [contents.get(fetch) for fetch in fetches]

    def _fetch_ahead(self, fetches: Sequence[WebFetch], contents: dict[WebFetch, bytes]) -> list[WebFetch]:
        """Fetch files of one server; return those that are to be asked for anew, or elsewhere.

        Those that are refused are left out. Raises ConnectionLost and the like.
        """
        origin = fetches[0].at.origin
        lane = self._lanes.to(origin)
        ahead = AT_ONCE if self._pipelining.is_possible(origin) else 1
        was_used, asked = lane.http.answered > 0, 0
        elsewhere: list[WebFetch] = []
        for done, fetch in enumerate(fetches):
            try:
                while asked < min(done + ahead, len(fetches)):
                    self._lanes.ask(fetches[asked])
                    asked += 1
                is_ahead = done > 0 and ahead > 1
                reply = self._pipelining.reply(lane.http, "GET") if is_ahead else lane.http.reply("GET")
            except ConnectionLost:
                if not (done or was_used) or lane.http.incoming.has_some:
                    raise
                self._break(lane, is_early=asked > 1)
                return [*elsewhere, *fetches[done:]]
            if asked > done + 1 and self._answers.is_of_another(fetch, reply):
                self._pipelining.refuse(lane.http.origin)  # which answers in another order than it is asked
                self._lanes.drop(lane.http.origin)
                return [*elsewhere, *fetches[done:]]
            if (to := self._content(fetch, reply, contents)) is not None:
                fetch.at = to
                elsewhere.append(fetch)
            if not reply.is_reusable:
                self._break(lane, is_early=asked > done + 1)
                return [*elsewhere, *fetches[done + 1 :]]
        return elsewhere

    def _content(self, fetch: WebFetch, reply: HttpReply, contents: dict[WebFetch, bytes]) -> WebUrl | None:
        """Read an answer; return where it leads, if it does."""
        fate = self._answers.judge(fetch, reply)
        if fate is not None:
            reply.read(_DRAINED_BYTES)
            return None if isinstance(fate, MpxError) else fate
        fetch.reply = reply
        content = bytearray()
        while size := fetch.read(self._buffer):
            content += self._buffer[:size]
        contents[fetch] = bytes(content)
        return None

    def _break(self, lane: WebLane, *, is_early: bool) -> None:
        """Close a connection that does not last; `is_early`: with requests that were not answered."""
        if is_early:
            self._pipelining.ended(lane.http.origin, lane.http.answered)
        self._lanes.drop(lane.http.origin)
