"""A set of networks."""

import ipaddress
from collections.abc import Iterable


class Networks:
    """Whether an address is in one of some networks."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(each) for each in networks]

    def __call__(self, address: str) -> bool:
        """Whether an address is in one of them."""
        asked = ipaddress.ip_address(address)
        return any(asked in network for network in self._networks if network.version == asked.version)
