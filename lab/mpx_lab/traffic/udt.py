"""A UDT stream (Gu and Grossman, UDT4), by libudt through ctypes.

Reliable, over UDP, with its own rate control instead of TCP's window. The XIO driver of GridFTP is no
alternative: it falls back to TCP without a message.
"""

import contextlib
import ctypes
import socket
import struct
import threading
from pathlib import Path

from mpx.errors import ConnectionLost, MpxError
from mpx.net import tcp
from mpx_lab.simulated import is_simulated
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, now_s

LIBRARY = "libudt.so.0"
_FAILED = -1
_PIECE_BYTES = 256 * 1024
_WINDOW_PACKETS = 65_536  # of 1500 bytes; the default, 25,600, is less than a long path needs
_BUFFER_BYTES = 64 << 20
_FC, _SNDBUF, _RCVBUF, _LINGER, _SNDTIMEO, _RCVTIMEO = 4, 5, 6, 7, 13, 14  # udt.h: enum UDTOpt
_WAIT_MS = 50  # a wait returns after that to check the time
_CONNECTED = 5  # udt.h: enum UDTSTATUS


class Library:
    """The functions of libudt that are needed, by their C++ names."""

    def __init__(self) -> None:
        """Raise MpxError where there is none, and in simulated time."""
        if is_simulated():
            raise MpxError(
                "UDT reads the processor's cycle counter, which is not simulated; run this without "
                "mpx lab simulate"
            )
        try:
            self._udt = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise MpxError(f"libudt cannot be loaded ({error}); on Debian: apt-get install libudt0") from None
        self.call("startup", "v")

    def _named(self, name: str, arguments: str) -> "ctypes._NamedFuncPointer":
        function: ctypes._NamedFuncPointer = self._udt[f"_ZN3UDT{len(name)}{name}E{arguments}"]
        return function

    def call(self, name: str, signature: str, *arguments: object) -> int:
        """Call a function and return its result, -1 where it failed."""
        found: int = self._named(name, signature)(*arguments)
        return found

    def error(self) -> str:
        """Return why the last call failed."""
        function = self._named("getlasterror_desc", "v")
        function.restype = ctypes.c_char_p
        said: bytes = function()
        return said.decode("ascii", "replace").strip()

    def socket(self, family: int) -> int:
        """Return a new socket, with buffers for long paths and short waits; raises MpxError."""
        made = self.call("socket", "iii", family, int(socket.SOCK_STREAM), 0)
        if made == _FAILED:
            raise MpxError(f"no UDT socket: {self.error()}")
        options = ((_FC, _WINDOW_PACKETS), (_SNDBUF, _BUFFER_BYTES), (_RCVBUF, _BUFFER_BYTES))
        for option, value in (*options, (_SNDTIMEO, _WAIT_MS), (_RCVTIMEO, _WAIT_MS)):
            self._set(made, option, struct.pack("i", value))
        self._set(made, _LINGER, struct.pack("ii", 0, 0))  # closing does not wait for unsent data
        return made

    def _set(self, made: int, option: int, value: bytes) -> None:
        self.call("setsockopt", "ii6UDTOptPKvi", made, 0, option, value, len(value))


class UdtSender:
    """One stream that sends without a pause."""

    def __init__(self, address: tcp.Address, epoch_s: float) -> None:
        self._address = address
        self._epoch_s = epoch_s

    def run(self, ending: Ending, folder: Path, name: str) -> None:
        """Send until told to end; raises ConnectionLost where nobody answers or the stream breaks."""
        udt = Library()
        made = udt.socket(tcp.family_of(self._address[0]))
        piece = bytes(_PIECE_BYTES)
        with Log(folder / f"{name}.phases.csv", ["t_s", "stream", "on"], self._epoch_s) as edges:
            edges.line(now_s(), 0, 1)
            where = socket_address(self._address)
            if udt.call("connect", "iPK8sockaddri", made, where, len(where)) == _FAILED:
                raise ConnectionLost(f"UDT cannot reach {tcp.show(self._address)}: {udt.error()}")
            while not ending():
                sent = udt.call("send", "iPKcii", made, piece, len(piece), 0)
                if sent == _FAILED and not _is_open(udt, made):  # else the buffer was full until the timeout
                    raise ConnectionLost(f"the UDT stream to {tcp.show(self._address)} broke: {udt.error()}")
            edges.line(now_s(), 0, 0)
        udt.call("close", "i", made)


class UdtSink:
    """Takes any number of UDT streams, a thread for each."""

    def __init__(self, address: tcp.Address) -> None:
        self._udt = Library()
        self._listener = self._udt.socket(tcp.family_of(address[0]))
        self.port = _free_port(address)
        where = socket_address((address[0], self.port))
        bound = self._udt.call("bind", "iPK8sockaddri", self._listener, where, len(where))
        if _FAILED in (bound, self._udt.call("listen", "ii", self._listener, 16)):
            raise MpxError(f"UDT cannot listen on {tcp.show((address[0], self.port))}: {self._udt.error()}")
        self._lock = threading.Lock()
        self._totals: dict[int, int] = {}
        self._closed = False
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def totals(self) -> dict[int, int]:
        """Return the bytes that arrived so far, by stream."""
        with self._lock:
            return dict(self._totals)

    def failure(self) -> str:
        """Nothing that a sender does ends it."""
        return ""

    def close(self) -> None:
        """Take no more."""
        self._closed = True
        self._udt.call("close", "i", self._listener)

    def _accept(self) -> None:
        while not self._closed:
            taken = self._udt.call("accept", "iP8sockaddrPi", self._listener, None, None)
            if taken != _FAILED:
                threading.Thread(target=self._receive, args=(taken,), daemon=True).start()

    def _receive(self, taken: int) -> None:
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        with self._lock:
            stream = len(self._totals)
            self._totals[stream] = 0
        while not self._closed:
            received = self._udt.call("recv", "iPcii", taken, buffer, _PIECE_BYTES, 0)
            if received == _FAILED and not _is_open(self._udt, taken):
                return
            with self._lock:
                self._totals[stream] += max(0, received)


def _is_open(udt: Library, made: int) -> bool:
    return udt.call("getsockstate", "i", made) == _CONNECTED


def _free_port(address: tcp.Address) -> int:
    with contextlib.closing(socket.socket(tcp.family_of(address[0]), socket.SOCK_DGRAM)) as probe:
        probe.bind((address[0], 0))
        port: int = probe.getsockname()[1]
        return port


def socket_address(address: tcp.Address) -> bytes:
    """Return a struct sockaddr_in or sockaddr_in6."""
    host, port = address
    family = tcp.family_of(host)
    packed = socket.inet_pton(family, host)
    if family == socket.AF_INET6:
        return struct.pack("=HHI16sI", family, socket.htons(port), 0, packed, 0)
    return struct.pack("=HH4s8x", family, socket.htons(port), packed)
