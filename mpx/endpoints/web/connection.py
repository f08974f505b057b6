"""One connection to an HTTP server: requests go out, answers come in their order."""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mpx.endpoints.web.incoming import HttpIncoming, lost
from mpx.endpoints.web.proxy import Proxy
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.sent_secrets import SentSecrets
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.errors import ConnectionLost, Interrupted, TransferTimeout
from mpx.net import tcp
from mpx.net.keep_alive import keep_alive
from mpx.net.tcp_info import tcp_info, unacknowledged_bytes

AGENT = "mpx"
_REQUEST_TIMEOUT, _SHORT_BYTES = 408, 64 * 1024


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What is asked for: method, URL, and headers beside those that every request has."""

    method: str
    url: WebUrl
    headers: Mapping[str, str]

    def head(self, via: Proxy | None = None) -> bytes:
        """Return it as it is sent; `via`: to a proxy, which is shown its password."""
        url = self.url
        target = f"{url.origin}{url.target}" if via else url.target
        login = [f"Proxy-Authorization: {via.authorization}"] if via and via.authorization else []
        lines = [
            f"{self.method} {target} HTTP/1.1",
            f"Host: {url.origin.authority}",
            f"User-Agent: {AGENT}",
            "Accept-Encoding: identity",
            *login,
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class HttpConnection:
    """Used by one thread; `cut` by any."""

    def __init__(
        self,
        connection: socket.socket,
        origin: Origin,
        timeout_s: float,
        stop: Callable[[], bool],
        *,
        via: Proxy | None = None,
        connected_s: float = 0.0,
    ) -> None:
        """`via`: the proxy that requests go to in the clear; `connected_s`: how long TCP took to connect."""
        self.socket = connection
        self.origin = origin
        self.peer = str(origin)
        self.incoming = HttpIncoming(connection, self.peer, timeout_s, stop)
        self.connected_s = connected_s
        self.answered = 0  # requests
        self.secrets = SentSecrets()
        self._via = via
        self._timeout_s = timeout_s
        self._stop = stop

    def send(self, request: WebRequest, body: bytes = b"") -> None:
        """Send a request, with a short body; raises ConnectionLost, TransferTimeout."""
        self._note_secrets_of(request)
        head = request.head(self._via)
        self.send_all(memoryview(head + body))

    def send_all_of(self, requests: Sequence[WebRequest], body: bytes) -> None:
        """Send several requests together, each with the same short body; raises as `send`.

        In TLS each has a record of its own: XRootD answers the first few of one record, and takes up the rest
        once more has come.
        """
        for request in requests:
            self._note_secrets_of(request)
        heads = [request.head(self._via) + body for request in requests]
        if not self.origin.is_secure:
            self.send_all(memoryview(b"".join(heads)))
            return
        with tcp.corked(self.socket):
            for head in heads:
                self.send_all(memoryview(head))

    def _note_secrets_of(self, request: WebRequest) -> None:
        self.secrets.sent(request.headers, request.url.target)
        if self._via:
            self.secrets.sent({"Proxy-Authorization": self._via.authorization})

    def send_all(self, data: memoryview) -> None:
        """Send some bytes; raises ConnectionLost, TransferTimeout, Interrupted."""
        try:
            while data:
                try:
                    data = data[self.socket.send(data, socket.MSG_DONTWAIT) :]
                except BlockingIOError:
                    self._wait_for_room()
        except OSError as error:
            if self._stop():
                raise Interrupted from None
            raise lost(self.peer, error) from None

    def _wait_for_room(self) -> None:
        """Wait until the kernel takes more; the time-out begins anew with all that the other side takes."""
        poll = select.poll()
        poll.register(self.socket, select.POLLOUT)
        held_bytes, since_s = unacknowledged_bytes(self.socket), time.monotonic()
        while not poll.poll(1000 * tcp.STOP_INTERVAL_S):
            if self._stop():
                raise Interrupted
            before_bytes, held_bytes = held_bytes, unacknowledged_bytes(self.socket)
            if held_bytes < before_bytes:
                since_s = time.monotonic()
            elif time.monotonic() - since_s > self._timeout_s:
                raise TransferTimeout(f"{self.peer} took nothing for {self._timeout_s:g} s")

    def reply(self, method: str, *, wants_continue: bool = False) -> HttpReply:
        """Read the head of the next answer; raises as HttpIncoming does.

        ConnectionLost, too, for one to nothing that was asked: before HAProxy and others close a connection
        which nobody has used for some time they say so by a 408.
        """
        found = HttpReply(
            self.incoming, self.peer, method, wants_continue=wants_continue, secrets=self.secrets
        )
        if found.status == _REQUEST_TIMEOUT and self.answered and not found.may_have_followers:
            found.read(_SHORT_BYTES)
            raise ConnectionLost(f"{self.peer}: it closed the connection: {found.status}")
        self.answered += 1
        return found

    def be_patient(self, timeout_s: float | None) -> None:
        """Wait so long for answers from now on, None: as usual, while the other side can be reached."""
        if timeout_s is not None:
            keep_alive(self.socket, self._timeout_s)
        self.incoming.timeout_s = self._timeout_s if timeout_s is None else timeout_s

    def stop_by(self, stop: Callable[[], bool]) -> None:
        """End what is waited for once this says so, whoever has opened it."""
        self._stop = self.incoming.stop = stop

    @property
    def kernel_rtt_s(self) -> float | None:
        """The round-trip time that the kernel has measured."""
        info = tcp_info(self.socket)
        return info.rtt_s if info and info.rtt_s else None

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def cut(self) -> None:
        """Reset it; who reads or sends gets ConnectionLost."""
        with contextlib.suppress(OSError, ValueError):
            tcp.reset(self.socket)


@dataclass(frozen=True, slots=True)
class BegunAnswer:
    """The answer to a GET for the beginning of a file, of which only the head was read."""

    url: WebUrl
    connection: HttpConnection
    reply: HttpReply
