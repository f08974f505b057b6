"""Storing parts of files by PUT with Content-Range, where a probe has shown that a server keeps the rest.

Parts are sent before those before them are answered, so that no round trip passes without data. The file
has to be there before: Apache removes one that a part has made where the connection ends within that part,
with all that others have put into it meanwhile.
"""

from collections import deque
from dataclasses import dataclass

from mpx.endpoints.web import headers
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.body import Body, FileBody
from mpx.endpoints.web.file_put import SHORT_BYTES, STORED_BPS, body_headers, part_headers
from mpx.endpoints.web.lanes import LaneSet, WebLane
from mpx.endpoints.web.refusals import REDIRECTS, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Piece
from mpx.errors import ConnectionLost, DestinationError, MpxError
from mpx.net import pacing, tcp

MOST_AHEAD = 8  # parts that are sent before the answer to one before them
_SPARED = 2  # requests that are left to a connection: it ends with the last of them


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """What became of a part: what a refusal means is the `error`, and `status` tells its kind."""

    piece: Piece
    status: int
    error: MpxError | None


class PartPut:
    """Stores parts, several after one another over one connection. For one worker's thread."""

    def __init__(self, access: WebAccess, lanes: LaneSet, bodies: FileBody, timeout_s: float) -> None:
        self._access, self._lanes, self._bodies, self._timeout_s = access, lanes, bodies, timeout_s
        self._sent: deque[Piece] = deque()  # that are not answered, with the one that is being sent
        self._is_sending = False  # the last of them
        self.is_cut_off = False  # the connection has ended, and what is under way is not stored
        self._left: int | None = None  # requests that the connection takes, as it said last; None: unknown

    @property
    def pieces(self) -> list[Piece]:
        """The parts that are under way, in their order."""
        return list(self._sent)

    def take_pieces(self) -> list[Piece]:
        """Return the parts that are under way, which are no more: their connection is closed."""
        pieces, self._is_sending, self.is_cut_off = list(self._sent), False, False
        self._sent.clear()
        return pieces

    @property
    def may_send(self) -> bool:
        """Whether the next part may be sent before an answer is read."""
        if not self._sent:
            return True
        is_long = self._left is None or self._left > len(self._sent) + _SPARED
        is_possible = self._access.pipelining.is_possible(self._access.origin)
        return len(self._sent) <= MOST_AHEAD and is_long and is_possible

    @property
    def has_answer(self) -> bool:
        """Whether the first part under way was answered, or will never be."""
        lane = self._lanes.get(self._access.origin)
        return bool(self._sent) and (lane is None or lane.http.incoming.look())

    def make(self, file: FileTransfer) -> bool:
        """Make the file, empty, of which parts are to be stored; raises what a refusal means.

        False where the server leads elsewhere: it was not tried there.
        """
        url = self._access.stored_as(file)
        lane = self._lane(is_idle=True)
        lane.http.send(self._access.request("PUT", url, body_headers(0, asks_first=False)))
        reply = self._read(lane, 0)
        if reply.status in REDIRECTS:
            return False
        if not is_success(reply):
            raise self._refused(reply, url)
        return True

    def send(self, piece: Piece, fd: int) -> None:
        """Send a part; raises as FileBody.send_part, and the piece is under way then, too."""
        file, start, end = piece.file, piece.start, piece.end
        is_first = not self._sent
        self._sent.append(piece)
        self._is_sending = True
        lane = self._lane(is_idle=is_first)
        heading = part_headers(start, end, file.size_bytes)
        lane.http.send(self._access.request("PUT", self._access.stored_as(file), heading))
        body = Body(lane, end - start)
        self._bodies.send_part(file, fd, body, start, end)
        body.end()
        self._is_sending = False

    def answer(self) -> PartAnswer:
        """Read the answer to the part that was sent first; what has been refused is under way no more."""
        piece = self._sent[0]
        url = self._access.stored_as(piece.file)
        lane = self._lanes.get(self._access.origin)
        if lane is None:
            raise ConnectionLost(f"{url.origin} ended the connection before it has answered")
        reply = self._read(lane, piece.end - piece.start)
        is_stored = is_success(reply)
        if is_stored and self._is_sending and len(self._sent) == 1:
            raise ConnectionLost(f"{url} is stored, says the server, before it was sent: {reply.status}")
        self._sent.popleft()
        return PartAnswer(piece, reply.status, None if is_stored else self._refused(reply, url))

    def lost(self) -> None:
        """Note that the connection was lost: a server that ends many early is sent nothing ahead any more."""
        lane = self._lanes.get(self._access.origin)
        if lane and len(self._sent) > 1:
            self._access.pipelining.ended(lane.http.origin, lane.http.answered)

    def _lane(self, *, is_idle: bool) -> WebLane:
        """Return the connection; one that the server has ended while it was idle is replaced."""
        origin = self._access.origin
        lane = self._lanes.get(origin)
        if lane and is_idle and not tcp.is_open(lane.http.socket):
            self._lanes.drop(origin)
        lane = self._lanes.to(origin)
        if not lane.http.answered:
            pacing.pace(lane.http.socket)
            self._left = None
        return lane

    def _read(self, lane: WebLane, size_bytes: int) -> HttpReply:
        incoming = lane.http.incoming
        incoming.timeout_s = self._timeout_s + size_bytes * 8 / STORED_BPS
        reply = lane.http.reply("PUT")
        reply.read(SHORT_BYTES)
        incoming.timeout_s = self._timeout_s
        self._left = headers.requests_left(reply.header("Keep-Alive"))
        if not reply.is_reusable:
            self._lanes.drop(lane.http.origin)
            self.is_cut_off = len(self._sent) > 1
            if self.is_cut_off:
                self._access.pipelining.ended(lane.http.origin, lane.http.answered)
        return reply

    def _refused(self, reply: HttpReply, url: WebUrl) -> MpxError:
        return self._access.refused(reply, url, "store", DestinationError)
