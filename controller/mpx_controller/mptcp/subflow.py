"""One steered subflow of a connection."""

from dataclasses import dataclass

from mpx_controller.graph import Path, switches_of
from mpx_controller.steering import Ends

FIRST_IDLE_S = 10  # many connections end before their entries are installed, so their end is not seen
IDLE_S = 600  # of a subflow that has been used; after so long it has ended, or lost its host


@dataclass(frozen=True)
class Subflow:
    """Where a subflow is: its hosts' hardware addresses and ports, and its path."""

    hardware: tuple[str, str]  # of source and sink
    ends: Ends
    home: Path = ()  # that it was put on
    path: Path = ()  # that it is on while its own is not there
    on: frozenset[int] = frozenset()  # switches that have entries of it
    lost_s: float | None = None  # since when there is no path
    is_used: bool = False  # it has had more than a few packets

    @property
    def switches(self) -> tuple[int, ...]:
        """The datapath ids on its path."""
        return switches_of(self.path, self.ends.source_port.switch)

    @property
    def idle_s(self) -> int:
        """After so long without a packet its entries are removed."""
        return IDLE_S if self.is_used else FIRST_IDLE_S

    @property
    def between(self) -> tuple[int, int]:
        """The switches of its hosts."""
        return self.ends.source_port.switch, self.ends.sink_port.switch
