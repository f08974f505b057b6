"""Replaces addresses in FTP's commands and replies by the proxy's, so that data connections pass through it.

Server's replies:   227 (h,h,h,h,p,p)   229 (|||port|)   229- with one address per line (SPAS)
                    and 127/129, the same after `OPTS PASV AllowDelayed=1;`
Client's commands:  PORT h,h,h,h,p,p    EPRT |1|host|port|    SPOR with one or several addresses

Nothing here does I/O: whoever owns the control connection passes a function that opens a listener.
A control channel in GSI (ENC, 632) is passed on unread, so its data connections go past the proxy.
"""

import re
from collections.abc import Callable

Address = tuple[str, int]
OpenListener = Callable[[str, int], Address]
"""Takes the address that a peer announced (host "": the peer itself), returns the one to send instead."""

LONGEST_LINE = 1 << 20
_SIX_NUMBERS = re.compile(rb"(?<![\d,])(\d{1,3}(?:,\d{1,3}){5})(?![\d,])")
_EXTENDED = re.compile(rb"\|([12]?)\|([0-9A-Fa-f.:]*)\|(\d{1,5})\|")
_PASSIVE = {b"127", b"129", b"227", b"229"}
_ACTIVE = {b"PORT", b"EPRT", b"SPOR"}


class LineRewriter:
    """Turns what arrives on one direction of a control channel into whole, rewritten lines."""

    def __init__(self, open_listener: OpenListener, *, from_server: bool) -> None:
        self._open_listener = open_listener
        self._is_ours = self._in_passive_reply if from_server else self._is_active_command
        self._partial = bytearray()
        self._reply_code: bytes | None = None  # of the multi-line reply that is under way

    def feed(self, data: bytes) -> bytes:
        """Return the complete lines so far; the rest waits, unless no FTP line can be that long."""
        *ends, rest = data.split(b"\n")
        whole = bytearray()
        for end in ends:
            whole += self._rewrite(self.flush() + end) + b"\n"
        self._partial += rest
        return bytes(whole) + (self.flush() if len(self._partial) > LONGEST_LINE else b"")

    def flush(self) -> bytes:
        """Return what is left without a line end when the peer has closed."""
        partial, self._partial = self._partial, bytearray()
        return bytes(partial)

    def _rewrite(self, line: bytes) -> bytes:
        if not self._is_ours(line):
            return line
        return _EXTENDED.sub(self._extended, _SIX_NUMBERS.sub(self._six_numbers, line))

    def _in_passive_reply(self, line: bytes) -> bool:
        code = self._reply_code or line[:3]
        if self._reply_code is None and line[3:4] == b"-":
            self._reply_code = code
        elif line[:4] == code + b" ":
            self._reply_code = None
        return code in _PASSIVE

    @staticmethod
    def _is_active_command(line: bytes) -> bool:
        return line[:4].upper() in _ACTIVE and line[4:5] == b" "

    def _six_numbers(self, match: re.Match[bytes]) -> bytes:
        numbers = [int(number) for number in match[1].split(b",")]
        port = numbers[4] * 256 + numbers[5]
        if max(numbers) > 255 or not port:
            return match[0]
        host, port = self._open_listener(".".join(map(str, numbers[:4])), port)
        return f"{host.replace('.', ',')},{port >> 8},{port & 255}".encode()

    def _extended(self, match: re.Match[bytes]) -> bytes:
        family, announced, port = match[1], match[2].decode(), int(match[3])
        if not 0 < port < 65536:
            return match[0]
        host, port = self._open_listener(announced, port)
        return b"|%s|%s|%d|" % (family, host.encode() if announced else b"", port)
