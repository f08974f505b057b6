"""Sends over TCP streams, without a pause or on and off, and keeps a record of every connection."""

import contextlib
import dataclasses
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mpx.errors import ConnectionLost, Interrupted, MpxError
from mpx.net import congestion_control, tcp
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, next_tick, now_s
from mpx_lab.traffic.schedule import Phase
from mpx_lab.traffic.tcp_samples import TcpSample, sample

CONNECT_TIMEOUT_S = 30.0
STREAM = struct.Struct("!I")  # what every connection sends first: the number of its stream
_PIECE_BYTES = 256 * 1024
_LONGEST_SEND_S = 0.05  # a send that waits for room returns after that to check the time
RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # struct linger

Fill = Callable[[socket.socket, float, Ending], None]  # sends over a connection until a time, or the end


@dataclass(slots=True)
class SenderConnection:
    """One connection, from when it was open until it was cut; seconds since the epoch of the run."""

    stream: int
    congestion: str
    opened_s: float
    closed_s: float
    bytes_acked: int
    retransmits: int


class TcpSender:
    """Streams that all send during the same periods."""

    def __init__(
        self, address: tcp.Address, congestion: str, streams: int, epoch_s: float, fill: Fill | None = None
    ) -> None:
        self._fill = fill or _fill
        self.connections: list[SenderConnection] = []
        self._address = address
        self._congestion = congestion
        self._streams = streams
        self._epoch_s = epoch_s
        self._open: dict[int, tuple[socket.socket, str]] = {}
        self._edges: list[tuple[float, int, int]] = []  # time, stream, 1 or 0
        self._failure: MpxError | None = None

    def run(
        self, pattern: Callable[[], Iterable[Phase]], began_s: float, ending: Ending, folder: Path, name: str
    ) -> None:
        """Send in each period of the pattern until told to end; raises MpxError if a connection is lost.

        The pattern counts from `began_s`, however late this is called.
        """
        threads = [
            threading.Thread(target=self._stream, args=(number, pattern(), began_s, ending), daemon=True)
            for number in range(self._streams)
        ]
        for thread in threads:
            thread.start()
        columns = ["t_s", "stream", *(field.name for field in dataclasses.fields(TcpSample))]
        with (
            Log(folder / f"{name}.tcp.csv", columns, self._epoch_s) as log,
            Log(folder / f"{name}.phases.csv", ["t_s", "stream", "on"], self._epoch_s) as edges,
        ):
            while not (ending.wait(next_tick(now_s(), self._epoch_s)) or self._failure):
                self._write(log, edges)
            if self._failure is None:
                for thread in threads:
                    thread.join()
            self._write(log, edges)
        if self._failure:
            raise self._failure

    def _write(self, log: Log, edges: Log) -> None:
        while self._edges:
            at_s, stream, on = self._edges.pop(0)
            edges.line(at_s, stream, on)
        for stream, (connection, congestion) in sorted(self._open.copy().items()):
            looked = sample(connection, congestion)
            if looked:
                log.line(now_s(), stream, *dataclasses.astuple(looked))

    def _stream(self, number: int, stretches: Iterable[Phase], began_s: float, ending: Ending) -> None:
        try:
            for stretch in stretches:
                if ending.wait(began_s + stretch.on_s):
                    return
                self._send(number, began_s + stretch.off_s, ending)
                if ending():
                    return
        except Interrupted:
            return
        except MpxError as error:
            self._failure = error
        except OSError as error:
            where = tcp.show(self._address)
            self._failure = ConnectionLost(
                f"background traffic lost its stream {number} to {where}: {error.strerror or error}; "
                "see whether the receiver still runs"
            )

    def _send(self, number: int, until_s: float, ending: Ending) -> None:
        """Open a connection and fill it; it is reset at the end, so that nothing is sent later."""
        self._edges.append((now_s(), number, 1))
        with contextlib.closing(connect(self._address, self._congestion, ending)) as connection:
            congestion = congestion_control.congestion_of(connection)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            record = SenderConnection(number, congestion, now_s() - self._epoch_s, 0.0, 0, 0)
            self._open[number] = connection, congestion
            try:
                connection.sendall(STREAM.pack(number))
                self._fill(connection, until_s, ending)
            finally:
                self._open.pop(number)
                looked = sample(connection, congestion)
                if looked:
                    record.bytes_acked, record.retransmits = looked.bytes_acked, looked.retransmits
        self._edges.append((now_s(), number, 0))
        record.closed_s = now_s() - self._epoch_s
        self.connections.append(record)


def connect(address: tcp.Address, congestion: str, ending: Ending) -> socket.socket:
    """Open a connection to a receiver; raises ConnectionLost, UsageError or Interrupted."""
    try:
        return tcp.connect(address, CONNECT_TIMEOUT_S, congestion=congestion or None, stop=ending)
    except OSError as error:
        where = tcp.show(address)
        raise ConnectionLost(
            f"background traffic cannot reach {where}: {error.strerror or error}; "
            "see whether the receiver runs there and a route leads to it"
        ) from None


def _fill(connection: socket.socket, until_s: float, ending: Ending) -> None:
    piece = bytes(_PIECE_BYTES)
    waits_s = 0.0
    while (left_s := until_s - now_s()) > 0 and not ending():
        # Blocking, with a timeout in the kernel: polling would cost one more wake-up per send.
        if waits_s != (waits_s := min(_LONGEST_SEND_S, max(0.001, left_s))):
            limit = struct.pack("ll", 0, int(waits_s * 1e6))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        with contextlib.suppress(BlockingIOError):  # no room for so long
            connection.send(piece)
