"""Bursts of our own data while a path is probed: a profile of observation.PROFILES, repeated.

Section 4.2 of the paper (Anvari and Lu, Computers 10(6):76, 2021). Each burst is a connection of its own, and
is reset at its end: off means off.
"""

import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from mpx.choices import BBR, CUBIC
from mpx.errors import Interrupted, MpxError, UsageError
from mpx.net import tcp, tcp_info
from mpx.net.tls import TlsSocket
from mpx.recognition.observation import ACTIVE, ACTIVE_SHORT, PROFILES, period_s
from mpx.recognition.policy import permitted

SHORT, PAPER = "short", "paper"
PROFILE_KINDS: Mapping[str, str] = MappingProxyType({SHORT: ACTIVE_SHORT, PAPER: ACTIVE})
SINKS = 2  # one is in use while the other is made ready
STEP_S = 0.1  # of the goodput
EXACT = 0.02  # periods: probes leave a little late
_LONGEST_SEND_S = 0.05  # a blocked send returns after that, to check the time
_PIECE_BYTES = 256 * 1024
_TURNS = (CUBIC, BBR, CUBIC)  # of a profile, which ends with a pause


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst; seconds since the begin."""

    from_s: float
    until_s: float
    congestion: str


def bursts(kind: str, window_s: float) -> list[Burst]:
    """Return the bursts of a kind of active probing within a window."""
    lengths = PROFILES[kind]
    found = []
    for turn in range(round(window_s / period_s(kind))):
        at_s = turn * period_s(kind)
        for congestion, length_s in zip(_TURNS, lengths[:-1], strict=False):
            found.append(Burst(at_s, at_s + length_s, congestion))
            at_s += length_s
    return found


def permitted_bursts(planned: Sequence[Burst], why_not: Callable[[str], str]) -> tuple[list[Burst], str]:
    """Return them with permitted congestion controls, and why some differ from the plan, else "".

    `why_not` says why one may not be used. Raises UsageError where nothing may that could stand for it.
    """
    instead = {name: permitted(name, why_not) for name in sorted({burst.congestion for burst in planned})}
    found = []
    for burst in planned:
        taken = instead[burst.congestion].taken
        if taken is None:
            raise UsageError(instead[burst.congestion].refused)
        found.append(replace(burst, congestion=taken))
    return found, "; ".join(each.refused for each in instead.values() if each.refused)


def whole_periods_s(kind: str, window_s: float) -> float:
    """Return a window of whole periods of the bursts of a kind, at least as long as was asked for."""
    each_s = period_s(kind)
    return each_s * max(1, math.ceil(window_s / each_s - EXACT))


@dataclass(frozen=True, slots=True)
class _Arrived:
    """Bytes of all bursts that were acknowledged, and that arrived."""

    acked_bytes: int = 0
    delivered_bytes: int = 0

    @classmethod
    def of(cls, info: tcp_info.TcpInfo) -> "_Arrived":
        """Return the counters of one connection; both are the same where the kernel has only one."""
        return cls(info.bytes_acked, info.delivered_bytes or info.bytes_acked)

    def __add__(self, other: "_Arrived") -> "_Arrived":
        return _Arrived(self.acked_bytes + other.acked_bytes, self.delivered_bytes + other.delivered_bytes)


class BurstReceiver(Protocol):
    """What takes bursts (sink.Sink)."""

    def open(self, congestion: str) -> socket.socket:
        """Return a connection whose data is discarded; raises MpxError."""
        ...

    def closed(self) -> None:
        """Prepare the next connection, after the last one was reset; raises MpxError."""
        ...


class Sender:
    """Sends bursts to sinks in turn.

    `goodput` is what was acknowledged: (seconds since the begin, bit/s of the 0.1 s until then). `delivered`
    is what had arrived by then: what follows a segment that is missing is acknowledged with it, in one lump.
    """

    def __init__(
        self, sinks: Sequence[BurstReceiver], planned: Sequence[Burst], stop: Callable[[], bool]
    ) -> None:
        self.goodput: list[tuple[float, float]] = []
        self.delivered: list[tuple[float, float]] = []
        self.retransmits = 0
        self.trouble = ""  # why the bursts ended early
        self._began_s = 0.0
        self._stop = stop
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[int, socket.socket] = {}
        self._closed = _Arrived()
        self._threads = [
            _thread(f"burst-{number}", self._run, number, sink, planned[number :: len(sinks)])
            for number, sink in enumerate(sinks)
        ]
        self._threads.append(_thread("burst-goodput", self._count))

    def begin(self) -> None:
        """Start with the first burst now."""
        self._began_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop; return when no more is sent."""
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _is_over(self) -> bool:
        return self._ended.is_set() or self._stop() or bool(self.trouble)

    def _run(self, number: int, sink: BurstReceiver, planned: Sequence[Burst]) -> None:
        try:
            for burst in planned:
                if self._wait(burst.from_s):
                    return
                self._send(number, sink, burst)
                if self._is_over():
                    return
                sink.closed()
        except Interrupted:
            return
        except ConnectionError:
            self.trouble = "the server closed the connection"
        except (MpxError, OSError) as error:
            self.trouble = str(error)

    def _wait(self, until_s: float) -> bool:
        """Wait until then; return whether the sender was stopped before."""
        while (left_s := self._began_s + until_s - time.monotonic()) > 0 and not self._is_over():
            self._ended.wait(min(left_s, tcp.STOP_INTERVAL_S))
        return self._is_over()

    def _send(self, number: int, sink: BurstReceiver, burst: Burst) -> None:
        with closing(sink.open(burst.congestion)) as connection:
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, int(_LONGEST_SEND_S * 1e6))
            )
            if isinstance(connection, TlsSocket):  # whose calls wait by themselves
                connection.settimeout(_LONGEST_SEND_S)
            with self._lock:
                self._open[number] = connection
            piece = bytes(_PIECE_BYTES)
            try:
                while time.monotonic() < self._began_s + burst.until_s and not self._is_over():
                    try:
                        connection.send(piece)
                    except BlockingIOError:  # no room for so long
                        continue
                    except TimeoutError as error:  # the same inside TLS
                        if error.errno is not None:
                            raise  # that of the kernel
            finally:
                with self._lock:
                    del self._open[number]
                    info = tcp_info.tcp_info(connection)
                    if info:
                        self._closed += _Arrived.of(info)
                        self.retransmits += info.retransmits

    def _count(self) -> None:
        """Note the goodput, each 0.1 s."""
        before_s, before, step = 0.0, _Arrived(), 1
        while not self._wait(step * STEP_S):
            with self._lock:
                infos = [tcp_info.tcp_info(connection) for connection in self._open.values()]
                now = sum((_Arrived.of(info) for info in infos if info), self._closed)
            now_s = time.monotonic() - self._began_s
            bits_per_s = 8 / (now_s - before_s)
            self.goodput.append((now_s, bits_per_s * (now.acked_bytes - before.acked_bytes)))
            self.delivered.append((now_s, bits_per_s * (now.delivered_bytes - before.delivered_bytes)))
            before_s, before = now_s, now
            step = int(now_s / STEP_S) + 1


def _thread(name: str, target: Callable[..., None], *arguments: object) -> threading.Thread:
    return threading.Thread(target=target, args=arguments, name=f"mpx-{name}", daemon=True)
