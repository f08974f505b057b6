"""The sending process of a generator: `python -m mpx_lab.traffic.sender 'tcp(streams=2)' --to HOST:PORT ...`.

Writes NAME.phases.csv (when it sent and when not), for TCP NAME.tcp.csv (the kernel's view every 100 ms), for
short flows NAME.flows.csv, and at the end NAME.json. Ends with exit code 0 when its standard input closes.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx.net import tcp
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.gridftp import GridFtpSender
from mpx_lab.traffic.log import now_s
from mpx_lab.traffic.rpc import Caller
from mpx_lab.traffic.schedule import ALWAYS, Phase, arrivals, phases
from mpx_lab.traffic.short_flows_sender import ShortFlowsSender
from mpx_lab.traffic.spec import (
    GridFtp,
    Rpc,
    ShortFlows,
    Spec,
    Tcp,
    TcpSquare,
    Udp,
    UdpBursty,
    UdpSquare,
    Udt,
    parse,
    show,
)
from mpx_lab.traffic.tcp_sender import TcpSender
from mpx_lab.traffic.udp_sender import DATAGRAM_BYTES, UdpSender
from mpx_lab.traffic.udt import UdtSender


def main(arguments: Sequence[str] | None = None) -> int:
    """Send until told to end; returns the exit code."""
    options = _parser().parse_args(arguments)
    ending = Ending()
    try:
        spec = parse(options.spec)
        address = address_of(options.to)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        began_s = now_s() if options.from_s is None else options.epoch_s + options.from_s
        if not isinstance(spec, GridFtp):  # a generator that has to start a program first
            ending.wait(began_s)
        counted = _run(spec, address, ending, began_s, options)
    except MpxError as error:
        sys.stderr.write(f"sender: {error}\n")
        return error.exit_code
    summary = {
        "spec": show(spec),
        "began_s": began_s - options.epoch_s,
        "ended_s": now_s() - options.epoch_s,
        **counted,
    }
    (options.folder / f"{options.name}.json").write_text(json.dumps(summary, indent=2) + "\n")
    return 0


def _run(
    spec: Spec, address: tcp.Address, ending: Ending, began_s: float, options: argparse.Namespace
) -> dict[str, object]:
    """Send as the generator says until the end; return its summary."""
    folder, name, epoch_s = options.folder, options.name, options.epoch_s
    if isinstance(spec, Tcp | TcpSquare | Rpc):
        fill = Caller(spec.block, spec.slots) if isinstance(spec, Rpc) else None
        streams = TcpSender(address, spec.congestion, spec.streams, epoch_s, fill)
        streams.run(partial(_stretches, spec), began_s, ending, folder, name)
        return {"connections": [dataclasses.asdict(connection) for connection in streams.connections]}
    if isinstance(spec, ShortFlows):
        flows = ShortFlowsSender(address, spec.congestion, epoch_s)
        coming = arrivals(spec.load * spec.of, spec.smallest, spec.largest, spec.shape, spec.seed)
        flows.run(coming, ending, folder, name)
        counters = ("flows", "finished", "broken", "left_out")
        return {counter: getattr(flows, counter) for counter in counters}
    if isinstance(spec, GridFtp):
        copies = GridFtpSender(address, spec.streams, spec.congestion, epoch_s, dips=bool(spec.dips))
        copies.run(began_s, ending, folder, name)
        return {"copies": copies.copies}
    if isinstance(spec, Udt):
        UdtSender(address, epoch_s).run(ending, folder, name)
        return {}
    datagrams = UdpSender(address, spec.rate, epoch_s)
    datagrams.run(_stretches(spec), began_s, ending, folder, name)
    return {
        "datagram_bytes": DATAGRAM_BYTES,
        "datagrams_sent": datagrams.sent,
        "datagrams_given_up": datagrams.pacer.given_up,
        "datagrams_refused": datagrams.refused,
    }


def _stretches(spec: Tcp | TcpSquare | Rpc | Udp | UdpSquare | UdpBursty) -> Iterator[Phase]:
    if isinstance(spec, Tcp | Rpc | Udp):
        return iter([ALWAYS])
    if isinstance(spec, UdpBursty):
        return phases(spec.burst, spec.period)
    return phases(spec.on, spec.on + spec.off, spec.after if isinstance(spec, TcpSquare) else 0.0)


def address_of(text: str) -> tcp.Address:
    """Read HOST:PORT, with brackets around an IPv6 address; raises UsageError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"'{text}' is not an address: write HOST:PORT, for example 10.0.0.2:5001")
    return host.strip("[]"), int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mpx_lab.traffic.sender", description=__doc__)
    parser.add_argument("spec", help="the generator, for example 'udp(rate=50Mbit/s)'")
    parser.add_argument(
        "--to", required=True, metavar="HOST:PORT", help="the receiver; IPv6 as [fd00::2]:5001"
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder to write to")
    parser.add_argument("--name", required=True, help="name of the flow, and of its files")
    parser.add_argument("--epoch-s", type=float, required=True, help="time zero on the monotonic clock")
    parser.add_argument("--from-s", type=float, help="begin this long after time zero (default: at once)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
