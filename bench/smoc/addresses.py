"""Hosts of labs with several addresses, from which Linux makes as many subflows."""

from collections.abc import Sequence

from mpx_lab.lab import Lab

LIMITS = "mptcp limits set subflow 8 add_addr_accepted 8"


def give_addresses(lab: Lab, host: str, count: int) -> list[str]:
    """Have a host make `count` subflows of each connection that it opens, and return its addresses."""
    network, _, last = lab.host(host).addresses[0].rpartition(".")
    more = [f"{network}.{20 * n + int(last)}" for n in range(1, count)]
    ip_batch(lab, host, [f"address add {each}/24 dev eth0 noprefixroute" for each in more])
    ip_batch(lab, host, [LIMITS, *(f"mptcp endpoint add {each} dev eth0 subflow" for each in more)])
    return [lab.host(host).addresses[0], *more]


def use_interfaces(lab: Lab, host: str) -> None:
    """Have a host make a subflow from each of its interfaces beyond the first."""
    more = lab.topology.interfaces(host)[1:]
    ip_batch(
        lab, host, [LIMITS, *(f"mptcp endpoint add {face.ipv4} dev {face.device} subflow" for face in more)]
    )


def take_subflows(lab: Lab, host: str) -> None:
    """Let others make up to 8 subflows to a host."""
    ip_batch(lab, host, [LIMITS])


def ip_batch(lab: Lab, host: str, lines: Sequence[str]) -> None:
    """Run lines of `ip -batch` on a host."""
    lab.host(host).run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
