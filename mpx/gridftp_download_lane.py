"""Downloads in MODE E, the sessions: each is fed with partial retrieves, about a second ahead.

The server cannot add connections to a running retrieve, so the number of streams changes by sessions:
a further one is opened beside the others, an unneeded one is not fed any more. Only when there are as
many sessions as allowed does each get more connections, one session at a time.
"""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from mpx import tcp
from mpx.carrier import Work
from mpx.errors import (
    ConnectionLost,
    IntegrityError,
    Interrupted,
    MpxError,
    NoSpace,
    SourceError,
    TransferTimeout,
)
from mpx.gridftp import is_missing
from mpx.gridftp_download import Fan, Pull
from mpx.gridftp_session import Session, SessionOptions, reply_error
from mpx.gridftp_wire import Reply, command, port_command
from mpx.local import local_error
from mpx.location import Location
from mpx.mover import Move
from mpx.retry import Retry
from mpx.shelf import Piece, Shelf
from mpx.stream import StreamTotals

AHEAD_S = 1.0  # queued at the server: a retrieve that is queued cannot be called back
PIECE_S = 0.5  # one retrieve lasts about so long
FIRST_PIECE = 512 * 1024
FIRST_AHEAD = 4 * 1024 * 1024
SMALLEST_PIECE = 256 * 1024
LARGEST_PIECE = 256 * 1024 * 1024
MOST_AHEAD = 64  # retrieves
TICK_S = 0.02
STALL_S = 5.0


class DownloadLane(threading.Thread):
    """One session that retrieves pieces of files."""

    def __init__(
        self,
        number: int,
        location: Location,
        options: SessionOptions,
        work: Work,
        shelf: Shelf,
        others: Callable[["DownloadLane"], list[tuple[Pull, float]]],
    ) -> None:
        super().__init__(name=f"mpx-download-{number}", daemon=True)
        self.location = location
        self.work = work
        self.target = 0  # connections; 0: do not take anything
        self.goodput = 0.0  # bytes/s, smoothed
        self._number = number
        self._options = options
        self._shelf = shelf
        self._others = others
        self._session: Session | None = None
        self._listener: socket.socket | None = None
        self._fan: Fan | None = None
        self._renew = False
        self._pulls: deque[Pull] = deque()
        self._past = StreamTotals()
        self._ever_opened = False
        self._measured = (time.monotonic(), 0)
        self._progress = (time.monotonic(), -1)
        self._replies_to_skip = 0  # answers to the commands of a new fan

    # --- for the carrier -----------------------------------------------------------------------------

    def totals(self) -> StreamTotals:
        """Return the counters of all streams that there are and were."""
        sums = StreamTotals()
        sums.add(self._past)
        fan = self._fan
        if fan:
            sums.add(fan.totals())
        return sums

    def renew(self) -> None:
        """Replace the connections once what is queued has arrived."""
        self._renew = True

    def under_way(self) -> list[tuple[Pull, float]]:
        """Return the retrieves that this session still has to bring, with its goodput."""
        return [(pull, self.goodput) for pull in list(self._pulls) if not pull.is_done]

    def cut(self) -> None:
        """Reset everything; the lane's thread ends soon."""
        session, fan = self._session, self._fan
        if session:
            session.abort()
        if fan:
            fan.cut()

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Retrieve until the pool is settled or the copy stops."""
        work = self.work
        retry = Retry(work.options.retries, work.failure.cancel)
        try:
            while not work.pool.is_settled:
                if work.failure.cancel.is_set():
                    break
                brought = self._past.bytes
                try:
                    self._serve()
                except (ConnectionLost, TransferTimeout) as error:
                    self._drop()
                    if not self._ever_opened and self._number > 0:
                        work.note(f"no further session with {self.location.host}: {error}")
                        return
                    if self._past.bytes > brought:
                        retry.progressed()
                    retry.again(error)
                    work.note(f"trying again after: {error}")
        except Interrupted:
            pass
        except MpxError as error:
            work.failure.set(error)
        except Exception as error:
            work.failure.set(MpxError(f"unexpected: {type(error).__name__}: {error}"))
        finally:
            self._drop()

    def _serve(self) -> None:
        """Feed the session and reap what it brings; returns when there is nothing left for it."""
        work = self.work
        while not work.pool.is_settled:
            if work.failure.cancel.is_set():
                raise Interrupted("stopped")
            fan = self._fan
            if fan and fan.broken:
                raise self._verdict(fan.broken)
            self._feed()
            if self._session and (reply := self._session.poll_reply(TICK_S)):
                self._heard(reply)
            elif not self._session:
                work.failure.cancel.wait(TICK_S)
            self._reap()
            self._watch()

    def _verdict(self, error: MpxError) -> MpxError:
        """Read what the server says of a broken transfer before judging it."""
        session = self._session
        deadline = time.monotonic() + 2.0
        while session and error.may_retry and time.monotonic() < deadline:
            reply = session.poll_reply(0.1)
            if reply and not reply.is_preliminary and not reply.is_ok:
                said = reply_error(reply, f"{session.peer} stopped sending", ConnectionLost)
                return said if isinstance(said, NoSpace) else ConnectionLost(str(said))
        return error

    # --- feeding -------------------------------------------------------------------------------------

    def _feed(self) -> None:
        """Queue retrieves until about a second's worth is ahead."""
        waiting = sum(pull.size_bytes for pull in self._pulls if not pull.is_done)
        room = max(self.goodput * AHEAD_S, FIRST_AHEAD) - waiting
        lines: list[bytes] = []
        fan = self._fan
        wants_new_fan = fan is None or self._renew or fan.parallelism != self.target
        while self.target and room > 0 and len(self._pulls) < MOST_AHEAD:
            if wants_new_fan and self._pulls:
                break  # first let the queue run dry; the other sessions go on
            piece = self._next_piece()
            if piece is None:
                break
            if piece.start == piece.end:
                self._make_empty(piece.move)
                continue
            pull = self._open(piece)
            if pull is None:
                continue
            session = self._open_session()
            if wants_new_fan:
                lines += self._new_fan()
                wants_new_fan = False
            assert self._fan is not None
            self._fan.add(pull)
            self._pulls.append(pull)
            lines.append(
                command("ERET", "P", piece.start, piece.end - piece.start, session.name(piece.move.source))
            )
            room -= pull.size_bytes
        if lines and self._session:
            self._session.send(*lines)

    def _next_piece(self) -> Piece | None:
        work, shelf = self.work, self._shelf
        size = int(min(max(self.goodput * PIECE_S, SMALLEST_PIECE), LARGEST_PIECE)) or FIRST_PIECE
        tail = shelf.todo_bytes // 4
        if tail:
            size = min(size, max(tail, SMALLEST_PIECE))
        allowed = work.gate.take(size)
        if not allowed:
            return None
        piece = shelf.take(allowed)
        if piece is None:
            work.gate.give_back(allowed)
            if not self._pulls and not work.gate.is_shut:
                return shelf.take_over(self._others(self))
            return None
        work.gate.give_back(allowed - (piece.end - piece.start))
        return piece

    def _open(self, piece: Piece) -> Pull | None:
        move = piece.move
        try:
            fd = move.open(move.partial, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            self._give_up(move, local_error(error, move.final, writing=True))
            return None
        return Pull(move, piece.start, piece.end, fd)

    def _make_empty(self, move: Move) -> None:
        try:
            fd = move.open(move.partial, os.O_RDWR | os.O_CREAT)
            if move.size_bytes == 0:
                os.ftruncate(fd, 0)
            move.close()
        except OSError as error:
            self._give_up(move, local_error(error, move.final, writing=True))
            return
        if move.claim_whole():
            self.work.whole(move)

    def _give_up(self, move: Move, error: MpxError) -> None:
        if isinstance(error, NoSpace):
            raise error
        if move.claim_given_up():
            self.work.given_up(move, error)

    # --- reaping -------------------------------------------------------------------------------------

    def _heard(self, reply: Reply) -> None:
        """Match a reply with the oldest retrieve that has none."""
        if reply.is_preliminary:
            return
        if self._replies_to_skip:
            self._replies_to_skip -= 1
            if not reply.is_ok:
                raise reply_error(reply, f"{self.location.host} refuses our data port", ConnectionLost)
            return
        pull = next((pull for pull in self._pulls if not pull.replied), None)
        if pull is None:
            raise ConnectionLost(f"a reply without a command: {reply.code} {reply.text}")
        if reply.is_ok:
            pull.replied = True
            return
        error = reply_error(reply, f"{self.location.host} cannot send {pull.move.source}", SourceError)
        text = reply.text.lower()
        if is_missing(reply):
            error = SourceError(f"{pull.move.source} is gone: {reply.text}")
        elif isinstance(error, SourceError) and ("connect" in text or "callback failed" in text):
            error = ConnectionLost(str(error))
        if isinstance(error, NoSpace):
            error = SourceError(str(error))
        if error.may_retry:
            raise error
        self._give_up(pull.move, error)
        raise ConnectionLost(str(error))  # connections and retrieves are out of step: start the session anew

    def _reap(self) -> None:
        fan = self._fan
        while self._pulls and fan and self._pulls[0].replied and self._pulls[0].is_done:
            pull = self._pulls.popleft()
            fan.forget(len(self._pulls))
            move = pull.move
            self._measure(fan)
            if not move.has_arrived(pull.start, pull.end):
                move.close()
                self._give_up(
                    move, IntegrityError(f"{move.source} became shorter while it was copied; copy it again")
                )
                continue
            whole = move.claim_whole()
            move.close()
            if whole:
                self.work.whole(move)

    def _measure(self, fan: Fan) -> None:
        now, passed = time.monotonic(), fan.totals().bytes + self._past.bytes
        since, before = self._measured
        if now - since > 0.1:
            rate = (passed - before) / (now - since)
            self.goodput = rate if not self.goodput else 0.5 * self.goodput + 0.5 * rate
            self._measured = now, passed

    def _watch(self) -> None:
        """Raise TransferTimeout when what is under way does not move; drop what others have brought."""
        if not self._pulls or not self._fan:
            self._progress = time.monotonic(), -1
            return
        passed = self._fan.totals().bytes
        now = time.monotonic()
        since, before = self._progress
        if passed != before:
            self._progress = now, passed
            return
        silent_s = now - since
        needless = all(pull.move.has_arrived(pull.start, pull.end) for pull in self._pulls)
        if needless and silent_s > 1.0:
            raise ConnectionLost("what this session was to bring has come another way")
        limit = self._options.timeout_s
        if self._others(self):
            limit = min(limit, STALL_S)
        if silent_s > limit:
            raise TransferTimeout(
                f"nothing has come from {self.location.host} for {limit:g} s while fetching "
                f"{self._pulls[0].move.source}; can it reach our data port "
                f"{self._listener and tcp.show(self._listener.getsockname()[:2])}?"
            )

    # --- the session ---------------------------------------------------------------------------------

    def _open_session(self) -> Session:
        if self._session is None:
            session = Session(self.location, self._options)
            self._session = session
            session.login()
            mode = session.call(command("MODE", "E"))
            if not mode.is_ok:
                raise ConnectionLost(f"{session.peer} refuses MODE E: {mode.text}")
            host = self.work.options.data_address or session.local_host
            self._listener = tcp.listen(host, self.work.listen_ports)
            accepting = threading.Thread(
                target=self._accept, args=(self._listener,), name="mpx-accept", daemon=True
            )
            accepting.start()
            self._ever_opened = True
        return self._session

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the listener was closed
            fan = self._fan
            if fan is None:
                connection.close()
            else:
                fan.accept(connection)

    def _new_fan(self) -> list[bytes]:
        """Replace the connections; return the commands that make the server open `target` others."""
        if self._fan:
            self._retire_fan(self._fan)
        assert self._listener is not None
        host, port = self._listener.getsockname()[:2]
        self._renew = False
        self._fan = Fan(self.work, self.target)
        self._replies_to_skip = 2
        return [
            command("OPTS", "RETR", f"Parallelism={self.target},{self.target},{self.target};"),
            port_command((str(host), int(port))),
        ]

    def _retire_fan(self, fan: Fan) -> None:
        fan.cut()
        fan.join()
        self._past.add(fan.totals())
        self._past.streams = 0
        self._fan = None

    def _drop(self) -> None:
        """Give up the session; what it was to bring goes back."""
        if self._session:
            self._session.abort()
            self._session.close()
            self._session = None
        if self._listener:
            tcp.reset(self._listener)
            self._listener.close()
            self._listener = None
        if self._fan:
            self._retire_fan(self._fan)
        while self._pulls:
            pull = self._pulls.popleft()
            pull.move.give_back(pull.start, pull.end)
            whole = pull.move.claim_whole()
            pull.move.close()
            if whole:
                self.work.whole(pull.move)
        self._replies_to_skip = 0
