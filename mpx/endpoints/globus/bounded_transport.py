"""The transport of the SDK, which takes no answer that is too long, or takes too long to come.

A timeout of requests is that between two bytes: a service that sends one a second would be read for ever.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mpx.errors import UsageError

if TYPE_CHECKING:
    from globus_sdk.transport import RequestsTransport

LARGEST_BYTES = 128 << 20  # of an answer: 100,000 names, the most that the service tells at once, take 100 MB
PATIENCE = 4  # times the timeout of an answer, for all of it
_BLOCK_BYTES = 1 << 16
_USUAL_S = 60.0  # the timeout of the SDK, where users have set none at all


def bounded_transport(timeout_s: float | None = None) -> "RequestsTransport":
    """Return a transport; `timeout_s`: None: as the SDK has it. Raises UsageError for its settings."""
    from globus_sdk.transport import RequestsTransport

    try:
        transport = RequestsTransport(http_timeout=timeout_s)
    except ValueError as error:
        raise UsageError(
            f"{error}; mend GLOBUS_SDK_VERIFY_SSL and GLOBUS_SDK_HTTP_TIMEOUT, or unset them"
        ) from None
    within_s = (transport.http_timeout or _USUAL_S) * PATIENCE
    for scheme in ("https://", "http://"):
        transport.session.mount(scheme, _bounded_adapter(within_s))
    return transport


def _bounded_adapter(within_s: float) -> Any:
    from requests import PreparedRequest, Response
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPResponse, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class BoundedPlainConnection(HTTPConnection):
        """Reads the head of an answer in time."""

        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            """See HTTPConnection."""
            with _cut_after(within_s, self.sock):
                return super().getresponse()

    class BoundedTlsConnection(HTTPSConnection):
        """As BoundedPlainConnection."""

        def getresponse(self) -> HTTPResponse:  # type: ignore[override]
            """See HTTPSConnection."""
            with _cut_after(within_s, self.sock):
                return super().getresponse()

    class BoundedAdapter(HTTPAdapter):
        """Reads all of an answer, up to its bounds."""

        def get_connection_with_tls_context(self, *given: Any, **named: Any) -> Any:
            """See HTTPAdapter. Also of the connections of a proxy."""
            pool = super().get_connection_with_tls_context(*given, **named)
            is_tls = isinstance(pool, HTTPSConnectionPool)
            pool.ConnectionCls = BoundedTlsConnection if is_tls else BoundedPlainConnection
            return pool

        def send(self, request: PreparedRequest, *given: Any, **named: Any) -> Response:
            """See HTTPAdapter."""
            until_s = time.monotonic() + within_s
            response = super().send(request, *given, **named)
            try:
                response._content = _read(response, until_s)
            except BaseException:
                response.close()
                raise
            response._content_consumed = True
            response.raw.release_conn()
            return response

    return BoundedAdapter()


@contextlib.contextmanager
def _cut_after(within_s: float, connected: object) -> Iterator[None]:
    """Cut a connection after so long, and raise TimeoutError: who waits for an answer sees its end then."""
    was_cut = threading.Event()

    def cut() -> None:
        was_cut.set()
        if isinstance(connected, socket.socket):
            with contextlib.suppress(OSError):
                # That of TLS would have the thread that reads go on without it.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(within_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if was_cut.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
    if was_cut.is_set():
        raise TimeoutError


def _read(response: Any, until_s: float) -> bytes:
    from requests import exceptions as told
    from urllib3 import exceptions as found

    blocks: list[bytes] = []
    size_bytes = 0
    try:
        while block := response.raw.read1(_BLOCK_BYTES, decode_content=True):
            blocks.append(block)
            size_bytes += len(block)
            if size_bytes > LARGEST_BYTES:
                raise told.ContentDecodingError(f"its answer is longer than {LARGEST_BYTES >> 20} MiB")
            if time.monotonic() > until_s:
                raise told.ReadTimeout("its answer takes too long")
    except found.ReadTimeoutError as error:
        raise told.ReadTimeout(str(error)) from None
    except found.DecodeError as error:
        raise told.ContentDecodingError(str(error)) from None
    except (found.ProtocolError, found.SSLError, found.HTTPError) as error:
        raise told.ChunkedEncodingError(str(error)) from None
    return b"".join(blocks)
