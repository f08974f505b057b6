"""Gives a file its name at a cluster, where another server of it may have an older file of that name.

The head leads to one server that has what is renamed, and knows nothing of the others then. So these are
asked for first, and what they have is removed once the new file has the name.
"""

import threading
from typing import Any

from XRootD import client
from XRootD.client.flags import QueryCode

from mpx.endpoints.xrootd import meaning

PREFERS_NAMES = 0x0100  # kXR_prefname, of `locate` alone: certificates are for names
_KNOWN_WITHIN_S = 60.0
_ALONE = ("server", "none", "role", "")  # what a server answers that leads nowhere, or does not know


class Replacing:
    """For any thread. `url`: of the server, which is asked at once whether it leads to others."""

    def __init__(self, url: str, server: Any) -> None:
        self._scheme, self._server = url.partition("://")[0], server
        self._is_known = threading.Event()
        self._leads = False
        if not server.query(QueryCode.CONFIG, "role", callback=self._answered).ok:
            self._is_known.set()

    def _answered(self, status: Any, found: Any, _hosts: Any) -> None:
        if status.ok and found is not None:
            self._leads = found.rstrip(b"\0\n").decode("ascii", "replace") not in _ALONE
        self._is_known.set()

    @property
    def leads(self) -> bool:
        """Whether the server leads to others; waits for its answer, which comes before others do."""
        self._is_known.wait(_KNOWN_WITHIN_S)
        return self._leads

    def rename(self, name: str, other: str) -> Any:
        """Return the status of all of it; waits for the servers."""
        here, before = self._places(name), self._places(other)
        status, _ = self._server.mv(name, other)
        if not status.ok:
            return status
        for place in sorted(before - here) if here else ():
            there = client.FileSystem(f"{self._scheme}://{place}/")
            removed, _ = there.rm(other)
            # Heads of other storage may rename everywhere: those that they name have no such file.
            if not removed.ok and there.stat(other)[0].ok:
                told = meaning.told(removed.message)
                return meaning.Failed(f"{place} has an older file of that name, which stays: {told}")
        return status

    def _places(self, name: str) -> set[str]:
        """Return the servers that have a name, as far as the head knows."""
        status, found = self._server.deeplocate(name, PREFERS_NAMES)
        return {each.address for each in found} if status.ok and found is not None else set()
