"""The entries for Multipath TCP: those that send us copies, and those that keep a subflow on its path.

    SYN         from a host               to us as well, and on in the second table
    RST, FIN    of a subflow, its host's  to us as well, and on its path
    subflow     both directions           on its path

in the first table, from the top down. Matching on flags is an extension (of the ONF) that Open vSwitch knows.
Those of a subflow match frames between the hardware addresses that its handshake had, and so none of others
who have not spoken: addresses of IP are whatever a host writes into its frames.
All but the first have idle timeouts, for when no controller runs.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import replace

from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import CONTROLLER, Entry, Value, match
from mpx_controller.graph import Path, Port
from mpx_controller.mptcp.segment import FIN, RST, SYN, FourTuple
from mpx_controller.mptcp.subflow import Subflow
from mpx_controller.network.forwarding import ETH_IPV4, ETH_IPV6, Bands
from mpx_controller.steering import TCP, steps

ENDING_IDLE_S = 43_200  # of what waits for the end of a subflow, where nothing matches until then


def copies(bands: Bands, edges: Iterable[Port]) -> list[Entry]:
    """Return the entries that send us the SYNs from these ports of a switch."""
    return [
        Entry(
            bands.table,
            bands.mptcp + 3,
            match(in_port=port.number, eth_type=kind, ip_proto=TCP, tcp_flags=(SYN, SYN)),
            cookie(Kind.MPTCP),
            (CONTROLLER,),
            goto=bands.second,
        )
        for port in sorted(edges)
        for kind in (ETH_IPV4, ETH_IPV6)
    ]


def subflow_entries(
    bands: Bands, four: FourTuple, subflow: Subflow, paths: tuple[Path, Path], number: int
) -> dict[int, list[Entry]]:
    """Return the entries of a subflow of connection `number`, in both directions, for each switch.

    `paths`: from the source's switch to the sink's, and back.
    """
    found: dict[int, list[Entry]] = {}
    there, back = paths
    ends, (source, sink) = subflow.ends, subflow.hardware
    for fields, path, start, out in (
        (_fields(four, source, sink), there, ends.source_port, ends.sink_port),
        (_fields(four.reverse, sink, source), back, ends.sink_port, ends.source_port),
    ):
        for place, (switch, output) in enumerate(steps(path, start, out)):
            plain = Entry(
                bands.table,
                bands.mptcp,
                match(**fields),
                cookie(Kind.MPTCP, number),
                (output,),
                idle_s=subflow.idle_s,
            )
            found.setdefault(switch, []).append(plain)
            if place == 0:
                found[switch] += [
                    replace(
                        plain,
                        priority=bands.mptcp + above,
                        match=match(**fields, tcp_flags=(flag, flag)),
                        outputs=(output, CONTROLLER),
                        idle_s=ENDING_IDLE_S,
                    )
                    for above, flag in ((1, FIN), (2, RST))
                ]
    return found


def four_tuple_of(entry_match: Iterable[tuple[str, Value]]) -> FourTuple | None:
    """Return whose an entry for one direction of a subflow is, as its sender has it; None for all others."""
    fields = dict(entry_match)
    version = 4 if "ipv4_src" in fields else 6
    try:
        found = [
            fields[f"ipv{version}_src"],
            fields["tcp_src"],
            fields[f"ipv{version}_dst"],
            fields["tcp_dst"],
        ]
    except KeyError:
        return None
    return FourTuple(str(found[0]), int(str(found[1])), str(found[2]), int(str(found[3])))


def _fields(four: FourTuple, sender: str, receiver: str) -> dict[str, Value]:
    version = ipaddress.ip_address(four.source).version
    return {
        "eth_src": sender,
        "eth_dst": receiver,
        "eth_type": ETH_IPV4 if version == 4 else ETH_IPV6,
        "ip_proto": TCP,
        f"ipv{version}_src": four.source,
        f"ipv{version}_dst": four.sink,
        "tcp_src": four.source_port,
        "tcp_dst": four.sink_port,
    }
