"""Sends datagrams at an even rate, as the pattern says, and never waits for the receiver."""

import contextlib
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from mpx.net import tcp
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, now_s
from mpx_lab.traffic.punctual import wake_in_time
from mpx_lab.traffic.schedule import Pacer, Phase

DATAGRAM_BYTES = 1448  # the payload of a full TCP segment, so that frames are about as long, IPv6 too
_BATCH_S = 0.001  # datagrams that are due within this time go out together
_SEND_BUFFER_BYTES = 4 << 20
_LONGEST_SLEEP_S = 0.1
_SO_SNDBUFFORCE = 32


class UdpSender:
    """One flow of datagrams; the counters are complete once `run` has returned."""

    def __init__(self, address: tcp.Address, rate_bps: float, epoch_s: float) -> None:
        self.sent = 0  # datagrams
        self.refused = 0  # datagrams for which the kernel reported that nobody listens
        self.pacer = Pacer(rate_bps, DATAGRAM_BYTES)
        self._address = address
        self._epoch_s = epoch_s

    def run(
        self, stretches: Iterable[Phase], began_s: float, ending: Ending, folder: Path, name: str
    ) -> None:
        """Send during these periods until told to end; they count from `began_s`."""
        wake_in_time()  # 50 us are many datagrams at a high rate
        with (
            socket.socket(tcp.family_of(self._address[0]), socket.SOCK_DGRAM) as connection,
            Log(folder / f"{name}.phases.csv", ["t_s", "stream", "on"], self._epoch_s) as edges,
        ):
            with contextlib.suppress(PermissionError):
                connection.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES)
            connection.connect(self._address)
            for stretch in stretches:
                if ending.wait(began_s + stretch.on_s):
                    return
                edges.line(now_s(), 0, 1)
                self._send(connection, began_s + stretch.off_s, ending)
                edges.line(now_s(), 0, 0)
                if ending():
                    return

    def _send(self, connection: socket.socket, until_s: float, ending: Ending) -> None:
        datagram = bytes(DATAGRAM_BYTES)
        self.pacer.begin(now_s())
        while (at_s := now_s()) < until_s and not ending():
            for _ in range(self.pacer.due(at_s)):
                try:
                    connection.send(datagram)
                    self.sent += 1
                except (
                    ConnectionRefusedError
                ):  # the error of an earlier datagram: nobody listens there any more
                    self.refused += 1
            wake_s = min(self.pacer.next_s(_BATCH_S), until_s)
            time.sleep(min(max(0.0, wake_s - now_s()), _LONGEST_SLEEP_S))
