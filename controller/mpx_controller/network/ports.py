"""The ports of a switch, as it reports them."""

from dataclasses import dataclass

from mpx_controller.graph import Port


@dataclass(frozen=True)
class PortState:
    """One port: `up` if it has a carrier and is not shut down."""

    port: Port
    hardware: str
    name: str = ""
    up: bool = True
