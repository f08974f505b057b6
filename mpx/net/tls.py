"""TLS 1.3 over connections of ours: handshakes, names of keys, and a socket that streams use as any other.

A stream is used in one direction by one thread, others only shut it down. Calls of OpenSSL never block: what
waits is a poll of the socket, which ends when another thread shuts the connection down.
"""

import base64
import errno
import hashlib
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mpx.errors import AuthenticationError, ConnectionLost, Interrupted
from mpx.net.der import public_key_info

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

RECORD_BYTES = 16384  # of content, at most (RFC 8446, section 5.1)
RECORD_OVERHEAD_BYTES = 22  # header, type of content and tag, with each cipher of TLS 1.3 that we use
# With AES-GCM no more than 2^24.5 full records under one key (section 5.5); OpenSSL does not take a new one.
MOST_RECORDS = 1 << 24
_REPLACED_AT_RECORDS = MOST_RECORDS - MOST_RECORDS // 16  # what is under way then still fits
_TICK_S = 0.1  # a receive that is to fill its buffer hands over what it has after so long
_STOP_INTERVAL_S = 0.2
_UNKNOWN_CA = (2, 18, 19, 20, 21)  # of X509_V_ERR: no certificate of an issuer, or a self-signed one
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "PACKET_LENGTH_TOO_LONG")


class TlsSocket(ssl.SSLSocket):
    """A connection inside TLS with the calls that our streams make of a socket; made by `secured`.

    A missing close_notify is an error (ssl.SSLEOFError), not an end; see `wrapped`.
    """

    # Python makes the object without calling __init__, so these are its first values:
    _wait_s: float | None = None  # as settimeout() of a socket: None waits for ever
    records = 0  # sent or received under one key, whichever are more
    overhead_bytes = 0  # sent, that are no content
    _received = 0
    _is_over = False  # in both directions, as declared

    @property
    def is_worn(self) -> bool:
        """Whether its key has protected nearly as much as it may, so that another is to take its place."""
        return max(self.records, self._received) >= _REPLACED_AT_RECORDS

    def settimeout(self, value: float | None, /) -> None:
        """How long each call may wait."""
        self._wait_s = value
        super().settimeout(0.0)

    def setblocking(self, flag: bool, /) -> None:
        """See socket.setblocking."""
        self.settimeout(None if flag else 0.0)

    def gettimeout(self) -> float | None:
        """See settimeout."""
        return self._wait_s

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive what one record holds, `buflen` bytes at most; empty at the end that the peer declared."""
        buffer = bytearray(buflen)
        return bytes(buffer[: self.recv_into(buffer, buflen, flags)])

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0) -> int:
        """Receive as a socket with SO_RCVTIMEO does, with the flags 0, MSG_WAITALL and MSG_DONTWAIT.

        Raises TimeoutError, BlockingIOError where flags are given, ssl.SSLError.
        """
        view = memoryview(buffer)
        wanted, got = nbytes or len(view), 0
        until_s = 0.0
        while got < wanted:
            try:
                size = self.read(wanted - got, view[got:])
            except ssl.SSLWantReadError:
                until_s = until_s or time.monotonic() + _TICK_S
                if not self._more_comes(flags, until_s, has_some=got > 0):
                    break
                continue
            except ssl.SSLWantWriteError:  # an answer to a change of keys
                self._wait(select.POLLOUT)
                continue
            except ValueError:
                if self._is_over:
                    break
                raise _not_connected() from None
            except OSError:
                if got:  # what came before counts; the next call says it again
                    break
                raise
            if not size:
                break
            self._received += 1
            got += int(size)
            if not flags:
                break
        return got

    def _more_comes(self, flags: int, until_s: float, *, has_some: bool) -> bool:
        """Wait for more as the flags say, to fill a buffer until then; False if what there is suffices."""
        if flags & socket.MSG_WAITALL and _comes(self, select.POLLIN, max(0.0, until_s - time.monotonic())):
            return time.monotonic() < until_s or not has_some
        if not flags:
            self._wait(select.POLLIN)
            return True
        if not has_some:
            raise BlockingIOError
        return False

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        """Send as much as the kernel takes now, and something at least; BlockingIOError if that may not wait.

        What is refused so is to be sent again as it is, or nothing any more.
        """
        view, sent = memoryview(data), 0
        while sent < len(view):
            try:
                size = self.write(view[sent:])
            except ssl.SSLWantWriteError:
                if sent:
                    break
                if flags & socket.MSG_DONTWAIT:
                    raise BlockingIOError from None
                self._wait(select.POLLOUT)
                continue
            except ValueError:
                raise _not_connected() from None
            records = -(-int(size) // RECORD_BYTES)
            self.records += records
            self.overhead_bytes += records * RECORD_OVERHEAD_BYTES
            sent += int(size)
        return sent

    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        """Send all of it."""
        view = memoryview(data)
        while view:
            view = view[self.send(view, flags) :]

    # That of SSLSocket refuses each call, lest it send in the clear; this one encrypts.
    def sendmsg(self, buffers: "Iterable[ReadableBuffer]", *_: Any) -> int:  # type: ignore[override]
        """Send the beginning of what stands one after the other: one record, so that a header gets none."""
        record = bytearray()
        for each in buffers:
            record += memoryview(each)[: RECORD_BYTES - len(record)]
        self.sendall(record)
        return len(record)

    def shutdown(self, how: int) -> None:
        """End the connection: for writing with a close_notify, from any thread if for both."""
        if how == socket.SHUT_WR:
            self.say_end()
        socket.socket.shutdown(self, how)

    def say_end(self) -> None:
        """Send a close_notify, if the kernel takes it; what the peer says is not waited for."""
        try:
            self.unwrap()
        except (OSError, ValueError):
            return
        self._is_over = True  # the peer had said its own already

    def _wait(self, event: int) -> None:
        """Wait until the socket can go on; raises TimeoutError after the time of `settimeout`."""
        if not _comes(self, event, self._wait_s):
            raise TimeoutError("timed out")


def _not_connected() -> OSError:
    """Return what a plain socket raises that has been cut: Python's own makes it a ValueError."""
    return OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))


def _comes(connection: socket.socket, event: int, wait_s: float | None) -> bool:
    poll = select.poll()
    poll.register(connection, event)
    return bool(poll.poll(None if wait_s is None else wait_s * 1000))


def context(*, server: bool, protocols: Sequence[str]) -> ssl.SSLContext:
    """Return a context for TLS 1.3 and nothing older, in which nobody is trusted yet.

    `protocols`: what may be spoken inside (ALPN).
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.sslsocket_class = TlsSocket
    if server:
        # A sender would never read them, and what nobody reads turns a close into a reset.
        made.num_tickets = 0
    else:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols(protocols)
    return made


def load_pem(made: ssl.SSLContext, pem: str) -> None:
    """Have a context show this certificate with its key (PEM), and take no peer that does not show the same.

    They are in memory only. Raises OSError, ssl.SSLError among them.
    """
    show_key(made, pem)
    made.load_verify_locations(cadata=pem)
    made.verify_mode = ssl.CERT_REQUIRED


def show_key(made: ssl.SSLContext, pem: str) -> None:
    """Have a context show this certificate with its key (PEM), which are in memory only; raises OSError."""
    fd = os.memfd_create("mpx-key", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem.encode("ascii"))
        made.load_cert_chain(f"/proc/self/fd/{fd}", password="")  # which takes names of files only
    finally:
        os.close(fd)


def wrapped(
    connection: socket.socket,
    made: ssl.SSLContext,
    *,
    server: bool,
    name: str = "",
    may_end_unsaid: bool = False,
) -> TlsSocket:
    """Return a connection inside TLS, before its handshake; it takes the place of `connection`.

    `may_end_unsaid`: an end without a close_notify is taken for one; what passes says itself where it ends.
    """
    found = made.wrap_socket(
        connection,
        server_side=server,
        do_handshake_on_connect=False,
        suppress_ragged_eofs=may_end_unsaid,
        server_hostname=name or None,
    )
    assert isinstance(found, TlsSocket)
    return found


def secured(
    connection: socket.socket,
    made: ssl.SSLContext,
    peer: str,
    timeout_s: float,
    *,
    name: str = "",
    in_the_clear: str = "ftp://",
    unknown_ca: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> TlsSocket:
    """Begin TLS over a connection that we have opened; closed if that fails.

    `name`: of the host, where its certificate is to bear it. `in_the_clear`: what a user writes for a server
    without TLS; `unknown_ca`: what to do where nobody vouches for it whom we trust.

    Raises AuthenticationError for a certificate that is not valid and for who does not speak TLS,
    ConnectionLost, Interrupted.
    """
    found: socket.socket = connection
    try:
        found = wrapped(connection, made, server=False, name=name)
        finish_handshake(found, timeout_s, stop)
        return found
    except ssl.SSLCertVerificationError as error:
        found.close()
        what_to_do = f"; {unknown_ca}" if unknown_ca and error.verify_code in _UNKNOWN_CA else ""
        raise AuthenticationError(
            f"the certificate of {peer} is not valid: {error.verify_message}{what_to_do}"
        ) from None
    except ssl.SSLError as error:
        found.close()
        if error.reason in NO_TLS:
            raise AuthenticationError(
                f"{peer} does not answer in TLS, so nothing was sent; check host and port, and write "
                f"{in_the_clear} for a server in the clear"
            ) from None
        is_closed = isinstance(error, ssl.SSLEOFError)
        why = "it closed the connection" if is_closed else error.reason or error.strerror
        raise ConnectionLost(f"no TLS with {peer}: {why}") from None
    except TimeoutError:
        found.close()
        raise ConnectionLost(f"no TLS with {peer} within {timeout_s:g} s") from None
    except OSError as error:
        found.close()
        raise ConnectionLost(f"no TLS with {peer}: {error.strerror or error}") from None
    except BaseException:
        found.close()
        raise


def is_spoken(connection: socket.socket, name: str, timeout_s: float, stop: Callable[[], bool]) -> bool:
    """Tell whether TLS is spoken at the other end of a connection that we have opened, which is closed.

    `name`: of the host. Raises Interrupted.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.sslsocket_class = TlsSocket
    found: socket.socket = connection
    try:
        found = wrapped(connection, made, server=False, name=name)
        finish_handshake(found, timeout_s, stop)
        return True
    except OSError:
        return False
    finally:
        found.close()


def finish_handshake(
    connection: TlsSocket, timeout_s: float, stop: Callable[[], bool] = lambda: False
) -> None:
    """Do a handshake, as client or server; the connection blocks afterwards.

    Raises TimeoutError, Interrupted soon after `stop` says so, and OSError.
    """
    until_s = time.monotonic() + timeout_s
    connection.settimeout(0.0)
    while True:
        event = select.POLLIN
        try:
            connection.do_handshake()
            connection.settimeout(None)
            return
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            event = select.POLLOUT
        while not _comes(connection, event, min(_STOP_INTERVAL_S, max(0.0, until_s - time.monotonic()))):
            if stop():
                raise Interrupted
            if time.monotonic() >= until_s:
                raise TimeoutError
        if time.monotonic() >= until_s:  # whoever sends byte after byte is not waited for either
            raise TimeoutError


def key_name(certificate: bytes) -> str:
    """Return the name of the public key of a certificate (DER): SHA-256 in URL-safe base64, 43 characters.

    Raises ValueError for what is no certificate.
    """
    digest = hashlib.sha256(public_key_info(certificate)).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def peer_key_name(connection: ssl.SSLSocket) -> str:
    """Return the name of the key that the peer has proven to have; ConnectionLost if it showed none."""
    try:
        return key_name(connection.getpeercert(binary_form=True) or b"")
    except ValueError as error:
        raise ConnectionLost(f"the peer's certificate cannot be read: {error}") from None
