"""The state of Multipath TCP across restarts, as values for JSON."""

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any

from mpx_controller.graph import Path, Port
from mpx_controller.mptcp.connections import MptcpConnection
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import FourTuple
from mpx_controller.mptcp.subflow import Subflow
from mpx_controller.steering import Ends

Saved = tuple[list[MptcpConnection], int, dict[FourTuple, Subflow]]


def mptcp_as_json(known: MultipathTcp, path_as_json: Callable[[Path], Any]) -> dict[str, Any]:
    """Return the connections that have subflows, and the subflows."""
    return {
        "last": known.connections.last,
        "connections": [
            [each.number, each.version, each.port, each.first, sorted(each.tokens), sorted(each.subflows)]
            for each in known.connections.all
            if each.subflows
        ],
        "subflows": [
            [
                *(four, each.hardware, each.ends.source_port, each.ends.sink_port),
                *(path_as_json(each.home), each.is_used),
            ]
            for four, each in known.subflows.items()
        ],
    }


def read_mptcp(value: Mapping[str, Any], path_read: Callable[[Iterable[Any]], Path]) -> Saved:
    """Return what `mptcp_as_json` was given; raises ValueError, KeyError or TypeError if it is broken."""
    connections = [
        MptcpConnection(
            int(number),
            int(version),
            port_of(port),
            _four(first),
            frozenset(map(int, tokens)),
            frozenset(map(_four, subflows)),
        )
        for number, version, port, first, tokens, subflows in value["connections"]
    ]
    subflows = {}
    for four, hardware, source, sink, home, is_used in value["subflows"]:
        name, path = _four(four), path_read(home)
        source_mac, sink_mac = map(_hardware, hardware)
        ends = Ends(name.source, name.sink, port_of(source), port_of(sink))
        subflows[name] = Subflow((source_mac, sink_mac), ends, path, path, is_used=bool(is_used))
    if {four for each in connections for four in each.subflows} != subflows.keys():
        raise ValueError(
            "it has subflows without a connection, or connections with subflows that do not exist"
        )
    return connections, int(value["last"]), subflows


def port_of(value: Iterable[Any]) -> Port:
    """Return a port of a switch; raises ValueError, TypeError or OverflowError if it is broken."""
    switch, number = value
    return Port(int(switch), int(number))


def _hardware(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", value):
        raise ValueError(f"it has a hardware address that is not valid: {value!r}")
    return value


def _four(value: Iterable[Any]) -> FourTuple:
    source, source_port, sink, sink_port = value
    found = FourTuple(str(ip_address(source)), int(source_port), str(ip_address(sink)), int(sink_port))
    if not (0 < found.source_port < 65536 and 0 < found.sink_port < 65536):
        raise ValueError(f"it has a subflow that is not valid: {found}")
    return found
