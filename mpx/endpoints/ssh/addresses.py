"""Where the host that an ssh has come to can be reached without it, if anywhere."""

import ipaddress
import socket
from collections.abc import Callable

from mpx.errors import MpxError
from mpx.net import tcp
from mpx.net.reach import believed_host


def addresses_of(host: str, named: str, stop: Callable[[], bool]) -> list[str]:
    """Return the addresses to try: the one that the other end names, and those of `host`, as ssh knows it.

    Not one that reaches less far than where ssh has come to: that is no business of the other end.
    """
    try:
        found = [address[0] for _, address in tcp.resolve(host, 1, socket.AF_UNSPEC, stop)]
        believed = believed_host(str(ipaddress.ip_address(named)), found[0])
    except (MpxError, ValueError, IndexError):
        return []
    return list(dict.fromkeys((believed, *found)))
