"""Copies from one server of XRootD to another: each worker has one file after the other copied."""

import contextlib
import struct
import time
from collections.abc import Mapping

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.refusals import cannot_send, cannot_store, is_denied, is_missing, is_ok, reason
from mpx.endpoints.sftp.session import STOP_INTERVAL_S, SftpSession, extended, request
from mpx.endpoints.sftp.wire import Attributes, Described, Extended, Handle, Open, PacketKind, Reply
from mpx.endpoints.xrootd.lanes import XrootdLanes
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.marked_bytes import MarkedBytes
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, DestinationError, MpxError, NoSpace, ThirdPartyRefused, TransferTimeout
from mpx.units import counted, format_duration

MARKER_S = 3.0  # that pass until it is told how far a copy has come, at most
REMOVE_S = 10.0  # that a server has to remove what is left, when nobody waits for more
_COUNT = struct.Struct(">Q")


class XrootdPairWorker(SessionWorker):
    """Has whole files read by the destination; its session is with that."""

    def __init__(
        self,
        number: int,
        lanes: tuple[XrootdLanes, XrootdLanes],
        options: LaneOptions,
        context: CarrierContext,
        scheduler: RangeScheduler,
    ) -> None:
        """`lanes`: of the source, and of the destination."""
        super().__init__("pair", number, f"{lanes[0].name} and {lanes[1].name}", context)
        self.target = 0  # 1: take files; the carrier's decision (see SessionWorker)
        # Guarded by `guard`:
        self._bytes = MarkedBytes(MARKER_S)
        self._is_busy = False
        # This thread's own:
        self._source, self._destination = lanes
        self._options, self._scheduler = options, scheduler
        self._session: SftpSession | None = None  # replaced by this thread; others only cut it
        self._file: FileTransfer | None = None  # in hand
        self._left: FileTransfer | None = None  # the last of which an attempt may have left something
        self._told_bytes = 0  # of it

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. The library's word is all that there is."""
        shown_bytes = int(self._bytes.shown(time.monotonic()))
        return {DEFAULT_PATH: StreamTotals(streams=int(self._is_busy), bytes=shown_bytes)}

    def silent_s(self, path: str) -> None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. No data come over ours."""

    def cut(self) -> None:
        """See SessionWorker."""
        if session := self._session:
            session.abort()

    # --- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """See SessionWorker. Where the copy ends before its end, what was under way is removed."""
        super().run()
        if self._left is not None and self.context.failure.cancel.is_set():
            with contextlib.suppress(MpxError):
                self._remove(self._left)

    def step(self) -> bool:
        """See SessionWorker."""
        piece = self._scheduler.take_file() if self.target else None
        if piece is None:
            return False
        self._file, self._told_bytes = piece.file, 0
        self._busy(is_so=True)
        try:
            self._carry(piece.file)
        finally:
            self._busy(is_so=False)
        self._file = None
        self.retry.progressed()
        return True

    def _busy(self, *, is_so: bool) -> None:
        with self.guard:
            self._is_busy = is_so

    def _carry(self, file: FileTransfer) -> None:
        session = self.open_session()
        self._left = file
        reply = self._copied(session, file)
        if not is_ok(reply):
            self._refused(session, file, reply)
            return
        if file.retried_sections and (why := self._why_short(session, file)):
            self._scheduler.give_up(file, why)
            return
        self._left = None
        self._is_at(file.size_bytes)
        file.landed(0, file.size_bytes)
        if file.is_streamed:
            self._scheduler.ended(file, file.size_bytes)
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def _copied(self, session: SftpSession, file: FileTransfer) -> Reply:
        """Have a file copied, and return the answer; raises TransferTimeout where nothing more comes."""
        replies: list[Reply] = []
        source = self._source.url_of(file.source)
        fields = wire.name(file.partial), wire.text(source.encode())
        session.submit(extended(wire.COPY, *fields), replies.append)
        grown_s, patience_s = time.monotonic(), self._options.timeout_s + MARKER_S
        while not replies:
            session.pump(STOP_INTERVAL_S)
            if replies:
                break
            (told,) = session.ask([extended(wire.COPIED, wire.name(file.partial))], at_once=2)
            copied_bytes = _COUNT.unpack(told.content)[0] if isinstance(told, Extended) else 0
            if copied_bytes > self._told_bytes:
                grown_s = time.monotonic()
                self._is_at(copied_bytes)
            if time.monotonic() - grown_s > patience_s:
                raise TransferTimeout(
                    f"{self._destination.name} has read nothing more of {file.source} from "
                    f"{self._source.name} for {format_duration(patience_s)}"
                )
        return replies[0]

    def _is_at(self, size_bytes: int) -> None:
        """Take how much of a file has been copied."""
        with self.guard:
            self._bytes.add(time.monotonic(), size_bytes - self._told_bytes)
        self._told_bytes = size_bytes
        self.context.events.inbound.set()  # this way of copying works

    def _refused(self, session: SftpSession, file: FileTransfer, reply: Reply) -> None:
        """Give a file up; raises what concerns all, or may be tried again.

        What the destination would not store from us either is no reason for another way.
        """
        if is_missing(reply):
            self._scheduler.give_up(file, cannot_send(reply, self._source.name, file.source))
            return
        error = cannot_store(reply, self._destination.name, file.final, None)
        if isinstance(error, NoSpace):
            raise error
        is_first = not self.context.events.inbound.is_set()
        if is_first and not (is_denied(reply) and self._denies_us(session, file)):
            raise ThirdPartyRefused(
                f"{self._destination.name} cannot read {file.source} from {self._source.name}: "
                f"{reason(reply)}"
            )
        self._scheduler.give_up(file, error)

    def _why_short(self, session: SftpSession, file: FileTransfer) -> DestinationError | None:
        """Return what is wrong with a file of which the destination has stored less than it says, twice."""
        (told,) = session.ask([request(PacketKind.LSTAT, wire.name(file.partial))])
        stored_bytes = told.attributes.size_bytes if isinstance(told, Described) else None
        if stored_bytes is None or stored_bytes >= file.size_bytes:
            return None
        return DestinationError(
            f"{self._destination.name} says that it has copied {file.source}, and has stored {stored_bytes} "
            f"of {counted(file.size_bytes, 'byte')}, as where no space is left; look there"
        )

    @staticmethod
    def _denies_us(session: SftpSession, file: FileTransfer) -> bool:
        """Tell whether the destination does not permit us to store a file, from wherever it comes.

        Not of one that is there by its final name, which this might change.
        """
        if file.partial == file.final:
            return False
        flags = wire.u32(Open.WRITE | Open.CREATE)
        asked = wire.name(file.partial), flags, wire.attributes(Attributes())
        (opened,) = session.ask([request(PacketKind.OPEN, *asked)])
        if not isinstance(opened, Handle):
            return is_denied(opened)
        session.ask([request(PacketKind.CLOSE, opened.value)])
        session.ask([request(PacketKind.REMOVE, wire.name(file.partial))])
        return False

    def _remove(self, file: FileTransfer) -> None:
        """Remove what an attempt has left, which is ours, as its name tells."""
        if file.partial == file.final:
            return
        options = LaneOptions(REMOVE_S, REMOVE_S, lambda: False)
        with contextlib.closing(self._destination.open(options)) as session:
            session.ask([request(PacketKind.REMOVE, wire.name(file.partial))])

    # --- the session, and what becomes of it -----------------------------------------------------------

    def open_session(self) -> SftpSession:
        """See SessionWorker."""
        if self._session is not None and self._session.is_outdated:
            self.drop()
        if self._session is None:
            self._session = self._destination.open(self._options)
            self.opened()
        return self._session

    def pause(self) -> None:
        """See SessionWorker."""
        if self._destination.is_wanted and self._session is not None:
            session, self._session = self._session, None
            self._destination.give_back(session)

    def drop(self) -> None:
        """See SessionWorker."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker. Raises ThirdPartyRefused: then the copy goes on another way."""
        if isinstance(error, ThirdPartyRefused):
            raise error
        was_open, file = self._session is not None, self._file
        self.drop()
        if file is None or not was_open:
            return Lost([], progressed=False)
        is_patience_over = isinstance(error, TransferTimeout) or file.failures > 0
        if is_patience_over and not self.context.events.inbound.is_set():
            raise ThirdPartyRefused(str(error))
        return Lost([file], progressed=False)

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._file = None
        self._scheduler.give_up(file, error)

    def hand_back(self, error: MpxError) -> None:
        """See SessionWorker. A file is copied again only as often as --retries allows."""
        file, self._file = self._file, None
        if file is not None:
            self.carry_again(file, error, was_tried=isinstance(error, (ConnectionLost, TransferTimeout)))
