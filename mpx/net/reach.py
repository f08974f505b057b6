"""How far an address reaches, and so whose word on it can be taken. Pure."""

import ipaddress


def believed_host(named: str, peer: str) -> str:
    """Return where to connect to when a server that we reach at `peer` names `named` and is to be believed.

    Another host is fine: a server may have its data elsewhere. But an address that reaches less far than
    the one we use (private where that is public, loopback where it is not) means nothing here, or something
    that is no business of the server; then, as for 0.0.0.0, it is the server itself.
    """
    return peer if _reach(named) < _reach(peer) else named


def _reach(host: str) -> int:
    """Return how far an address reaches: nowhere, this host, this link, this organisation, everywhere."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_unspecified or address.is_multicast or host.startswith("0."):
        return 0
    if address.is_loopback:
        return 1
    if address.is_link_local:
        return 2
    return 4 if address.is_global else 3


def means_the_same_at(address: str, host: str) -> bool:
    """Tell whether an address that we use is the same for a host that we reach at `host`.

    One that reaches less far than that host (loopback or private, where that is elsewhere) may be another one
    there: who is sent to it might attack somebody in our name.
    """
    return _reach(address) >= _reach(host)


def is_another(seen: str, ours: str) -> bool:
    """Tell whether an address that was seen is not ours; of another family it may belong to the same host."""
    try:
        one, other = ipaddress.ip_address(seen), ipaddress.ip_address(ours)
    except ValueError:
        return False
    return one.version == other.version and one != other
