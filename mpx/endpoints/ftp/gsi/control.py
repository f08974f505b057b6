"""A control channel inside GSI, as a socket: commands go out as ENC, replies come in as 632."""

import base64
import binascii
import socket
import ssl

from mpx.endpoints.ftp.gsi.handshake import LONGEST_LINE_BYTES, GsiHandshake
from mpx.errors import AuthenticationError, ConnectionLost

_OF_A_REPLY = (b"632 ", b"632-")
_NOT_LET_IN = (b"530", b"535")
_MOST_SAID = 200  # characters of what should not have come


class GsiControl(socket.socket):
    """Takes the place of the connection that the handshake was done over; one thread uses it.

    What it gives and takes are FTP's own lines. The greeting, which came before, is given first.
    """

    def __init__(self, connection: socket.socket, done: GsiHandshake, peer: str) -> None:
        """Raises ConnectionLost for what came behind the handshake already and is no reply."""
        super().__init__(fileno=connection.detach())
        self._tls = done.tls
        self._incoming, self._outgoing = done.bios
        self._peer = peer
        self._plain = bytearray(done.banner)
        self._line = done.rest
        self._has_replied = False  # encrypted
        self._open_lines()

    def recv(self, buflen: int, flags: int = 0) -> bytes:
        """Return some bytes of replies; empty at the end. Raises ConnectionLost for what is no reply."""
        while not self._plain:
            data = super().recv(1 << 16, flags)
            if not data:
                return b""
            self._line += data
            self._open_lines()
        found = bytes(self._plain[:buflen])
        del self._plain[:buflen]
        return found

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]  # bytes are what is sent
        """Send whole commands, each in a record of its own."""
        lines = []
        for line in data.splitlines(keepends=True):
            self._tls.write(line)
            lines.append(b"ENC " + base64.b64encode(self._outgoing.read()) + b"\r\n")
        super().sendall(b"".join(lines), flags)

    def _open_lines(self) -> None:
        *ends, rest = self._line.split(b"\n")
        for line in ends:
            self._open(bytes(line).rstrip(b"\r"))
        self._line = rest
        if len(rest) > LONGEST_LINE_BYTES:
            raise ConnectionLost(f"{self._peer} sent a line longer than {LONGEST_LINE_BYTES} bytes")

    def _open(self, line: bytes) -> None:
        """Take one line of a reply out of its record."""
        if not self._has_replied and line.startswith(_NOT_LET_IN):  # some servers refuse a login so
            said = line[4:].decode("utf-8", "replace")[:_MOST_SAID]
            raise AuthenticationError(f"{self._peer} refuses the login, without encryption: {said}")
        if not line.startswith(_OF_A_REPLY):
            raise ConnectionLost(
                f"{self._peer} sent a reply that is not encrypted, which may come from somebody else: "
                f"{line[:_MOST_SAID]!r}"
            )
        self._has_replied = True
        try:
            self._incoming.write(base64.b64decode(line[4:], validate=True))
            while True:
                content = self._tls.read(1 << 16)
                if not content:
                    return
                self._plain += content.replace(b"\0", b"")
        except ssl.SSLWantReadError:
            return
        except (binascii.Error, ValueError, ssl.SSLError) as error:
            why = getattr(error, "reason", None) or "no base64"
            raise ConnectionLost(f"{self._peer} sent a reply that cannot be decrypted: {why}") from None
