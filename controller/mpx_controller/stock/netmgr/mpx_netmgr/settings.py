"""The settings of the module, from the environment of the server."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

MOST_PATHS = 64


@dataclass(frozen=True)
class Settings:
    """See docs/controller.md. `networks`: whose streams are steered; none: everybody's."""

    url: str
    token: str | None = None
    paths: int = 0
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def applies_to(self, address: str) -> bool:
        """Whether streams to or from that address are to be steered."""
        asked = ipaddress.ip_address(address)
        return not self.networks or any(
            asked in network for network in self.networks if network.version == asked.version
        )


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the environment; raises ValueError, which says what is wrong."""
    url = environment.get("MPX_CONTROLLER", "")
    if not url:
        raise ValueError("MPX_CONTROLLER is not set; set it to the URL of the controller")
    paths = environment.get("MPX_PATHS", "0")
    if not paths.isdecimal() or int(paths) > MOST_PATHS:
        raise ValueError(f"MPX_PATHS must be 0 to {MOST_PATHS}, not {paths!r}")
    return Settings(
        url,
        environment.get("MPX_CONTROLLER_TOKEN", "").strip() or None,
        int(paths),
        tuple(
            ipaddress.ip_network(each)
            for each in environment.get("MPX_NETWORKS", "").replace(",", " ").split()
        ),
    )
