"""Packets that a host's kernel dropped: counters of devices, queues and sockets, and their increase.

In a valid run packets are lost in the emulator's queue or by its random loss only; these counters show
all other places.
"""

import json
import subprocess
from collections.abc import Collection, Mapping

from mpx.errors import MpxError
from mpx_lab.emulator.kernel_link import LINK_QUEUES
from mpx_lab.simulated import is_simulated
from mpx_lab.traffic.process import Host

Counters = dict[str, int]

# Of /proc/net/dev, after the colon. Packets that were received and dropped are left out: the kernel counts
# there what nobody listens for, as the switches' own spanning tree. So are those that were dropped instead of
# being sent: the kernel counts there what it is given while a link is cut. What else it counts there is told
# elsewhere, for an emulated link by the emulator, for a cable by the backlog.
_DEVICE = {
    2: "receive errors",
    4: "receive overruns",
    10: "send errors",
    12: "send overruns",
}
# Datagrams that a socket could not send (SndbufErrors) are left out: the kernel counts there what meets a
# queue that a cut takes away, and what its sender was told to try again. Drops of a queue are told by it.
_SOCKETS = {
    ("Udp", "RcvbufErrors"),
    ("Udp6", "RcvbufErrors"),
    ("TcpExt", "TCPBacklogDrop"),
    ("TcpExt", "TCPRcvQDrop"),
    ("TcpExt", "RcvPruned"),
    ("TcpExt", "ListenDrops"),
}
_READS_WITHIN_S = 30.0


def parse_devices(text: str) -> Counters:
    """Return the losses of each device from /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        device, _, rest = line.partition(":")
        numbers = rest.split()
        for column, what in _DEVICE.items():
            found[f"{device.strip()} {what}"] = int(numbers[column])
    return found


def parse_sockets(text: str) -> Counters:
    """Return the losses at sockets from /proc/net/snmp and /proc/net/netstat (pairs of lines), snmp6 too."""
    found = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        name, colon, rest = line.partition(":")
        if colon and number + 1 < len(lines) and lines[number + 1].startswith(f"{name}:"):
            values = lines[number + 1].partition(":")[2].split()
            for key, value in zip(rest.split(), values, strict=False):
                if (name, key) in _SOCKETS:
                    found[f"{name} {key}"] = int(value)
        elif line.startswith("Udp6"):
            key, value = line.split()
            if ("Udp6", key.removeprefix("Udp6")) in _SOCKETS:
                found[f"Udp6 {key.removeprefix('Udp6')}"] = int(value)
    return found


def parse_queues(text: str, of_links: Collection[str] = ()) -> Counters:
    """Return the drops of the queues in front of the devices from `tc -statistics -json qdisc show`.

    `of_links`: queueing disciplines that belong to emulated links, which count their own drops.
    """
    found: Counters = {}
    for queue in json.loads(text or "[]"):
        if queue["kind"] in of_links:
            continue
        name = f"{queue['dev']} queue {queue['kind']} drops"
        found[name] = found.get(name, 0) + int(queue.get("drops", 0))
    return found


def parse_backlog(text: str) -> Counters:
    """Return the drops of the queues between devices, a plain cable's two ends, from /proc/net/softnet_stat.

    The kernel counts them per processor, so for all hosts and the rest of the machine together.
    """
    return {"machine packet backlog drops": sum(int(line.split()[1], 16) for line in text.splitlines())}


def read_counters(host: Host) -> Counters:
    """Ask a host for all of them; raises MpxError."""
    of_links = LINK_QUEUES if is_simulated() else ()
    files = ["/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6"]
    return {
        **parse_devices(_output(host, ["cat", "/proc/net/dev"])),
        **parse_sockets(_output(host, ["cat", *files])),
        **parse_backlog(_output(host, ["cat", "/proc/net/softnet_stat"])),
        **parse_queues(_output(host, ["tc", "-statistics", "-json", "qdisc", "show"]), of_links),
    }


def increase(before: Mapping[str, int], after: Mapping[str, int]) -> Counters:
    """Return the counters that grew, and by how much."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in grown.items() if count > 0}


def _output(host: Host, command: list[str]) -> str:
    process = host.popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, errors = process.communicate(timeout=_READS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise MpxError(f"'{' '.join(command)}' did not end in time on a host of the lab") from None
    if process.returncode:
        said = bytes(errors).decode(errors="replace").strip()
        raise MpxError(f"'{' '.join(command)}' failed on a host of the lab: {said}")
    return bytes(out).decode(errors="replace")
