"""The address of a server that a path set leads to, and what comes of data that is moved with another."""

import ipaddress

from mpx.errors import ControllerError
from mpx.report import OnNote, Severity


class ServerAddress:
    """`note` is told once where data goes elsewhere; if `required`, that is an error."""

    def __init__(self, address: str, *, required: bool, note: OnNote) -> None:
        # Data has gone elsewhere: nobody knows what the paths carry. Set once, by any thread.
        self.strayed = False
        self._address, self._required, self._note = address, required, note

    def is_that_of(self, host: str) -> bool:
        """Return whether data from or to `host` is steered; raises ControllerError where it has to be."""
        if _plain(host) == _plain(self._address):
            return True
        why = f"the server has its data at {host}, and the paths of the controller lead to {self._address}"
        if self._required:
            raise ControllerError(f"{why}; name the server by the address of its data")
        if not self.strayed:
            self.strayed = True
            self._note(f"one path is used: {why}", Severity.NOTICE)
        return False


def _plain(host: str) -> str:
    """Return an address without its zone; IPv4 that was mapped into IPv6 as IPv4."""
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)
