"""Two sessions, one with a server that sends and one with a server that receives, and what is between them.

In MODE E the sender opens so many connections to a port of the receiver, and both keep them for what follows:
transfers are queued at both servers in one order, and run back to back. In MODE S each has one of its own.
Nothing counts before both servers have confirmed it and all that was queued before: behind a refusal of one
of them the other one takes what it is sent for the next file.
"""

import select
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from mpx.endpoints.ftp.mode_e.misplaced_blocks import await_end
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.two_servers import connecting
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost

# Connections that stay have keys that wear (net/tls.py), and transfers are counted (extensions/dialing.py).
WORN_BYTES, WORN_TRANSFERS = 1 << 36, 1 << 20
_Owed = TypeVar("_Owed")


class SessionPair:
    """Used by one thread, but for `abort`. `marked` is given what each marker tells of anew, in bytes."""

    def __init__(
        self,
        sender: ClientSession,
        receiver: ClientSession,
        *,
        mode_e: bool,
        marked: Callable[[PairedTransfer, int], None],
        congestion: str | None = None,
    ) -> None:
        """`congestion`: that the sender is to use, where it can be told."""
        self.sender, self.receiver = sender, receiver
        self.connections = 0  # that transfers use; 0: none are open
        self.transfers: deque[PairedTransfer] = deque()  # queued, the oldest first
        self._mode_e, self._marked, self._congestion = mode_e, marked, congestion
        # Connections, where their number changes: the sender counts transfers, and so does the receiver.
        self.are_kept = mode_e and receiver.tickets is not None
        self._owed: deque[PairedTransfer | None] = deque()  # by the sender: ends, and an answer to a setting
        self._since_bytes = self._since_transfers = 0  # queued, since they were opened

    def takes(self, connections: int) -> bool:
        """Tell whether transfers over so many connections can follow what is queued."""
        is_worn = self._since_bytes > WORN_BYTES or self._since_transfers > WORN_TRANSFERS
        if self.are_kept:
            return self.connections > 0 and not is_worn
        return self._mode_e and self.connections == connections

    def connect(self, connections: int) -> None:
        """Have the sender open that many connections to the receiver; nothing may be queued.

        Raises ThirdPartyRefused where they do not connect to each other, ConnectionLost, TransferTimeout.
        """
        settings = [_parallelism(connections)] if self._mode_e else []
        if self._mode_e and self._congestion:
            settings.append(command("OPTS", "RETR", f"Congestion={self._congestion};"))
        replies = connecting.connect(self.sender, self.receiver, settings)
        self.connections = connections if all(reply.is_ok for reply in replies[:1]) else 1
        self._since_bytes = self._since_transfers = 0

    def has_to_rest_for(self, transfers: Sequence[PairedTransfer]) -> bool:
        """Tell whether these can be queued only once nothing is under way."""
        return bool(self.transfers) and any(each.asks_first(self.sender, self.receiver) for each in transfers)

    def queue(self, transfers: Sequence[PairedTransfer], connections: int) -> None:
        """Have both servers carry these, behind what is queued; raises ConnectionLost, UsageError.

        Where connections are kept, over so many of them: some are closed, or more come.
        """
        stores = [each.store_command(self.receiver) for each in transfers]
        retrieves = [each.retrieve_command(self.sender) for each in transfers]
        if self.are_kept and connections != self.connections:
            retrieves.insert(0, _parallelism(connections))
            self._owed.append(None)
            self.connections = connections
        for each in transfers:
            each.connections = self.connections
        self.transfers += transfers
        self._owed += transfers
        self._since_transfers += len(transfers)
        self._since_bytes += sum(each.size_bytes for each in transfers)
        self.receiver.send(*stores)
        self.sender.send(*retrieves)

    def hear(self, wait_s: float) -> None:
        """Take what both servers say within `wait_s`; raises ConnectionLost."""
        waiting = select.poll()
        for session in (self.sender, self.receiver):
            waiting.register(session.connection, select.POLLIN)
        ready = {fd for fd, _ in waiting.poll(wait_s * 1000)}
        for session, take in ((self.sender, self._sender_said), (self.receiver, self._receiver_said)):
            # What was decrypted already shows at no socket, so both are asked where none is ready.
            is_due = not ready or session.connection.fileno() in ready
            reply = session.poll_reply(0.0) if is_due else session.waiting_reply()
            while reply is not None:
                take(reply)
                reply = session.waiting_reply()

    def _sender_said(self, reply: Reply) -> None:
        if reply.is_preliminary:
            return
        transfer = self._next(self.sender, reply, self._owed)
        self._owed.popleft()
        if transfer is not None:
            transfer.sent = reply
        elif not reply.is_ok:
            raise ConnectionLost(f"{self.sender.peer} refuses another number of streams: {reply.reason}")

    def _receiver_said(self, reply: Reply) -> None:
        unstored = [each for each in self.transfers if each.stored is None]
        transfer = self._next(self.receiver, reply, unstored)
        if not reply.is_preliminary:
            transfer.stored = reply
        elif reply.is_marker:
            self._marked(transfer, transfer.take_marker(reply))
        else:
            transfer.has_begun = True

    @staticmethod
    def _next(session: ClientSession, reply: Reply, waiting: Sequence[_Owed]) -> _Owed:
        if not waiting:
            raise ConnectionLost(f"{session.peer} sent an unexpected reply: {reply.code} {reply.reason}")
        return waiting[0]

    def abort(self) -> None:
        """Cut both control channels; from any thread."""
        self.sender.abort()
        self.receiver.abort()

    def close(self) -> None:
        """Close both sessions: whatever is under way ends."""
        self.sender.close()
        if self._mode_e and any(each.has_begun and not each.stored for each in self.transfers):
            await_end(self.receiver)
        self.receiver.close()


def _parallelism(connections: int) -> bytes:
    return command("OPTS", "RETR", f"Parallelism={connections},{connections},{connections};")
