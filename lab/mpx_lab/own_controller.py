"""A lab's own controller: where it runs, how hosts reach it, and what it has to find.

It runs in the namespace of the switches. Each host has a control cable to it beside the network, so requests
load no link. Hosts have no address on that cable: they send from one of their addresses in the network, by
which the controller knows what they may ask for, and the answer returns over the same cable only. Nothing is
forwarded between these cables, so hosts do not reach each other over them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpx.errors import UsageError
from mpx_lab.capacities import CAPACITIES
from mpx_lab.steps import SWITCHES, Controller, Ip, StartController, Step, WaitFound, cable, netns_name
from mpx_lab.topology import Interface, Topology

OPENFLOW_PORT, API_PORT = 6653, 6680
LOOPBACK = "127.0.0.1"  # of the switches' namespace: no host can pretend to be a switch
ADDRESS = "10.254.0.254"  # for hosts; their own are 10.0.N.N
CALLERS = "10.0.0.0/16"
DEVICE = "mgmt"  # the cable's end in each host
STATE, LOG = "controller-state.json", "controller.log"  # in the lab's folder
_API = f"http://{ADDRESS}:{API_PORT}"
OWN = Controller(LOOPBACK, OPENFLOW_PORT, _API, f"{_API}/RPC2", own=True)


def check_steers(topology: Topology) -> None:
    """Raise UsageError for a topology without switches."""
    if not topology.switches:
        raise UsageError(
            f"the topology {topology.name} has no switches, so a controller of its own would steer nothing; "
            "build it without, or choose one that has switches (see mpx lab list)"
        )


def arguments(folder: Path) -> list[str]:
    """Return the arguments of a lab's `mpx controller`."""
    return [
        *("--listen", f"{LOOPBACK}:{OPENFLOW_PORT}", "--api", f"0.0.0.0:{API_PORT}"),
        *("--insecure", "--allow-from", CALLERS, "--verbose"),
        *("--capacities", str(folder / CAPACITIES), "--state", str(folder / STATE)),
        *("--log", str(folder / LOG)),
    ]


def begin_steps(switches: str) -> Iterator[Step]:
    """Yield the steps that start it in the namespace of the switches."""
    yield Ip(switches, ("link set lo up", f"address add {ADDRESS}/32 dev lo"))
    yield StartController(switches)


def way_steps(topology: Topology, lab_id: str) -> Iterator[Step]:
    """Yield the steps that connect each host with it; hosts have their addresses already."""
    switches = netns_name(lab_id, SWITCHES)
    for number, host in enumerate(topology.hosts, 1):
        netns, there = netns_name(lab_id, host), f"{DEVICE}.{number}"
        yield from cable((netns, DEVICE, None), (switches, there, None))
        mine = topology.interfaces(host)
        asks_from = next(iter(_at_switches(topology, host)), mine[0]).ipv4
        yield Ip(netns, (f"route add {ADDRESS} dev {DEVICE} src {asks_from}",))
        # For programs that bind to another address of their host.
        yield Ip(switches, tuple(f"route add {face.ipv4} dev {there}" for face in mine))


def found_step(topology: Topology, switches: str, within_s: float, *, hosts: bool) -> WaitFound:
    """Return the step that waits for all links between switches, and with `hosts` for their hosts."""
    links = [link for link in topology.links if set(link.ends) <= set(topology.switches)]
    heard = {one for one, _ in topology.neighbours()} if hosts else set()
    known = [face for host in topology.hosts for face in _at_switches(topology, host) if face in heard]
    return WaitFound(switches, 2 * len(links), tuple(a for face in known for a in face.addresses), within_s)


def missing(seen: Mapping[str, Any], links: int, addresses: tuple[str, ...]) -> str:
    """Return what is missing in a controller's `/topology`, as a sentence; empty where nothing is."""
    known = {address for host in seen["hosts"] for address in host["addresses"]}
    if len(seen["links"]) < links:
        return f"it has found {len(seen['links'])} of {links} directions of links"
    unknown = [address for address in addresses if address not in known]
    return f"it has not heard of {', '.join(unknown)}" if unknown else ""


def _at_switches(topology: Topology, host: str) -> Iterator[Interface]:
    for face in topology.interfaces(host):
        if set(topology.link(face.link).ends) & set(topology.switches):
            yield face
