"""One server of a cluster, asked by itself."""

import socket
from typing import Any

from XRootD import client
from XRootD.client.flags import DirListFlags, QueryCode

from mpx.endpoints.xrootd import meaning
from mpx.endpoints.xrootd.clusters import cluster, is_address, is_of, only_manager, plain_host

_NOT_FOLLOWED = "FollowRedirects", "false"


class DataServer:
    """For any thread. Where it leads is not followed, so that it has nothing done at another.

    To be kept as long as the process: on Python 3.11 the binding returns a True that is not its own, of
    which there would be one less each time.
    """

    def __init__(self, scheme: str, address: str) -> None:
        """`address`: HOST:PORT."""
        self.address = address
        self._server = client.FileSystem(f"{scheme}://{address}/")
        self._kept = self._server.set_property(*_NOT_FOLLOWED)

    def stat(self, name: str) -> tuple[Any, Any]:
        """Return the status, and what is known of a name."""
        status, found = self._server.stat(name)
        return status, found

    def move(self, name: str, other: str) -> Any:
        """Return the status."""
        return self._server.mv(name, other)[0]

    def remove(self, name: str) -> Any:
        """Return the status."""
        return self._server.rm(name)[0]

    def entries(self, name: str) -> tuple[Any, Any]:
        """Return the status, and what it has in a folder."""
        status, found = self._server.dirlist(name, DirListFlags.STAT)
        return status, found

    def is_of(self, head: str, uploaded_to: str) -> bool:
        """Tell whether it says itself that it is of the cluster of a head; both HOST:PORT."""
        status, found = self._server.query(QueryCode.CONFIG, "cid")
        if not status.ok or found is None:
            return False
        told, typed = cluster(found), plain_host(head)
        if is_address(typed):
            return typed in _addresses(only_manager(told))
        return is_of(told, (typed, plain_host(uploaded_to)))


def is_missing(status: Any) -> bool:
    """Tell whether a server has answered that it has no such file."""
    return bool((status.code, status.errno) == (meaning.ERROR_RESPONSE, meaning.NOT_FOUND))


def _addresses(name: str) -> list[str]:
    """Return the addresses of what a server itself has named; none of nothing."""
    try:
        found = socket.getaddrinfo(name, None) if name else []
        return [plain_host(str(each[4][0])) for each in found]
    except (OSError, UnicodeError):
        return []
