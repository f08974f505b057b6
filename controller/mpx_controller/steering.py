"""The entries that keep one TCP connection on one path, in both directions."""

import ipaddress
from dataclasses import dataclass
from typing import Literal

from mpx_controller.flows import Entry, Value, match
from mpx_controller.graph import Path, Port
from mpx_controller.network.forwarding import ETH_IPV4, ETH_IPV6

TCP = 6
Side = Literal["source", "sink"]  # which of the two hosts has the port that is known


@dataclass(frozen=True)
class Ends:
    """Two hosts: addresses of one family, and the ports of switches where they are."""

    source: str
    sink: str
    source_port: Port
    sink_port: Port


def stream_entries(
    ends: Ends,
    port: int,
    side: Side,
    paths: tuple[Path, Path],
    *,
    table: int,
    priority: int,
    cookie: int,
    idle_s: int = 0,
) -> dict[int, list[Entry]]:
    """Return for each switch of the paths the entries of the connections whose `side` has TCP port `port`.

    `paths`: from the source's switch to the sink's, and back. Huang's MakePath names the source's port and
    leaves the path back open; acknowledgements on another path would share a queue with other data.
    """
    found: dict[int, list[Entry]] = {}
    there, back = paths
    for path, start, out, onwards in (
        (there, ends.source_port, ends.sink_port, True),
        (back, ends.sink_port, ends.source_port, False),
    ):
        fields = _fields(ends, port, side, onwards=onwards)
        for switch, number in steps(path, start, out):
            entry = Entry(table, priority, match(**fields), cookie, (number,), idle_s=idle_s)
            found.setdefault(switch, []).append(entry)
    return found


def stream_of(ends: Ends, entry: Entry) -> tuple[int, Side, Side]:
    """Return the port of a stream, whose it is, and who gets what an entry of `stream_entries` matches."""
    fields = dict(entry.match)
    sender = fields.get("ipv4_src", fields.get("ipv6_src"))
    onwards = sender == ends.source
    port = fields.get("tcp_src", fields.get("tcp_dst"))
    sends = "tcp_src" in fields
    return (
        port if isinstance(port, int) else 0,
        "source" if sends == onwards else "sink",
        "sink" if onwards else "source",
    )


def steps(path: Path, start: Port, out: Port) -> list[tuple[int, int]]:
    """Return the switches of a path, each with the number of the port by which it is left."""
    if not path:
        return [(start.switch, out.number)]
    return [*((link.start.switch, link.start.number) for link in path), (out.switch, out.number)]


def _fields(ends: Ends, port: int, side: Side, *, onwards: bool) -> dict[str, Value]:
    """Return what matches one direction; `onwards`: from source to sink."""
    version = ipaddress.ip_address(ends.source).version
    sender, receiver = (ends.source, ends.sink) if onwards else (ends.sink, ends.source)
    sends = (side == "source") == onwards  # whether the port is that of the sender
    return {
        "eth_type": ETH_IPV4 if version == 4 else ETH_IPV6,
        "ip_proto": TCP,
        f"ipv{version}_src": sender,
        f"ipv{version}_dst": receiver,
        "tcp_src" if sends else "tcp_dst": port,
    }
