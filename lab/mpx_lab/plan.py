"""How a lab is built, as a list of steps: pure values, which `builder.py` carries out in their order.

Each step makes one thing. A lab that is interrupted after any of them can be taken down.
"""

from collections.abc import Iterator

from mpx.errors import UsageError
from mpx_lab.capacities import CAPACITIES, capacities_text
from mpx_lab.own_controller import OWN, begin_steps, found_step, way_steps
from mpx_lab.steps import (
    SWITCHES,
    AddNamespace,
    Configure,
    Controller,
    Ip,
    StartDatabase,
    StartLink,
    StartRelay,
    StartSwitches,
    Step,
    WaitReachable,
    WriteFile,
    cable,
    netns_name,
)
from mpx_lab.topology import Interface, Link, Topology

DEFAULT_CONGESTION = "cubic"
LARGEST_BUFFER_BYTES = 512_000_000  # the kernel's default of 4 MB stops a sender on a long path
UNSCALED_WINDOW_BYTES = 65535
BUFFER_SHARE = 0.65  # of a receive buffer that full frames from a TAP device fill with data
TUNED_BUFFERS = ("net/ipv4/tcp_rmem", f"4096 131072 {LARGEST_BUFFER_BYTES}")
HOST_SETTINGS = (
    TUNED_BUFFERS,
    ("net/ipv4/tcp_wmem", f"4096 16384 {LARGEST_BUFFER_BYTES}"),
    ("net/ipv4/tcp_no_metrics_save", "1"),  # or a run would inherit what the one before has learned
    ("net/ipv4/ping_group_range", "0 2147483647"),
    ("net/ipv6/conf/default/accept_dad", "0"),  # so that addresses can be used at once
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
)
SWITCH_SETTINGS = (
    # Switches are not hosts: they send nothing of their own.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/ipv4/ip_forward", "0"),  # or hosts would reach each other over their cables to the controller
)
PACKETS_PER_S = 1000  # that each switch sends to its controller at most, to bound the controller's load
REACH_S = 30.0  # until all hosts reach each other, besides the delay of their links
REACH_ROUND_TRIPS = 4  # round trips through all links: address resolution, and some losses
ROOT_PRIORITY = 4096  # of the switch that becomes the root of the spanning tree; others have 32768


def port_name(link: Link, switch: str) -> str:
    """Return the device that `link` is inside the switches' namespace."""
    return f"{link.name}.{'a' if link.a == switch else 'b'}"


def parse_controller(text: str, rest: str | None = None, xmlrpc: str | None = None) -> Controller:
    """Return the controller that `tcp:HOST:PORT` names, or `own` the lab's own; raises UsageError."""
    if text == "own":
        if rest or xmlrpc:
            raise UsageError(
                "--rest and --xmlrpc are for a controller that somebody else runs: give its "
                "--controller tcp:HOST:PORT too"
            )
        return OWN
    kind, _, where = text.partition(":")
    host, _, port = where.rpartition(":")
    if kind != "tcp" or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"'{text}' is not a controller: write tcp:HOST:PORT, for example tcp:127.0.0.1:6653")
    return Controller(host.strip("[]"), int(port), rest, xmlrpc)


def plan(
    topology: Topology, lab_id: str, controller: Controller | None = None, *, in_kernel: bool = False
) -> tuple[Step, ...]:
    """Return the steps that build `topology` as the lab `lab_id`.

    `in_kernel`: its switches forward in the kernel instead of in user space, as links do then (simulated.py).
    """
    return tuple(_steps(topology, lab_id, controller, in_kernel))


def _steps(topology: Topology, lab_id: str, controller: Controller | None, in_kernel: bool) -> Iterator[Step]:
    switches = netns_name(lab_id, SWITCHES)
    yield WriteFile("hosts", hosts_file(topology))
    for host in topology.hosts:
        yield AddNamespace(netns_name(lab_id, host), HOST_SETTINGS)
    if topology.switches:
        yield WriteFile(CAPACITIES, capacities_text(topology))
        yield AddNamespace(switches, SWITCH_SETTINGS)
        yield StartDatabase(switches)
        yield StartSwitches(switches)
    if topology.switches and controller:  # it serves before the switches connect
        yield from begin_steps(switches) if controller.own else (StartRelay(controller),)
    for link in topology.links:
        if topology.emulated(link):
            there, back = topology.direction_seeds(link.name, link.seed)
            yield StartLink(
                link.name,
                _end(topology, lab_id, link, link.a),
                _end(topology, lab_id, link, link.b),
                link.shape(there),
                link.shape(back),
                link.pause_s,
            )
        else:
            yield from cable(*(_end(topology, lab_id, link, name) for name in link.ends))
    if topology.switches:
        yield Configure(tuple(_bridges(topology, controller, in_kernel)))
    for host in topology.hosts:
        lines = ["link set lo up"]
        for face in topology.interfaces(host):
            lines += _addresses(face)
        yield Ip(netns_name(lab_id, host), tuple(lines))
    within_s = REACH_S + REACH_ROUND_TRIPS * 2 * sum(link.delay_s for link in topology.links)
    reach = WaitReachable(
        tuple(
            ((netns_name(lab_id, one.host), source), (netns_name(lab_id, other.host), target))
            for one, other in topology.neighbours()
            for source, target in zip(one.addresses, other.addresses, strict=True)
        ),
        within_s,
    )
    if topology.switches and controller and controller.own:
        yield from way_steps(topology, lab_id)
        # A host that sends before the links are found may be located at a link.
        yield found_step(topology, switches, within_s, hosts=False)
        yield reach
        yield found_step(topology, switches, within_s, hosts=True)
    elif not (topology.switches and controller):  # with a controller elsewhere it is that controller's task
        yield reach


def hosts_file(topology: Topology) -> str:
    """Return /etc/hosts of the lab."""
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for host in topology.hosts:
        lines += [f"{address} {host}" for face in topology.interfaces(host) for address in face.addresses]
    return "\n".join(lines) + "\n"


def routes(face: Interface, to: Interface | None, congestion: str, window_bytes: int | None) -> list[str]:
    """Return lines for `ip -batch`: how `face` reaches its networks, or only the one interface `to`."""
    targets = face.networks if to is None else _host_targets(to)
    window = f" window {window_bytes}" if window_bytes else ""
    return [
        f"route replace {target} dev {face.device} src {source} congctl {congestion}{window}"
        for target, source in zip(targets, face.addresses, strict=True)
    ]


def no_routes(face: Interface, to: Interface) -> list[str]:
    """Return lines for `ip -batch` that remove the routes of `face` to the one interface `to`, if any."""
    # Deleting what does not exist would be an error.
    return [
        f"route {action} {target} dev {face.device}"
        for target in _host_targets(to)
        for action in ("replace", "del")
    ]


def _host_targets(to: Interface) -> tuple[str, str]:
    return f"{to.ipv4}/32", f"{to.ipv6}/128"


def fixes_buffers(window_bytes: int | None) -> bool:
    """Whether a window needs buffers of that size for all that a host receives; see `window_settings`."""
    return window_bytes not in (None, UNSCALED_WINDOW_BYTES)


def window_settings(window_bytes: int | None) -> tuple[tuple[str, str], ...]:
    """Return settings that keep a host's windows at that of its routes; None: the kernel tunes them.

    65535 is exact, since a route with so little forbids window scaling. Any other window the kernel lets grow
    with the buffer once data flow (Linux 6.9 and later), so there the buffer has to hold it, untuned.
    """
    if window_bytes is None or not fixes_buffers(window_bytes):
        return (("net/ipv4/tcp_moderate_rcvbuf", "1"), TUNED_BUFFERS)
    buffer_bytes = round(window_bytes / BUFFER_SHARE)
    name, _ = TUNED_BUFFERS
    return (("net/ipv4/tcp_moderate_rcvbuf", "0"), (name, f"4096 {buffer_bytes} {buffer_bytes}"))


def _addresses(face: Interface) -> list[str]:
    return [
        f"address add {face.ipv4}/24 dev {face.device} noprefixroute",
        f"address add {face.ipv6}/64 dev {face.device} noprefixroute nodad",
        *routes(face, None, DEFAULT_CONGESTION, None),
    ]


def _end(topology: Topology, lab_id: str, link: Link, name: str) -> tuple[str, str, str | None]:
    """Return namespace, device and hardware address (None: any) of one end of a link."""
    if name in topology.switches:
        return netns_name(lab_id, SWITCHES), port_name(link, name), None
    face = next(face for face in topology.interfaces(name) if face.link == link.name)
    return netns_name(lab_id, name), face.device, face.mac


def _bridges(topology: Topology, controller: Controller | None, in_kernel: bool) -> Iterator[str]:
    """Yield one transaction for all switches, so that the daemon sets them up together."""
    # A tree of switches needs no spanning tree protocol, whose frames could be lost in a full queue.
    spanning_tree = controller is None and topology.has_loop
    datapath = "system" if in_kernel else "netdev"
    if in_kernel:  # or Open vSwitch would remove the queueing disciplines at its ports
        yield from ("--", "--id=@as-it-is", "create", "qos", "type=linux-noop")
    for switch in topology.switches:
        number = topology.datapath_id(switch)
        yield from ("--", "add-br", switch, "--", "set", "bridge", switch, f"datapath_type={datapath}")
        yield f"other-config:datapath-id={number:016x}"
        yield f"other-config:hwaddr=02:00:00:01:00:{number:02x}"
        yield f"fail_mode={'secure' if controller else 'standalone'}"
        if spanning_tree:
            yield "rstp_enable=true"
        if spanning_tree and number == 1:
            yield f"other-config:rstp-priority={ROOT_PRIORITY}"
        for port, link in enumerate(topology.ports(switch), 1):
            name = port_name(link, switch)
            yield from ("--", "add-port", switch, name)
            yield from ("--", "set", "interface", name, f"ofport_request={port}")
            if in_kernel:
                yield from ("--", "set", "port", name, "qos=@as-it-is")
            if spanning_tree:
                to_host = link.a in topology.hosts or link.b in topology.hosts
                yield from ("--", "set", "port", name, "other-config:rstp-path-cost=20000")
                yield f"other-config:rstp-port-admin-edge={'true' if to_host else 'false'}"
        if controller:
            where = f"tcp:{controller.host}:{controller.port}" if controller.own else "unix:controller.sock"
            yield from ("--", "set-controller", switch, where, "--", "set", "controller", switch)
            yield "connection_mode=out-of-band"  # or the switches forward what looks like a way to it
            yield f"controller_rate_limit={PACKETS_PER_S}"
            yield f"controller_burst_limit={PACKETS_PER_S}"
