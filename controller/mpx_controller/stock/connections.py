"""The TCP connections of this host that may carry data, looked at many times a second."""

from dataclasses import dataclass

from mpx.net import sock_diag
from mpx.net.sock_diag import End

# Those that may have data on their way: not FIN_WAIT2, TIME_WAIT, CLOSE or LISTEN.
_ALIVE = sum(1 << state for state in (1, 2, 3, 4, 8, 9, 11))


@dataclass(frozen=True)
class Connection:
    """Address and port of both ends of a connection; IPv4 mapped into IPv6 is IPv4."""

    local: End
    remote: End


class Connections:
    """Lists the TCP connections of the network namespace it is made in; raises OSError where it cannot."""

    def __init__(self) -> None:
        self._netlink = sock_diag.opened()

    def now(self) -> list[Connection]:
        """Return all that live; raises OSError."""
        return [Connection(each.local, each.remote) for each in sock_diag.listed(self._netlink, _ALIVE)]

    def close(self) -> None:
        """Ask no more."""
        self._netlink.close()
