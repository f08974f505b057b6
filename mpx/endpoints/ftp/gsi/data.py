"""Data connections with GSI: TLS for all that passes (PROT P), or for showing who is there alone (PROT C).

Who opens the TCP connection is the client of TLS, whichever way the data go. With PROT C both show their
certificates, say in one byte each that they are through and that nothing is delegated, and go on in clear.

A Globus server ends a connection without saying so inside TLS. Whether all has come shows elsewhere: in
MODE E by its own marks, of a file by its size and checksum, of a listing by the number of its entries.
"""

import socket
import ssl
import time
from collections.abc import Callable

from mpx.endpoints.ftp.secured import NotSecured
from mpx.errors import AuthenticationError
from mpx.net import tcp, tls
from mpx.net.dial import Dial

_HEADER_BYTES = 5  # of a TLS record; the last two say how long it is
_DONE, _NO_DELEGATION = b"\0", b"0"
Check = Callable[[ssl.SSLObject | ssl.SSLSocket], None]
Show = Callable[[ssl.SSLContext], None]


class GsiData:
    """How the data connections of one session begin; from any thread.

    `show` has a context show our certificate, and trust what the server is to show. `check` raises
    AuthenticationError for a peer that is not the server. `is_private`: all that passes is encrypted.
    """

    def __init__(self, peer: str, show: Show, check: Check, *, is_private: bool, advice: str = "") -> None:
        """`advice`: what to do about a server that has no TLS there."""
        self._peer, self._check, self._is_private, self._advice = peer, check, is_private, advice
        self._contexts = {is_server: self._context(show, is_server=is_server) for is_server in (False, True)}

    @staticmethod
    def _context(show: Show, *, is_server: bool) -> ssl.SSLContext:
        made = tls.context(server=is_server, protocols=())
        made.minimum_version = ssl.TLSVersion.TLSv1_2  # servers of older systems
        made.options |= ssl.OP_NO_TICKET  # which would come in the middle of data
        made.check_hostname = False
        show(made)
        made.verify_mode = ssl.CERT_REQUIRED
        return made

    def open(
        self, address: tcp.Address, dial: Dial, timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """See Dialer."""
        return self._begin(dial.connect(address), timeout_s, stop, is_server=False)

    def accept(self, connection: socket.socket, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection that came in, ready for data; closed if it is not the server's.

        Raises AuthenticationError, ConnectionLost, Interrupted.
        """
        return self._begin(connection, timeout_s, stop, is_server=True)

    def _begin(
        self, connection: socket.socket, timeout_s: float, stop: Callable[[], bool], *, is_server: bool
    ) -> socket.socket:
        found, context = connection, self._contexts[is_server]
        try:
            if self._is_private:
                found = tls.wrapped(connection, context, server=is_server, may_end_unsaid=True)
                tls.finish_handshake(found, timeout_s, stop)
                self._check(found)
                return found
            shown = _InRecords(connection, context, self._peer, timeout_s, stop, is_server=is_server)
            shown.handshake()
            self._check(shown.tls)
            shown.leave(is_server=is_server)
            connection.settimeout(None)
            return found
        except ssl.SSLError as error:
            found.close()
            if error.reason in tls.NO_TLS and not is_server:
                raise AuthenticationError(
                    f"{self._peer} does not authenticate its data connections{self._advice}"
                ) from None
            why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.reason
            raise NotSecured(
                f"no TLS on a data connection with {self._peer}: {why or error.strerror}"
            ) from None
        except TimeoutError:
            found.close()
            raise NotSecured(
                f"no TLS on a data connection with {self._peer} within {timeout_s:g} s"
            ) from None
        except OSError as error:
            found.close()
            raise NotSecured(
                f"a data connection with {self._peer} was lost: {error.strerror or error}"
            ) from None
        except BaseException:
            found.close()
            raise


class _InRecords:
    """TLS over a connection that is used without it afterwards: no byte is read beyond the last record."""

    def __init__(
        self,
        connection: socket.socket,
        context: ssl.SSLContext,
        peer: str,
        timeout_s: float,
        stop: Callable[[], bool],
        *,
        is_server: bool,
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._connection, self._peer, self._stop = connection, peer, stop
        self._until_s = time.monotonic() + timeout_s

    def handshake(self) -> None:
        """Go through it; what we say last may still be unsent."""
        while True:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self._flush()
                self._incoming.write(self._record())

    def leave(self, *, is_server: bool) -> None:
        """Say that we are through, and hear so; then the connection is in the clear."""
        is_quiet = self.tls.version() == "TLSv1.2"  # who finishes last has said it so
        if is_server:
            if not is_quiet:
                self.tls.write(_DONE)
            self._flush()
            self._expect(_NO_DELEGATION)
            return
        self._flush()
        if not is_quiet:
            self._expect(_DONE)
        self.tls.write(_NO_DELEGATION)
        self._flush()

    def _expect(self, wanted: bytes) -> None:
        """Read one byte of content."""
        while True:
            try:
                said = self.tls.read(len(wanted) + 1)
            except ssl.SSLWantReadError:
                self._incoming.write(self._record())
                continue
            if said != wanted:
                raise AuthenticationError(f"a data connection began with {said!r} and not {wanted!r}")
            return

    def _flush(self) -> None:
        self._connection.settimeout(max(0.001, self._until_s - time.monotonic()))
        self._connection.sendall(self._outgoing.read())

    def _record(self) -> bytes:
        header = self._exactly(_HEADER_BYTES)
        return header + self._exactly(int.from_bytes(header[3:], "big"))

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            more = tcp.receive(self._connection, left_s, self._peer, self._stop, size - len(found))
            if not more:
                raise NotSecured(f"{self._peer} closed a data connection in its handshake")
            found += more
        return found
