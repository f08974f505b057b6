"""Whether a data server of XRootD is of a cluster, as it says itself. Pure.

What a head says of others is its own word, and it may name servers of anybody. Each data server tells of
which cluster it is (`query config cid`), which its owner decides by the managers that it is to have: port and
name of one, and before that ports and names of others, without the end that they have in common.
"""

import ipaddress
import re
from collections.abc import Iterable

_LEAST_LABELS = 2  # of a domain whose hosts are of one owner, as far as a name tells


def plain_host(address: str) -> str:
    """Return the host of HOST:PORT or [HOST]:PORT as it is compared; XRootD writes IPv4 as [::192.0.2.1]."""
    host = address.rpartition("@")[2]
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    parsed = _address(host)
    if parsed is None:
        return host.lower().rstrip(".")
    is_in_six = isinstance(parsed, ipaddress.IPv6Address) and 0xFFFF < int(parsed) < 2**48
    if is_in_six and int(parsed) >> 32 in (0, 0xFFFF):
        return str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF))
    return str(parsed)


def plain_address(address: str) -> str:
    """Return HOST:PORT as it is compared."""
    return f"{plain_host(address)}:{address.rpartition(':')[2]}"


def is_address(host: str) -> bool:
    """Tell whether a host is one by its number."""
    return _address(host) is not None


def cluster(answer: bytes) -> str:
    """Read what a server answers who is asked for its cluster."""
    return answer.rstrip(b"\0\n").decode("ascii", "replace").lower()


def only_manager(cluster: str) -> str:
    """Return the host of the one manager of a cluster; what is no host, or empty, where it is not one."""
    found = re.fullmatch(r"[0-9]{1,5}([a-z][a-z0-9_.-]*)", cluster)
    return found[1] if found else ""


def is_of(cluster: str, trusted: Iterable[str]) -> bool:
    """Tell whether the managers of a cluster are who is trusted, or its neighbours.

    By names alone, as whoever owns a name chooses the addresses that it has. `trusted`: the head that the
    user has named, and the server that has what was uploaded.
    """
    before, _, domain = cluster.partition(".")
    for host in trusted:
        if domain and before[:1].isdigit() and domain == _domain(host):
            return True
        if host and not is_address(host) and re.fullmatch(rf"[0-9]{{1,5}}{re.escape(host)}", cluster):
            return True
    return False


def _domain(host: str) -> str:
    """Return what follows the first label; empty for what is no domain of one owner."""
    rest = host.partition(".")[2]
    return "" if is_address(host) or rest.count(".") + 1 < _LEAST_LABELS else rest


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
