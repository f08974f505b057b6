"""Uploads in MODE E, one batch: its STORs go out in one write and run back to back on the same connections.

One that fails does not stop those queued behind it, which then would read the wrong data. So nothing of the
batch counts as stored before its own completion was read, and after a failure the session is given up.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.checksum_behind import ChecksumBehind, checksum_behind
from mpx.endpoints.ftp.mode_e.misplaced_blocks import certain_from
from mpx.endpoints.ftp.mode_e.store import Store
from mpx.endpoints.ftp.mode_e.upload_channel import UploadDataChannel
from mpx.endpoints.ftp.mode_e.upload_watch import TICK_S, UploadWatch, marked
from mpx.endpoints.ftp.refusals import cannot_store
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stream import LARGEST_BLOCK
from mpx.errors import ConnectionLost, Interrupted, MpxError, SourceError
from mpx.files.local_error import local_error

VERDICT_S = 10.0  # wait for the server's reply after a data connection broke
CONNECT_FAILURES = 3


class UploadBatch:
    """Files that are stored over one session and one channel; `target`: the path of each stream now."""

    def __init__(
        self,
        context: CarrierContext,
        session: ClientSession,
        channel: UploadDataChannel,
        target: Callable[[], Sequence[str]],
    ) -> None:
        self._context = context
        self._session = session
        self._channel = channel
        self._target = target
        self.transfers: deque[Store] = deque()  # begun and not settled, in their order
        self._behind: dict[Store, ChecksumBehind] = {}  # asked for behind some

    def begin(self, files: Sequence[FileTransfer]) -> Iterator[tuple[FileTransfer, SourceError]]:
        """Open the files and have the server store them; yields those that cannot be opened."""
        session, lines = self._session, []
        for file in files:
            telnet_escape.learn(session, file.partial)
            name = session.name(file.partial)
            if file.arrived_bytes:  # what this transfer may overwrite if it is cut is sent again with it
                self._context.supervisor.again(file, 0, self._certain_from(file))
            try:
                transfer = self._open(file)
            except SourceError as error:
                yield file, error
                continue
            self.transfers.append(transfer)
            self._channel.add(transfer)
            lines.append(command("ESTO", "A", 0, name) if file.arrived_bytes else command("STOR", name))
            if self._context.streams.is_short and (asked := checksum_behind(session, file, name)):
                self._behind[transfer] = asked
                lines.append(asked.line)
        session.send(*lines)

    def _certain_from(self, file: FileTransfer) -> int:
        """Return from where on what is stored stays, however its transfer ends."""
        block_bytes = self._channel.block_bytes or LARGEST_BLOCK
        return certain_from(self._session.features, 0, file.size_bytes, block_bytes)

    def _open(self, file: FileTransfer) -> Store:
        try:
            fd = file.open(file.source, os.O_RDONLY)
        except OSError as error:
            raise local_error(error, file.source, writing=False) from None
        try:
            return Store(file, fd, lambda: self._channel.is_closed or self._context.failure.cancel.is_set())
        except BaseException:
            file.close()
            raise

    def complete(self, transfer: Store) -> MpxError | None:
        """See the next transfer to its end; return why its file is not stored, None if it is.

        Raises ConnectionLost, TransferTimeout and Interrupted.
        """
        reply = self._reply(transfer)
        broken = self._channel.broken_in(transfer)
        if reply.is_ok and transfer.ends.announced and not broken and transfer.is_complete:
            self._channel.forget(transfer)
            if asked := self._behind.pop(transfer, None):
                asked.heard(self._session.final_reply(work_bytes=transfer.file.size_bytes))
            transfer.file.all_landed()
            return None
        refusal = self._refusal(reply, transfer.file)
        if broken and (refusal.may_retry or not broken.may_retry):
            return broken  # the server's word counts only where it says more than that
        return refusal

    def _refusal(self, reply: Reply, file: FileTransfer) -> MpxError:
        peer = self._session.peer
        if reply.is_ok:
            return ConnectionLost(f"{peer} ended the transfer of {file.final} before its end")
        return cannot_store(reply, peer, file.final, file.partial)

    def _reply(self, transfer: Store) -> Reply:
        """Keep the right number of streams until the server says that the file is complete."""
        session, channel = self._session, self._channel
        watch = UploadWatch(self._context.options.timeout_s, session.rtt_s or 0.0)
        certain = self._certain_from(transfer.file)
        broken_s: float | None = None
        was_accepted = False
        # The first transfer begins with its first connection. Later ones begin with those that there are;
        # until then a stock server (globus_ftp_control_data.c) loses its listener to a new connection.
        has_begun = transfer.number == 0
        if has_begun and not channel.broken:
            channel.adjust(transfer, self._target())
        while True:
            if self._context.failure.cancel.is_set():
                raise Interrupted("stopped")
            reply = session.poll_reply(TICK_S)
            if reply is not None and not reply.is_preliminary:
                return reply
            if reply is not None and reply.code == 111:
                watch.marked(marked(transfer.file, reply, certain))
            elif reply is not None:
                has_begun = True
                if not reply.is_marker and not was_accepted:
                    was_accepted = True
                    watch.heard()
            # What follows is not left to silence: a server can send preliminary replies without end.
            if channel.broken:
                broken = channel.broken_in(transfer)
                broken_s = broken_s or time.monotonic()
                is_late = time.monotonic() - broken_s > VERDICT_S
                if broken and not broken.may_retry and (reply is None or is_late):
                    return Reply(426, (str(broken),))
                if is_late:
                    raise broken or ConnectionLost(str(channel.broken))
            elif channel.refused and channel.refusals >= CONNECT_FAILURES and not transfer.ends.taking_part:
                raise channel.refused
            else:
                if has_begun:
                    channel.adjust(transfer, self._target())
                watch.look(channel, transfer)

    def settled(self) -> None:
        """Let go of the first transfer."""
        self.transfers.popleft().file.close()

    def end(self, unfinished: Callable[[FileTransfer], bool]) -> None:
        """Close the sources, and note of each unfinished file whether all of it was sent."""
        for transfer in self.transfers:
            transfer.file.sent_whole = transfer.is_complete and unfinished(transfer.file)
            transfer.file.close()
