"""The receiving process of a generator: `python -m mpx_lab.traffic.receiver tcp --at 10.0.0.2 ...`.

Prints `ready PORT` when it listens. Writes NAME.csv (t_s, bytes since the line before, every 100 ms) and
NAME.streams.csv (the same for each stream that brings bytes). Ends with exit code 0 when its standard input
closes.
With `watch` it receives nothing itself, but counts what arrives over TCP from one address, for any program.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mpx.errors import MpxError
from mpx.net import tcp
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.goodput_log import GoodputLog
from mpx_lab.traffic.gridftp import GridFtpSink
from mpx_lab.traffic.log import next_tick, now_s
from mpx_lab.traffic.rpc import RpcSink
from mpx_lab.traffic.sinks import Sink, TcpSink, UdpSink
from mpx_lab.traffic.udt import UdtSink
from mpx_lab.traffic.watch import Watch


def main(arguments: Sequence[str] | None = None) -> int:
    """Receive until told to end; returns the exit code."""
    options = _parser().parse_args(arguments)
    ending = Ending()
    try:
        sink = _sink(options)
    except (MpxError, OSError) as error:
        sys.stderr.write(f"receiver: cannot listen on {options.at}: {error}\n")
        return 1
    try:
        return _record(sink, ending, options)
    finally:
        sink.close()


def _record(sink: Sink, ending: Ending, options: argparse.Namespace) -> int:
    with GoodputLog(options.folder, options.name, options.epoch_s) as log:
        log.look(now_s(), {})
        sys.stdout.write(f"ready {sink.port}\n")
        sys.stdout.flush()
        ended = False
        while not ended:
            ended = ending.wait(next_tick(now_s(), options.epoch_s))
            log.look(now_s(), sink.totals())
            if failure := sink.failure():
                sys.stderr.write(f"receiver: {failure}\n")
                return 1
    return 0


def _sink(options: argparse.Namespace) -> Sink:
    address = options.at, 0  # any port that is free
    if options.kind == "watch":
        return Watch(lambda connection: connection.peer[0] == options.at)
    if options.kind == "gridftp":
        return GridFtpSink(address, options.folder / f"{options.name}.sink")
    sinks: dict[str, Callable[[tcp.Address], Sink]] = {"tcp": TcpSink, "udp": UdpSink, "rpc": RpcSink}
    return sinks.get(options.kind, UdtSink)(address)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.traffic.receiver", description=__doc__)
    parser.add_argument("kind", choices=("tcp", "udp", "rpc", "udt", "gridftp", "watch"))
    parser.add_argument(
        "--at",
        required=True,
        metavar="ADDRESS",
        help="address to listen on; watch: the address that data comes from",
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder to write to")
    parser.add_argument("--name", required=True, help="name of the flow, and of its files")
    parser.add_argument("--epoch-s", type=float, required=True, help="time zero on the monotonic clock")
    return parser


if __name__ == "__main__":
    sys.exit(main())
