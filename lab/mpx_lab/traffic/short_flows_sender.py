"""Short flows: connections that begin on schedule, whether or not earlier ones have ended."""

import errno
import os
import selectors
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpx.errors import ConnectionLost
from mpx.net import congestion_control, tcp
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, now_s
from mpx_lab.traffic.schedule import Arrival
from mpx_lab.traffic.tcp_samples import sample
from mpx_lab.traffic.tcp_sender import RESET_AT_CLOSE, STREAM

MOST_AT_ONCE = 1000  # beyond that the network is overloaded, and flows are left out
COLUMNS = ("t_s", "due_s", "size_bytes", "duration_s", "retransmits")
_PIECE = bytes(64 * 1024)
_LOOK_S = 0.05
_CONNECTING = (0, errno.EINPROGRESS)


@dataclass(slots=True)
class _Flow:
    arrival: Arrival
    began_s: float
    left: int  # bytes not yet handed to the kernel


class ShortFlowsSender:
    """One thread that serves all flows; the counters are complete once `run` has returned."""

    def __init__(self, address: tcp.Address, congestion: str, epoch_s: float) -> None:
        self.flows = 0
        self.finished = 0  # the receiver got all of it
        self.broken = 0  # refused or reset
        self.left_out = 0  # because too many were open
        self._address = address
        self._congestion = congestion
        self._epoch_s = epoch_s
        self._selector = selectors.DefaultSelector()

    def run(self, flows: Iterator[Arrival], ending: Ending, folder: Path, name: str) -> None:
        """Open flows on schedule until told to end; raises ConnectionLost when none gets through."""
        began_s = now_s()
        coming = next(flows)
        with Log(folder / f"{name}.flows.csv", COLUMNS, self._epoch_s) as log:
            while not ending():
                while began_s + coming.at_s <= now_s():
                    self._open(coming)
                    coming = next(flows)
                wait_s = min(_LOOK_S, max(0.0, began_s + coming.at_s - now_s()))
                for key, _ in self._selector.select(wait_s):
                    self._serve(key, began_s, log)
                if self.broken >= MOST_AT_ONCE and not self.finished:
                    raise ConnectionLost(
                        f"no short flow reaches {tcp.show(self._address)}; check whether the receiver runs"
                    )
            for key in list(self._selector.get_map().values()):
                self._close(key, began_s, log, finished=False)

    def _open(self, arrival: Arrival) -> None:
        if len(self._selector.get_map()) >= MOST_AT_ONCE:
            self.left_out += 1
            return
        connection = socket.socket(tcp.family_of(self._address[0]), socket.SOCK_STREAM)
        connection.setblocking(False)
        if self._congestion:
            congestion_control.set_congestion(connection, self._congestion)
        self.flows += 1
        if connection.connect_ex(self._address) not in _CONNECTING:
            self.broken += 1
            connection.close()
            return
        flow = _Flow(arrival, now_s(), arrival.size_bytes)
        self._selector.register(connection, selectors.EVENT_WRITE, flow)

    def _serve(self, key: selectors.SelectorKey, began_s: float, log: Log) -> None:
        connection, flow = key.fileobj, key.data
        assert isinstance(connection, socket.socket)
        try:
            if key.events == selectors.EVENT_READ:  # all is sent; the receiver closes when it has it
                ended = connection.recv(1) == b""
                self._close(key, began_s, log, finished=ended)
                return
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                raise OSError(failed, os.strerror(failed))
            if flow.left == flow.arrival.size_bytes:
                # The number of the stream that every connection begins with is part of the size.
                flow.left -= connection.send(STREAM.pack(0) + _PIECE[: max(0, flow.left - STREAM.size)])
            else:
                flow.left -= connection.send(_PIECE[: flow.left])
            if flow.left <= 0:
                connection.shutdown(socket.SHUT_WR)
                self._selector.modify(connection, selectors.EVENT_READ, flow)
        except BlockingIOError:
            return
        except OSError:
            self.broken += 1
            self._close(key, began_s, log, finished=False)

    def _close(self, key: selectors.SelectorKey, began_s: float, log: Log, *, finished: bool) -> None:
        connection, flow = key.fileobj, key.data
        assert isinstance(connection, socket.socket)
        looked = sample(connection, "")
        took_s = f"{now_s() - flow.began_s:.6f}" if finished else None
        due_s = f"{began_s + flow.arrival.at_s - self._epoch_s:.6f}"
        log.line(flow.began_s, due_s, flow.arrival.size_bytes, took_s, looked.retransmits if looked else None)
        self.finished += finished
        if not finished:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self._selector.unregister(connection)
        connection.close()
