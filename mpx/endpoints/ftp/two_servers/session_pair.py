"""Two sessions, one with a server that sends and one with a server that receives, and what is between them.

In MODE E the sender opens so many connections to a port of the receiver, and both keep them for what follows:
transfers are queued at both servers in one order, and run back to back. In MODE S each has one of its own.
Nothing counts before both servers have confirmed it and all that was queued before: behind a refusal of one
of them the other one takes what it is sent for the next file.
"""

import select
from collections import deque
from collections.abc import Callable, Sequence

from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.two_servers import connecting
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost

# Connections that stay have keys that wear (net/tls.py): after so much the sender looks whether they have.
WORN_BYTES, WORN_TRANSFERS = 1 << 35, 1 << 17


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
        self._stay = mode_e and receiver.tickets is not None  # connections, where their number changes
        self._since_bytes = self._since_transfers = 0  # queued, since the sender has looked at them

    def fits(self, connections: int) -> bool:
        """Tell whether what follows can go over the connections that are there."""
        is_worn = self._since_bytes > WORN_BYTES or self._since_transfers > WORN_TRANSFERS
        return self._mode_e and self.connections == connections and not (self._stay and is_worn)

    def connect(self, connections: int) -> None:
        """Have the sender use that many connections to the receiver; nothing may be queued.

        Those between servers of ours stay where their number changes. Raises ThirdPartyRefused where the
        servers do not connect to each other, ConnectionLost, TransferTimeout.
        """
        number = f"Parallelism={connections},{connections},{connections};"
        settings = [command("OPTS", "RETR", number)] if self._mode_e else []
        if self._stay and self.connections:
            replies = self.sender.pipeline(settings)
        else:
            if self._mode_e and self._congestion:
                settings.append(command("OPTS", "RETR", f"Congestion={self._congestion};"))
            replies = connecting.connect(self.sender, self.receiver, settings)
        self.connections = connections if all(reply.is_ok for reply in replies[:1]) else 1
        self._since_bytes = self._since_transfers = 0

    def queue(self, transfers: Sequence[PairedTransfer]) -> None:
        """Have both servers carry these, behind what is queued; raises ConnectionLost, UsageError."""
        stores = [each.store_command(self.receiver) for each in transfers]
        retrieves = [each.retrieve_command(self.sender) for each in transfers]
        self.transfers += transfers
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
        if not reply.is_preliminary:
            self._next(
                self.sender, reply, [each for each in self.transfers if each.sent is None]
            ).sent = reply

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
    def _next(session: ClientSession, reply: Reply, waiting: Sequence[PairedTransfer]) -> PairedTransfer:
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
        self.receiver.close()
