"""The address of a server that a path set leads to, and whether data goes to another one."""

import ipaddress

from mpx.errors import ControllerError
from mpx.report import OnNote, Severity


class ServerAddress:
    """Calls `note` once where data goes to another address; if `required`, that is an error."""

    def __init__(self, address: str, *, required: bool, note: OnNote) -> None:
        # Data has gone to another address: what the paths carry is not known. Set once, by any thread.
        self.strayed = False
        self._address, self._required, self._note = address, required, note

    def is_steered(self, host: str) -> bool:
        """Return whether data from or to `host` is steered; raises ControllerError where that is required."""
        if _plain(host) == _plain(self._address):
            return True
        why = f"the server has its data at {host}, but the path set leads to {self._address}"
        if self._required:
            raise ControllerError(f"{why}; use the data address in the URL")
        if not self.strayed:
            self.strayed = True
            self._note(f"one path is used: {why}", Severity.NOTICE)
        return False


def _plain(host: str) -> str:
    """Return an address without its zone; an IPv4-mapped one as IPv4."""
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)
