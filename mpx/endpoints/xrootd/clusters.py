"""Whether a data server of XRootD is of a cluster, as it says itself. Pure.

What a head says of others is its own word, and it may name servers of anybody. Each data server tells who is
its manager (`query config cms`), and of that it is the owner of the server who decides.
"""

import ipaddress
from collections.abc import Iterable

_LEAST_LABELS = 2  # of a domain whose hosts are of one owner, as far as a name tells


def plain_host(address: str) -> str:
    """Return the host of HOST:PORT or [HOST]:PORT as it is compared; XRootD writes IPv4 as [::192.0.2.1]."""
    host = address.rpartition("@")[2].strip("/")
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


def managers(answer: bytes) -> list[str]:
    """Read what a server answers: `HOST:PORT/STATE` of each of its managers, or `none`; returns the hosts."""
    words = answer.rstrip(b"\0\n").decode("ascii", "replace").split()
    return [plain_host(word.rpartition("/")[0]) for word in words if "/" in word]


def is_of(managers_of_it: Iterable[str], trusted: Iterable[str]) -> bool:
    """Tell whether one of the managers is trusted, or a neighbour of what is: by names, as DNS is anybody's.

    `trusted`: the head that the user has named, and the server that has what was uploaded.
    """
    known = set(trusted) - {""}
    domains = {_domain(host) for host in known} - {""}
    return any(host in known or _domain(host) in domains for host in managers_of_it)


def _domain(host: str) -> str:
    """Return what follows the first label; empty for what is no domain of one owner."""
    rest = host.partition(".")[2]
    return "" if is_address(host) or rest.count(".") + 1 < _LEAST_LABELS else rest


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
