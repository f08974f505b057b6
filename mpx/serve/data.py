"""Data connections: where they come from, and the ones kept open between transfers.

In MODE E the sender connects: we accept (PASV) what is stored and connect (PORT) to send. After a
transfer such connections stay open and the next one in the same direction uses them again, until a
new PASV or PORT. In MODE S a connection serves one transfer, in either direction.

Inside TLS the client opens all of them, with a ticket for each direction (DATA), but for those to another
server that it names (TARGET): these we open.
"""

import socket
from contextlib import suppress

from mpx.endpoints.ftp.extensions.dialing import Direction, Ticket
from mpx.endpoints.ftp.extensions.third_party import Target
from mpx.endpoints.ftp.wire import Address
from mpx.net.mptcp import socket_for
from mpx.serve.buffers import ConnectionBudget
from mpx.serve.connection import Connection
from mpx.serve.other_server import OtherServer
from mpx.serve.replies import RefusalReply
from mpx.serve.tickets import DialedConnections, Tickets

_BACKLOG = 256
_IP_BIND_ADDRESS_NO_PORT = 24  # linux/in.h: the port is chosen at connect(), so that ports do not run out


class DataChannel:
    """The data side of one session: its listener or the client's address, and connections kept open."""

    def __init__(
        self,
        local: str,
        peer: str,
        family: socket.AddressFamily,
        budget: ConnectionBudget,
        tickets: Tickets | None = None,
    ) -> None:
        """`tickets`: inside TLS, where the client opens all connections."""
        self._tickets = tickets
        # Where connections come from that are to be sent over:
        self._awaited: DialedConnections | OtherServer | None = None
        self._budget = budget
        self._local = local
        self._peer = peer
        self._family = family
        self._target: Address | None = None
        self._kept: list[Connection] = []
        self._outgoing: list[Connection] = []  # replaced, never changed: others read it
        self.listener: socket.socket | DialedConnections | None = None
        self.buffer_bytes = 0  # SBUF; 0 leaves the size to the kernel, which adapts it

    def listen(self) -> Address:
        """Open a new listener (PASV) and return where; what was open before is closed."""
        if self._tickets:
            raise RefusalReply(522, "Data connections are inside TLS here: use DATA.")
        self.close()
        listener = socket_for(self._family)
        try:
            self._set_buffer(listener, socket.SO_RCVBUF)
            self._set_buffer(listener, socket.SO_SNDBUF)
            listener.bind((self._local, 0))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self.listener = listener
        host, port, *_ = listener.getsockname()
        return host, port

    def connect_to(self, address: Address) -> None:
        """Connect to `address` for the next transfers (PORT); what was open before is closed.

        Raises RefusalReply unless it is a port of the client itself: data goes nowhere else.
        """
        host, port = address
        if self._tickets:
            raise RefusalReply(522, "Data connections are inside TLS here: use DATA.")
        if host != self._peer:
            raise RefusalReply(501, f"Data goes only to your own address, {self._peer}.")
        if port < 1024:
            raise RefusalReply(501, "Data does not go to ports below 1024.")
        self.close()
        self._target = address

    def issue_ticket(self, direction: Direction) -> Ticket:
        """Return what lets the client's connections in for the next transfers; what was open is closed.

        Raises RefusalReply in the clear, where nobody could keep it secret.
        """
        if not self._tickets:
            raise RefusalReply(504, "DATA is served inside TLS only.")
        self.close()
        arrivals = self._tickets.issue(direction)
        if direction is Direction.UP:
            self.listener = arrivals
        else:
            self._awaited = arrivals
        return arrivals.ticket

    def send_to(self, target: Target) -> None:
        """Open connections to another server for the next transfers; what was open is closed.

        Raises RefusalReply for one that may not be sent to, and in the clear.
        """
        if not self._tickets:
            raise RefusalReply(504, "TARGET is served inside TLS only.")
        self.close()
        self._awaited = OtherServer(target, self._peer)

    @property
    def other_server(self) -> OtherServer | None:
        """Where data go that do not go to the client."""
        return self._awaited if isinstance(self._awaited, OtherServer) else None

    def wait_to_join(self) -> None:
        """Wait, as who has many connections in a transfer does for one more."""
        self._budget.wait_to_join()

    def accept(self) -> Connection | None:
        """Take a waiting connection; None where there is none, or none that may be used (it is closed)."""
        if not self.listener:
            return None
        try:
            sock, address = self.listener.accept()
        except OSError:  # it has gone already, or no descriptors are left: then it waits
            return None
        is_known = self._tickets is not None or address[0] == self._peer
        if is_known and (block_bytes := self._budget.take(self._peer)):
            try:
                return Connection(sock, block_bytes, self._give_back)
            except OSError:  # it has gone already
                self._give_back()
        sock.close()
        return None

    def check(self, *, blocks: bool, sending: bool) -> None:
        """Raise RefusalReply when neither PASV nor PORT said where data goes, or the wrong one for MODE E."""
        if not self.listener and not self.connects:
            raise RefusalReply(425, f"Use {'DATA' if self._tickets else 'PASV or PORT'} first.")
        if self._tickets and sending != self.connects:
            raise RefusalReply(500, f"Use DATA {'DOWN' if sending else 'UP'} first.")
        if blocks and sending != self.connects:
            raise RefusalReply(
                500, f"In MODE E the sender connects: use {'PORT' if sending else 'PASV'} first."
            )

    def take_kept(self) -> list[Connection]:
        """Hand out the connections an earlier transfer left open, as far as they are still alive."""
        alive = []
        for connection in self._kept:
            if connection.is_alive():
                alive.append(connection)
            else:
                connection.close()
        self._kept = []
        return alive

    def begin_receiving(self) -> None:
        """Note that a transfer begins that stores."""
        if isinstance(self.listener, DialedConnections):
            self.listener.begin()

    def can_go_on(self, count: int, wanted: int) -> bool:
        """Tell whether the next transfer can be over the connections of the present one, `count`."""
        return count == wanted or not isinstance(self._awaited, OtherServer)

    def begin_sending(self) -> None:
        """Note that a transfer begins that sends over connections that are open; raises RefusalReply."""
        if isinstance(self._awaited, OtherServer):
            self._awaited.begin()

    def to_send_over(self, count: int, *, over_mptcp: bool) -> list[Connection]:
        """Hand out the connections for a transfer in MODE E: those kept, or `count` that are yet to come.

        To another server it is `count` in any case, some of them kept. Raises RefusalReply.
        """
        kept = self.take_kept()
        if not isinstance(self._awaited, OtherServer):
            return kept or self.outgoing(count, over_mptcp=over_mptcp)
        self.begin_sending()
        for connection in kept[count:]:
            connection.finish_sending()
            connection.close()
        if len(kept) >= count:
            return kept[:count]
        try:
            return kept + self.outgoing(count - len(kept))
        except RefusalReply:
            if kept:
                return kept
            raise

    def outgoing(self, count: int, *, over_mptcp: bool = False) -> list[Connection]:
        """Make `count` connections to the client's address, yet to be connected; fewer if it has too many.

        Inside TLS they are those that the client will open, or that we do to another server.

        Raises RefusalReply if there may be none.
        """
        made: list[Connection] = []
        for _ in range(count):
            block_bytes = self._budget.take(self._peer)
            if not block_bytes:
                break
            if self._awaited:
                made.append(Connection(self._awaited, block_bytes, self._give_back))
                continue
            try:
                sock = self._socket(over_mptcp)
            except OSError:
                self._give_back()
                for connection in made:
                    connection.close()
                raise
            made.append(Connection(sock, block_bytes, self._give_back, self._target))
        if not made:
            raise RefusalReply(425, f"Too many data connections of {self._peer} are open.")
        self._outgoing = [*(each for each in self._outgoing if not each.closed), *made]
        return made

    def _socket(self, over_mptcp: bool) -> socket.socket:
        kind = socket.SOCK_STREAM
        sock = socket_for(self._family) if over_mptcp else socket.socket(self._family, kind)
        try:
            self._set_buffer(sock, socket.SO_RCVBUF)
            self._set_buffer(sock, socket.SO_SNDBUF)
            with suppress(OSError):  # older kernels have it for plain TCP only
                sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((self._local, 0))
        except OSError:
            sock.close()
            raise
        return sock

    def sending(self) -> list[socket.socket]:
        """Return those that we send to the client over, and that are open; from any thread."""
        if self.other_server:
            return []
        return [each.as_socket for each in self._outgoing if each.is_here and not each.closed]

    @property
    def connects(self) -> bool:
        """Whether what we send goes over connections of ours (PORT), or of a ticket to receive."""
        return self._target is not None or self._awaited is not None

    def keep(self, connections: list[Connection]) -> None:
        """Leave these open for the next transfer, and no others: one in MODE S takes none of those before."""
        for connection in self._kept:
            connection.close()
        for connection in connections:
            connection.rest()
        self._kept = connections

    def close(self) -> None:
        """Close the listener and what was kept open; forget the address."""
        if self.listener:
            self.listener.close()
            self.listener = None
        if self._awaited:
            self._awaited.close()
            self._awaited = None
        for connection in self._kept:
            connection.close()
        self._kept = []
        self._target = None

    def _give_back(self) -> None:
        self._budget.give_back(self._peer)

    def _set_buffer(self, sock: socket.socket, option: int) -> None:
        if self.buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, option, self.buffer_bytes)
