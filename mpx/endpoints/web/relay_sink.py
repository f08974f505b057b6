"""The sink of a relay: whole files by PUT; small files several at once."""

from collections.abc import Mapping, Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import Body, BodyCut
from mpx.endpoints.web.file_put import SHORT_BYTES, FilePut, body_headers, dated, only_new
from mpx.endpoints.web.lanes import WebLane
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.relay_end import AT_ONCE, MOST_FILES, WebRelayEnd
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.engine.relay import Pull, Relayed
from mpx.engine.retry import ServerFailed
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, TransferTimeout


class WebRelaySink(WebRelayEnd):
    """See RelaySink. It stores no parts."""

    def __init__(self, access: WebAccess, context: CarrierContext, pipelining: Pipelining) -> None:
        """`pipelining`: all sinks of a copy share it."""
        super().__init__(access, context, pipelining, "source")
        self._put = FilePut(access, self._lanes, context.options.timeout_s)

    @property
    def files_at_once(self) -> int:
        """See RelayEnd."""
        return MOST_FILES if self._stores_ahead else 1

    @property
    def _stores_ahead(self) -> bool:
        """Whether files may be sent before the answers to those before: not where the server leads on."""
        return not self._put.leads_on and self._pipelining.is_possible(self._access.origin)

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:  # noqa: ARG002  it always is
        """See RelaySink."""
        came = Relayed(0, is_ended=False)

        def send(body: Body) -> None:
            nonlocal came
            came = pull(lambda _, data: body.send(data))

        try:
            self._put.store(piece.file, send, is_repeatable=False)
        except ServerFailed as error:
            raise self._access.failures.judged(piece.file.final, error) from None
        except BodyCut:
            self._lanes.drop_all()  # so that it is no file
            return came._replace(is_stored=False)
        self._access.failures.over(piece.file.final)
        return came

    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """See RelaySink. Its answer has come."""

    def settle(self) -> bool:
        """See RelayEnd. A connection with a file under way is closed; another is opened when needed."""
        if self._put.is_under_way:
            self._lanes.drop_all()
        return True

    # --- small files ---------------------------------------------------------------------------------

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """See RelaySink. The first by itself shows whether the server leads on; then several at once.

        But where files are to replace none in place: each is looked for right before.
        """
        stored: list[bool] = []
        while len(stored) < len(contents):
            rest = contents[len(stored) :]
            looks = any(only_new(self._access, piece.file) for piece, _ in rest)
            if self._stores_ahead and not looks:
                stored += self._store_ahead(rest)
            else:
                stored.append(self._store_one(*rest[0]))
        return stored

    def _store_one(self, piece: Piece, content: bytes) -> bool:
        try:
            self._put.store(piece.file, lambda body: body.send(memoryview(content)), is_repeatable=True)
        except (AuthenticationError, ConnectionLost, TransferTimeout, Interrupted):
            raise
        except MpxError:
            return not self.settle()
        return True

    def _store_ahead(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """Store files over one connection as long as it lasts; tell of each that was answered.

        Raises ConnectionLost and the like.
        """
        lane = self._lanes.open_to(self._access.origin)
        was_used, asked = lane.http.answered > 0, 0
        stored: list[bool] = []
        try:
            while len(stored) < len(contents):
                while asked < min(len(stored) + AT_ONCE, len(contents)):
                    self._send(lane, contents[asked][0].file, contents[asked][1])
                    asked += 1
                reply = self._pipelining.reply(lane.http, "PUT") if stored else lane.http.reply("PUT")
                reply.read(SHORT_BYTES)
                stored.append(is_success(reply))
                if not reply.is_reusable:
                    break
            else:
                return stored
        except ConnectionLost:
            if not (stored or was_used):
                raise
        if asked > len(stored):
            self._pipelining.ended(lane.http.origin, lane.http.answered)
        self._lanes.drop(lane.http.origin)
        return stored

    def _send(self, lane: WebLane, file: FileTransfer, content: bytes) -> None:
        told = {**body_headers(len(content), asks_first=False), **dated(self._access, file)}
        headers = {**told, **self._proof_of(file, content)}
        url = self._access.stored_as(file)
        lane.offered_bytes += len(content)
        lane.http.send(self._access.request("PUT", url, headers), content)
        lane.passed_bytes += len(content)

    def _proof_of(self, file: FileTransfer, content: bytes) -> Mapping[str, str]:  # noqa: ARG002
        """Return the headers by which the server refuses bytes that changed on their way; HTTP has none."""
        return {}
