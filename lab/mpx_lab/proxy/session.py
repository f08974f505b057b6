"""A control connection with the listeners and data connections that belong to it."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from mpx_lab.proxy.loop import READABLE, Loop
from mpx_lab.proxy.record import Side
from mpx_lab.proxy.relay import Relay, new_socket
from mpx_lab.proxy.rewrite import Address

MOST_LISTENERS = 64  # per session; a client that says PASV for every file leaves one behind each time
OnAccept = Callable[[socket.socket, Address], None]


class Listener:
    """A listening socket of the proxy, which can refuse connections (it keeps the port) or ignore them."""

    def __init__(self, loop: Loop, address: Address, on_accept: OnAccept, receive_buffer_bytes: int) -> None:
        self._loop = loop
        self._receive_buffer_bytes = receive_buffer_bytes
        self._on_accept = on_accept
        self._sock = self._bound(address)
        self.address: Address = self._sock.getsockname()[:2]

    def listen(self) -> None:
        """Accept connections from now on."""
        self._sock.listen(1024)
        self._loop.unwatch(self._sock)
        self._loop.watch(self._sock, READABLE, self._on_events)

    def ignore(self) -> None:
        """Accept nothing; the kernel still completes handshakes."""
        self._loop.unwatch(self._sock)

    def refuse(self) -> None:
        """Have the kernel refuse connections, by holding the port without listening."""
        self.close()
        self._sock = self._bound(self.address)

    def close(self) -> None:
        """Close the socket at once, as the port may be bound again."""
        self._loop.unwatch(self._sock)
        self._sock.close()

    def _bound(self, address: Address) -> socket.socket:
        sock = new_socket(address[0], self._receive_buffer_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        return sock

    def _on_events(self, _events: int) -> None:
        try:
            accepted, peer = self._sock.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        accepted.setblocking(False)
        self._on_accept(accepted, peer[:2])


@dataclass(eq=False, slots=True)
class Session:
    """A control connection and what belongs to it; listeners are keyed by the address they lead to."""

    proxy_host: str
    peer_hosts: dict[Side, str]
    control: Relay | None = None
    data: set[Relay] = field(default_factory=set)
    listeners: dict[Address, Listener] = field(default_factory=dict)

    def destination(self, announced_by: Side, host: str, port: int) -> Address:
        """Return where an announced address leads; no host means whoever announced it."""
        return host or self.peer_hosts[announced_by], port

    def listening_host(self, announced_host: str) -> str:
        """Return the proxy's own address in the family of the announced one."""
        wants_ipv6 = ":" in (announced_host or self.proxy_host)
        if wants_ipv6 == (":" in self.proxy_host):
            return self.proxy_host
        return "::1" if wants_ipv6 else "127.0.0.1"

    def keep(self, leads_to: Address, listener: Listener) -> None:
        """Keep a listener as the newest, and close the oldest of too many."""
        self.listeners.pop(leads_to, None)
        self.listeners[leads_to] = listener
        if len(self.listeners) > MOST_LISTENERS:
            self.listeners.pop(next(iter(self.listeners))).close()

    def close_listeners_if_over(self) -> bool:
        """Close the listeners when neither the control connection nor a data connection is left."""
        if self.data or (self.control is not None and self.control.is_open):
            return False
        for listener in self.listeners.values():
            listener.close()
        self.listeners.clear()
        return True
