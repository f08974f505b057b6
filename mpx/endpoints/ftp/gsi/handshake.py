"""AUTH GSSAPI: a TLS handshake inside FTP commands, as GridFTP servers want it.

    > AUTH GSSAPI              < 334
    > ADAT <TLS records>       < 335 ADAT=<TLS records>      until both are through
    > ADAT <TLS of "0" or "D"> < 235                         "D": a proxy is delegated, in one exchange more

What goes out does not wait for what it need not wait for: AUTH and the first ADAT go before the greeting, the
last ones together with the login. A login takes two round trips so.
"""

import base64
import binascii
import contextlib
import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence

from cryptography import x509

from mpx.endpoints.ftp.refusals import check_first, if_tls
from mpx.endpoints.ftp.wire import Reply, ReplyReader
from mpx.errors import AuthenticationError, ConnectionLost, SessionEnded, TransferTimeout
from mpx.net import tcp
from mpx.net.x509.trust import verified_chain

LONGEST_LINE_BYTES = 1 << 20  # of a reply; a chain of certificates takes some 10 KiB
_CHOSEN, _GO_ON, _IN = 334, 335, 235
_KEPT, _DELEGATES = b"0", b"D"
_AUTH = b"AUTH GSSAPI\r\n"
_RECORDS = re.compile(r"ADAT=(\S*)")
_MOST_SAID = 1000  # characters of why a server refuses
QUIET_S = 5.0  # without an answer, after which what went out before the greeting is taken for lost


class GsiHandshake:
    """One handshake over one connection that was just opened; the caller closes it if this fails."""

    def __init__(
        self,
        connection: socket.socket,
        context: ssl.SSLContext,
        peer: str,
        host: str,
        trusted: str,
        check: Callable[[Sequence[x509.Certificate]], None],
        timeout_s: float,
        stop: Callable[[], bool],
    ) -> None:
        """`trusted`: where the CAs are, for people. `check` gets the server's chain before ours is sent."""
        self._trusted, self._check, self._is_checked = trusted, check, False
        self.banner = b""  # the greeting, as it came
        self.rest = bytearray()  # what came behind the last reply
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._connection, self._peer = connection, peer
        self._has_ours = False  # the server may have our certificate
        self._has_heard = False  # something of the server
        self._until_s, self._timeout_s, self._stop = time.monotonic() + timeout_s, timeout_s, stop

    def begin(self, *, together: bool) -> None:
        """Exchange certificates; ours was not sent yet, or is on its way, when this returns.

        `together`: without waiting for the greeting, and for the answer to AUTH. Raises AuthenticationError
        where the server speaks no GSI or has no certificate that OpenSSL takes, SessionEnded, ConnectionLost,
        TransferTimeout, Interrupted.
        """
        self._step()
        hello = _adat(self._outgoing.read())
        if together:
            self._send(_AUTH + hello)
        greeting = self._reply(keep=True)
        while greeting.is_preliminary:
            greeting = self._reply(keep=True)
        if greeting.code != 220:
            raise SessionEnded(f"{self._peer} refused the connection: {greeting.reason}")
        if not together:
            self._send(_AUTH)
        chosen = self._chosen() if together else self._reply()
        if chosen.code != _CHOSEN:
            raise AuthenticationError(
                f"{self._peer} does not speak GSI; if it admits clients in the clear, write ftp://; it says: "
                f"{chosen.code} {chosen.reason}"
            )
        if not together:
            self._send(hello)
        is_done = False
        while not is_done:
            self._incoming.write(self._answer())
            is_done = self._step()
            if not self._is_checked and (chain := verified_chain(self.tls)):
                self._check(chain)
                self._is_checked = True
            if not is_done:
                self._send(_adat(self._outgoing.read()))
                self._has_ours = self._is_checked
        if not self._is_checked:
            raise AuthenticationError(f"{self._peer} has shown no certificate")

    def _chosen(self) -> Reply:
        """Return the answer to AUTH; a server that has lost it, as it came too early, is not given long."""
        until_s, self._until_s = self._until_s, min(self._until_s, time.monotonic() + QUIET_S)
        try:
            return self._reply()
        except TransferTimeout as error:
            raise ConnectionLost(str(error)) from None
        finally:
            self._until_s = until_s

    def finish(self, delegate: Callable[[bytes], bytes] | None) -> None:
        """Prove who we are, which `begin` has prepared.

        `delegate` makes a proxy certificate (DER) of a request. Raises as `begin`, and AuthenticationError
        where the server does not take our certificate.
        """
        self._has_ours = True
        last = self._outgoing.read()  # with TLS 1.2 it is with the server already
        self.tls.write(_DELEGATES if delegate else _KEPT)
        lines = [_adat(last)] if last else []
        self._send(b"".join([*lines, _adat(self._outgoing.read())]))
        if last:
            self._incoming.write(self._answer(may_lack=True))
        if delegate:
            self.tls.write(delegate(self._request()))
            self._send(_adat(self._outgoing.read()))
        done = self._reply()
        if done.code != _IN:
            raise self._refused(done)

    def _request(self) -> bytes:
        """Return the server's request for a proxy: what follows the zero byte that says that it is done."""
        self._incoming.write(self._answer())
        while True:
            try:
                if found := self.tls.read(1 << 16).lstrip(b"\0"):
                    return found
            except ssl.SSLWantReadError:
                self._incoming.write(self._answer())
            except ssl.SSLError as error:
                why = error.reason or error.strerror
                raise ConnectionLost(f"no TLS with {self._peer}: {why}") from None

    @property
    def bios(self) -> tuple[ssl.MemoryBIO, ssl.MemoryBIO]:
        """Where records that come go to, and those that are to go out come from."""
        return self._incoming, self._outgoing

    def _step(self) -> bool:
        """Go on with the handshake; True when our side is through."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationError(
                f"the certificate of {self._peer} is not valid: {error.verify_message}; the CAs that you "
                f"trust are in {self._trusted} (--ca, X509_CERT_DIR)"
            ) from None
        except ssl.SSLError as error:
            raise AuthenticationError(f"no TLS with {self._peer}: {error.reason or error.strerror}") from None
        return True

    def _answer(self, *, may_lack: bool = False) -> bytes:
        """Return the records of the next answer to ADAT; `may_lack`: there need not be any."""
        reply = self._reply()
        if reply.code != _GO_ON:
            raise self._refused(reply)
        found = _RECORDS.search(reply.text)
        try:
            records = base64.b64decode(found.group(1) if found else "", validate=True)
        except (binascii.Error, ValueError):
            records = b""
        if not records and not may_lack:
            raise ConnectionLost(f"{self._peer} sent nothing that can be read in its answer to ADAT")
        return records

    def _refused(self, reply: Reply) -> AuthenticationError:
        words = f"{reply.code} {_RECORDS.sub('', reply.text).strip()}"[:_MOST_SAID]
        what = "does not take our certificate" if self._has_ours else "refused the handshake"
        return AuthenticationError(f"{self._peer} {what}: {words}")

    def _send(self, data: bytes) -> None:
        """Send it; where that fails what the server has said before tells why, and is read next."""
        with contextlib.suppress(OSError):
            self._connection.settimeout(max(0.001, self._until_s - time.monotonic()))
            self._connection.sendall(data)

    def _reply(self, *, keep: bool = False) -> Reply:
        """Read one reply, byte by byte no further than to its end; `keep` it as the greeting, too."""
        reader = ReplyReader()
        while True:
            line = self._line()
            if keep:
                self.banner += line
                if len(self.banner) > LONGEST_LINE_BYTES:
                    raise ConnectionLost(f"{self._peer} does not end its greeting")
            try:
                found = reader.feed(line)
            except ValueError as error:
                raise ConnectionLost(f"{self._peer} does not speak FTP: {error}") from None
            if found:
                return found[0]

    def _line(self) -> bytes:
        while (end := self.rest.find(b"\n") + 1) == 0:
            if len(self.rest) > LONGEST_LINE_BYTES:
                raise ConnectionLost(f"{self._peer} sent a line longer than {LONGEST_LINE_BYTES} bytes")
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                raise TransferTimeout(f"{self._peer} did not end the handshake within {self._timeout_s:g} s")
            data = self._receive(left_s)
            if not self._has_heard:
                check_first(data, self._peer)
                self._has_heard = True
            self.rest += data
        line = bytes(self.rest[:end])
        del self.rest[:end]
        return line

    def _receive(self, left_s: float) -> bytes:
        try:
            data = tcp.receive(self._connection, left_s, self._peer, self._stop)
            if not data:
                raise ConnectionLost(f"{self._peer} closed the connection")
        except (ConnectionLost, TransferTimeout) as error:
            if self._has_heard:
                raise
            raise type(error)(f"{error}{if_tls(self._peer)}") from None
        return data


def _adat(records: bytes) -> bytes:
    return b"ADAT " + base64.b64encode(records) + b"\r\n"
