"""One HTTP exchange whose whole time is bounded.

Timeouts of sockets bound each read, but neither finding a name nor an answer that trickles in. So the
exchange has a thread of its own, and the caller may stop waiting, and cut the connection, at any time.
"""

import contextlib
import http.client
import socket
import ssl
import threading
from typing import Any

_PIECE_BYTES = 1 << 16


class Exchange(threading.Thread):
    """Sends one request, over `requests`, which is imported with the first.

    No proxy, no redirect and no credentials of other files: the token is for the controller alone.
    """

    def __init__(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: bytes | None,
        tls: ssl.SSLContext | None,
        timeout_s: float,
        most_bytes: int,
    ) -> None:
        import requests

        super().__init__(name="mpx-controller", daemon=True)
        # Written by this thread before `ended` is set, and read by others after it.
        self.answer: tuple[int, bytes] | None = None  # status and body, of which at most `most_bytes` + 1
        self.error: Exception | None = None
        self.ended = threading.Event()  # set at the end, and by `cut`
        self._most_bytes = most_bytes
        self._connections: list[http.client.HTTPConnection] = []  # appended to by this thread
        self._adapter = _adapter(tls, self._connections)
        headers = {"Accept-Encoding": "identity", "Connection": "close", **headers}
        request = requests.Request(method, url, headers=headers, data=body)
        self._request, self._timeout_s = request, timeout_s

    def run(self) -> None:
        """Send the request, and read the answer while the caller waits for it."""
        import urllib3

        try:
            with (  # a Session would read the whole body of a redirect first, however large
                contextlib.closing(self._adapter),
                self._adapter.send(self._request.prepare(), stream=True, timeout=self._timeout_s) as response,
            ):
                body = bytearray()
                for piece in response.raw.stream(_PIECE_BYTES, decode_content=False):
                    body += piece
                    if len(body) > self._most_bytes:
                        break
                if not self.ended.is_set():  # after a cut only a part has arrived
                    self.answer = response.status_code, bytes(body)
        except (OSError, ValueError, urllib3.exceptions.HTTPError, http.client.HTTPException) as error:
            self.error = error
        finally:
            self.ended.set()

    def cut(self) -> None:
        """End the exchange."""
        self.ended.set()
        for connection in list(self._connections):
            with contextlib.suppress(OSError, AttributeError):  # it may have ended, or not begun
                connection.sock.shutdown(socket.SHUT_RDWR)

    @property
    def cause(self) -> Exception | None:
        """The error of the system, TLS or HTTP that made `requests` fail; the error itself without one."""
        error: BaseException | None = self.error
        while error is not None:
            is_first = isinstance(error, http.client.HTTPException) or getattr(error, "strerror", None)
            if is_first and isinstance(error, Exception):
                return error
            error = _below(error)
        return self.error


def _below(error: BaseException) -> BaseException | None:
    """Return what an error is about: urllib3 and requests hold it as an attribute, an argument or a cause."""
    held = (getattr(error, "reason", None), *error.args, error.__cause__, error.__context__)
    return next((each for each in held if isinstance(each, BaseException)), None)


def _adapter(tls: ssl.SSLContext | None, connections: list[http.client.HTTPConnection]) -> Any:
    """Return an adapter for HTTP requests that uses the context `tls`, and notes its connections."""
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *sizes: Any, **how: Any) -> None:
            super().init_poolmanager(*sizes, ssl_context=tls, **how)

        def cert_verify(self, *_: Any) -> None:
            """Leave it to the context, not to the list of authorities that `requests` comes with."""

        def get_connection_with_tls_context(self, *request: Any, **how: Any) -> Any:
            pool = super().get_connection_with_tls_context(*request, **how)
            kind: Any = pool.ConnectionCls

            class Noted(kind):  # type: ignore[misc]
                def connect(self) -> None:
                    connections.append(self)
                    super().connect()

            pool.ConnectionCls = Noted
            return pool

    return Adapter(max_retries=0)
