"""Watches TCP connections of any program through the kernel: bytes that arrive, or the state of the sender.

`python -m mpx_lab.traffic.watch --peer 10.0.0.2 ...` on the sending host writes NAME.tcp.csv until its
standard input closes; on the receiving host `python -m mpx_lab.traffic.receiver watch` writes NAME.csv.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mpx.errors import MpxError
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, next_tick, now_s
from mpx_lab.traffic.socket_table import Connection, SocketTable
from mpx_lab.traffic.tcp_samples import TcpSample

COLUMNS = ("t_s", "stream", "congestion", *(field.name for field in dataclasses.fields(TcpSample)))


class Watch:
    """Counts what arrives over the chosen connections; they are numbered as they are first seen.

    A connection that lives for less than 100 ms is counted only if it can be chosen after its end: by its
    addresses, not by its socket's inode.
    """

    port = 0  # it does not listen

    def __init__(self, chosen: Callable[[Connection], bool]) -> None:
        self._table = SocketTable()
        self._chosen = chosen
        self._numbers: dict[int, int] = {}
        self._totals: dict[int, int] = {}

    def look(self) -> list[tuple[int, Connection]]:
        """Return the chosen open connections, each with its number."""
        live = [(self._number(connection), connection) for connection in self._table.open()]
        ended = [(self._number(connection), connection) for connection in self._table.ended()]
        for number, connection in (*live, *ended):
            if number is not None:
                arrived = connection.sample.bytes_received
                self._totals[number] = max(self._totals.get(number, 0), arrived)
        return [(number, connection) for number, connection in live if number is not None]

    def totals(self) -> dict[int, int]:
        """Return the bytes of payload that arrived so far, by number of the connection."""
        self.look()
        return dict(self._totals)

    def failure(self) -> str:
        """Nothing ends it."""
        return ""

    def close(self) -> None:
        """Stop watching."""
        self._table.close()

    def _number(self, connection: Connection) -> int | None:
        number = self._numbers.get(connection.cookie)
        if number is None and self._chosen(connection):
            number = self._numbers[connection.cookie] = len(self._numbers)
        return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch until told to end; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.traffic.watch", description=__doc__)
    parser.add_argument(
        "--peer", required=True, metavar="ADDRESS", help="address of the other end of the connections"
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder to write to")
    parser.add_argument("--name", required=True, help="name of the flow, and of its files")
    parser.add_argument("--epoch-s", type=float, required=True, help="time zero on the monotonic clock")
    options = parser.parse_args(arguments)
    ending = Ending()
    try:
        watch = Watch(lambda connection: connection.peer[0] == options.peer)
    except MpxError as error:
        sys.stderr.write(f"watch: {error}\n")
        return error.exit_code
    with Log(options.folder / f"{options.name}.tcp.csv", COLUMNS, options.epoch_s) as log:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not ending.wait(next_tick(now_s(), options.epoch_s)):
            write(log, watch.look())
    watch.close()
    return 0


def write(log: Log, looked: Sequence[tuple[int, Connection]]) -> None:
    """Write the state of each of these connections, as COLUMNS."""
    for number, connection in looked:
        log.line(now_s(), number, connection.congestion, *dataclasses.astuple(connection.sample))


if __name__ == "__main__":
    sys.exit(main())
