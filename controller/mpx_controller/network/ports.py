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
    speed_bps: float | None = None  # as the port claims: a TAP says 10 Gbit/s whatever its link
