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
    InboundBlocked,
    IntegrityError,
    Interrupted,
    MpxError,
    NoSpace,
    SourceError,
    TransferTimeout,
)
from mpx.gridftp_download import Fan, Pull
from mpx.gridftp_listing import is_missing
from mpx.gridftp_session import Session, SessionOptions, reply_error
from mpx.gridftp_wire import Reply, command, port_command
from mpx.local import local_error
from mpx.location import Location
from mpx.mover import Move
from mpx.retry import Retry
from mpx.shelf import SMALLEST_PIECE, Pending, Piece, Shelf
from mpx.stream import StreamTotals

AHEAD_S = 0.5  # queued at the server, or 3 RTT: a retrieve that is queued cannot be called back
PIECE_S = 0.2  # one retrieve lasts about so long, or 1 RTT
FIRST_PIECE = 512 * 1024
FIRST_AHEAD = 4 * 1024 * 1024
LARGEST_PIECE = 256 * 1024 * 1024
MOST_AHEAD = 64  # retrieves
TICK_S = 0.02
STALL_S = 5.0
INBOUND_S = 10.0  # a server that has not connected to us by then never will


class _OutOfStep(ConnectionLost):
    """A retrieve was refused, so connections and those queued behind it do not match any more."""


class DownloadLane(threading.Thread):
    """One session that retrieves pieces of files."""

    def __init__(
        self,
        number: int,
        location: Location,
        options: SessionOptions,
        work: Work,
        shelf: Shelf,
        others: Callable[["DownloadLane"], list[Pending]],
        may_switch: Callable[[], bool],
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
        self._may_switch = may_switch  # so that not all sessions change their connections at once
        self._session: Session | None = None
        self._listener: socket.socket | None = None
        self._fans: list[Fan] = []  # the last one is current; earlier ones still have retrieves to finish
        self._renew = False
        self._pulls: deque[Pull] = deque()
        self._past = StreamTotals()
        self._counting = threading.Lock()  # nothing is counted twice, or not at all, while it changes hands
        self._ever_opened = False
        self._measured = (time.monotonic(), 0)
        self._progress = (time.monotonic(), -1)
        self._answers: deque[Pull | str] = deque()  # what the next final replies are about
        self._rtt_s = 0.0

    # --- for the carrier -----------------------------------------------------------------------------

    def totals(self) -> StreamTotals:
        """Return the counters of all streams that there are and were."""
        sums = StreamTotals()
        with self._counting:
            sums.add(self._past)
            for fan in self._fans:
                sums.add(fan.totals())
        if not self._pulls:
            sums.streams = 0  # open, but idle
        return sums

    def renew(self) -> None:
        """Replace the connections, from the next retrieve on."""
        self._renew = True

    def under_way(self) -> list[Pending]:
        """Return the retrieves that this session still has to bring, and when it will have."""
        before, pending = 0, []
        for pull in list(self._pulls):
            before += pull.move.missing_within(pull.start, pull.end).size
            pending.append(Pending(pull, before / max(self.goodput, 1.0)))
        return pending

    def cut(self) -> None:
        """Reset everything; the lane's thread ends soon."""
        session = self._session
        if session:
            session.abort()
        for fan in list(self._fans):
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
                except InboundBlocked:
                    raise
                except (ConnectionLost, TransferTimeout) as error:
                    self._drop()
                    if not self._ever_opened and self._number > 0:
                        work.note(f"no further session with {self.location.host}: {error}")
                        return
                    if self._past.bytes > brought or isinstance(error, _OutOfStep):
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
            for fan in self._fans:
                if fan.broken:
                    raise self._verdict(fan.broken)
            self._feed()
            if self._session:
                reply = self._session.poll_reply(TICK_S)
                while reply:
                    self._heard(reply)
                    reply = self._session.waiting_reply()
            else:
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
        room = max(self.goodput * max(AHEAD_S, 3 * self._rtt_s), FIRST_AHEAD) - waiting
        lines: list[bytes] = []
        target = self.target  # others change it meanwhile
        while target and room > 0 and len(self._pulls) < MOST_AHEAD:
            piece = self._next_piece()
            if piece is None:
                break
            if piece.start == piece.end:
                self._make_empty(piece.move)
                continue
            try:
                session = self._open_session()
            except MpxError:  # nobody else knows that it is to be brought
                self._shelf.give_back(piece.move, piece.start, piece.end)
                raise
            if not self._fans or (self._wants_fan_of(target) and self._may_switch()):
                lines += self._new_fan(target)
            pull = self._open(piece, self._fans[-1])
            if pull is None:
                continue
            pull.fan.add(pull)
            self._pulls.append(pull)
            self._answers.append(pull)
            name = session.name(piece.move.source)
            lines.append(command("ERET", "P", piece.start, piece.end - piece.start, name))
            room -= pull.size_bytes
        if lines and self._session:
            self._session.send(*lines)

    def _wants_fan_of(self, parallelism: int) -> bool:
        return self._renew or self._fans[-1].parallelism != parallelism

    @property
    def is_switching(self) -> bool:
        """Whether new connections replace old ones and nothing has come over them yet."""
        fans = list(self._fans)
        return len(fans) > 1 and fans[-1].totals().bytes == 0

    def _next_piece(self) -> Piece | None:
        work, shelf = self.work, self._shelf
        size = self.goodput * max(PIECE_S, self._rtt_s) if self.goodput else FIRST_PIECE
        size = int(min(max(size, SMALLEST_PIECE), LARGEST_PIECE))
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

    def _open(self, piece: Piece, fan: Fan) -> Pull | None:
        move = piece.move
        try:
            fd = move.open(move.partial, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if not move.is_claimed:  # else another session has brought what this one was to take over
                self._give_up(move, local_error(error, move.final, writing=True))
            return None
        return Pull(move, piece.start, piece.end, fd, fan)

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
        """Match a reply with the oldest command that has none."""
        if reply.is_preliminary:
            return
        if not self._answers:
            raise ConnectionLost(f"a reply without a command: {reply.code} {reply.text}")
        pull = self._answers.popleft()
        if isinstance(pull, str):
            if not reply.is_ok:
                raise reply_error(reply, f"{self.location.host} refuses our data port", ConnectionLost)
            return
        if reply.is_ok:
            pull.replied = True
            return
        error = reply_error(reply, f"{self.location.host} cannot send {pull.move.source}", SourceError)
        text = reply.text.lower()
        if is_missing(reply):
            error = SourceError(f"{pull.move.source} is gone: {reply.text}")
        elif isinstance(error, SourceError) and ("connect" in text or "callback failed" in text):
            error = ConnectionLost(str(error))
        if isinstance(error, ConnectionLost) and not self.work.inbound.is_set():
            error = InboundBlocked(str(error))
        if isinstance(error, NoSpace):
            error = SourceError(str(error))
        if error.may_retry:
            raise error
        self._give_up(pull.move, error)
        raise _OutOfStep(str(error))

    def _reap(self) -> None:
        while self._pulls and self._pulls[0].replied and self._pulls[0].is_done:
            pull = self._pulls.popleft()
            pull.fan.forget(pull)
            while self._fans[0] is not pull.fan:
                self._retire_fan(self._fans[0])
            move = pull.move
            self._measure()
            if pull.is_short:
                move.close()
                self._give_up(
                    move, IntegrityError(f"{move.source} became shorter while it was copied; copy it again")
                )
                continue
            whole = move.claim_whole()
            move.close()
            if whole:
                self.work.whole(move)
            elif move.todo_bytes:
                self._shelf.put_back(move)  # some of it came damaged, and is to come again

    def _measure(self) -> None:
        now, passed = time.monotonic(), self.totals().bytes
        since, before = self._measured
        if now - since > 0.1:
            rate = (passed - before) / (now - since)
            self.goodput = rate if not self.goodput else 0.5 * self.goodput + 0.5 * rate
            self._measured = now, passed

    def _watch(self) -> None:
        """Raise TransferTimeout when what is under way does not move; drop what others have brought."""
        now, passed = time.monotonic(), self.totals().bytes
        if not self._pulls:
            self._progress = now, -1
            return
        since, before = self._progress
        if passed != before:
            self._progress = now, passed
            return
        silent_s = now - since
        needless = all(pull.move.has_arrived(pull.start, pull.end) for pull in self._pulls)
        if needless and silent_s > 1.0:
            raise ConnectionLost("what this session was to bring has come another way")
        if silent_s < STALL_S:
            return
        limit = self._options.timeout_s
        if not self._fans[0].accepted:
            limit = min(limit, INBOUND_S + 3 * self._rtt_s)
        if self._others(self):
            limit = min(limit, STALL_S)
        if silent_s > limit:
            if not self.work.inbound.is_set():
                raise InboundBlocked(f"{self.location.host} cannot connect to our data port")
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
            self._rtt_s = session.rtt_s or 0.0
            mode = session.call(command("MODE", "E"))
            if not mode.is_ok:
                raise ConnectionLost(f"{session.peer} refuses MODE E: {mode.text}")
            host = self.work.options.data_address or session.local_host
            self._listener = tcp.listen(host, self.work.listen_ports)
            accepting = threading.Thread(
                target=self._accept, args=(self._listener,), name="mpx-accept", daemon=True
            )
            accepting.start()
            self._progress = time.monotonic(), -1  # its time to bring something begins now
            self._ever_opened = True
        return self._session

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the listener was closed
            waiting = [fan for fan in list(self._fans) if fan.accepted < fan.parallelism]
            if waiting:
                waiting[0].accept(connection)  # the server opens one fan after the other
            else:
                connection.close()

    def _new_fan(self, parallelism: int) -> list[bytes]:
        """Replace the connections; return the commands that make the server open `parallelism` others.

        They are queued behind the retrieves under way, which the old connections still serve.
        """
        assert self._listener is not None
        host, port = self._listener.getsockname()[:2]
        if self._fans:
            self.goodput *= parallelism / self._fans[-1].parallelism
        self._renew = False
        self._fans.append(Fan(self.work, parallelism))
        self._answers.extend(["fan", "fan"])
        return [
            command("OPTS", "RETR", f"Parallelism={parallelism},{parallelism},{parallelism};"),
            port_command((str(host), int(port))),
        ]

    def _retire_fan(self, fan: Fan) -> None:
        fan.cut()
        fan.join()
        with self._counting:
            self._past.add(fan.totals())
            self._past.streams = 0
            self._fans.remove(fan)

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
        for fan in list(self._fans):
            self._retire_fan(fan)
        while self._pulls:
            pull = self._pulls.popleft()
            self._shelf.give_back(pull.move, pull.start, pull.end)
            whole = pull.move.claim_whole()
            pull.move.close()
            if whole:
                self.work.whole(pull.move)
        self._answers.clear()
