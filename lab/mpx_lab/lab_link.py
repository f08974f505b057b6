"""A link of a running lab, emulated or a plain cable."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from mpx.errors import UsageError
from mpx_lab.builder import ip
from mpx_lab.capacities_file import rewrite_capacities
from mpx_lab.devices import is_up
from mpx_lab.emulator.accounting import LinkStats
from mpx_lab.emulator.kernel_link import KernelLink
from mpx_lab.emulator.link import RunningLink
from mpx_lab.emulator.running import running_link
from mpx_lab.namespace import inside
from mpx_lab.plan import port_name
from mpx_lab.shape import FULL_FRAME_BYTES, Direction, Shape
from mpx_lab.state import environment, folder_of
from mpx_lab.steps import SWITCHES, netns_name
from mpx_lab.topology import Link, Topology


@dataclass(frozen=True)
class WayStatus:
    """The state of one direction of a link."""

    rate_bps: int | None = None  # None: unlimited
    delay_s: float = 0.0
    queue_bytes: int | None = None  # a limit in packets counts as full frames; None: unlimited
    queue_packets: int | None = None  # that limit
    loss: float = 0.0  # share of frames

    @classmethod
    def of(cls, shape: Shape) -> "WayStatus":
        """Return a shape in the units that users see."""
        queue_bytes = shape.queue_bytes
        if shape.queue_packets is not None:
            queue_bytes = shape.queue_packets * FULL_FRAME_BYTES
        return cls(shape.rate_bps, shape.delay_s, queue_bytes, shape.queue_packets, shape.loss)


@dataclass(frozen=True)
class LinkStatus:
    """The state of a link."""

    name: str
    ends: list[str]
    there: WayStatus  # from the first end to the second
    back: WayStatus
    up: bool
    hindrances: tuple[str, ...] = ()  # what makes its emulator late, in words

    def as_json(self) -> dict[str, Any]:
        """Return it as `mpx lab status --json` prints it: `back` only where it is not as `there`."""
        return {
            "name": self.name,
            "ends": self.ends,
            **asdict(self.there),
            "back": None if self.back == self.there else asdict(self.back),
            "up": self.up,
            "hindrances": list(self.hindrances),
        }


class LabLink:
    """One link of the lab `lab_id`."""

    def __init__(self, lab_id: str, topology: Topology, name: str) -> None:
        self._link: Link = topology.link(name)
        self._topology = topology
        self._lab_id = lab_id
        self.name = name
        self.emulated = topology.emulated(self._link)

    def change(self, direction: str | None = None, **changes: Any) -> None:
        """Change fields of Shape while the link runs, in one direction or (None) in both at once.

        A direction is one of `mpx_lab.shape.Direction`, "a-to-b" or "b-to-a": from the link's first end to
        its second, and back.
        `seed` is as in a topology: each direction draws losses of its own from it, and begins anew. Raises
        UsageError for a plain cable, or where a value is impossible.
        """
        each = {one: dict(changes) for one in (Direction if direction is None else (_known(direction),))}
        if "seed" in changes:
            both = self._topology.direction_seeds(self.name, changes["seed"])
            seeds = dict(zip(Direction, both, strict=True))
            for one, fields in each.items():
                fields["seed"] = seeds[one]
        self._emulator().change_each(each)
        if self._topology.switches and changes.keys() & {"rate_bps", "delay_s"}:
            rewrite_capacities(self._lab_id)

    def set_up(self, up: bool) -> None:
        """Connect the link, or cut it: both ends lose their carrier."""
        if self.emulated:
            self._emulator().set_up(up)
        else:
            netns, device = self._port()
            ip(netns, [f"link set {device} {'up' if up else 'down'}"], environment(self._lab_id))

    def stats(self) -> LinkStats:
        """Return the emulator's counters; raises UsageError for a plain cable."""
        return self._emulator().stats()

    def status(self) -> LinkStatus:
        """Return its state."""
        ends = list(self._link.ends)
        if not self.emulated:
            return LinkStatus(self.name, ends, WayStatus(), WayStatus(), self._cable_is_up())
        stats = self.stats()
        there, back = (WayStatus.of(way.shape) for way in (stats.a_to_b, stats.b_to_a))
        return LinkStatus(self.name, ends, there, back, stats.up, stats.hindrances)

    def _emulator(self) -> RunningLink | KernelLink:
        if not self.emulated:
            raise UsageError(
                f"the link {self.name} is a plain cable, on which only --down and --up work; "
                "give it a rate or a delay in the topology for an emulated link"
            )
        return running_link(folder_of(self._lab_id), self.name)

    def _port(self) -> tuple[str, str]:
        """Return the end of a cable at a switch: a host would forget its routes if its end went down."""
        switch = next(name for name in self._link.ends if name in self._topology.switches)
        return netns_name(self._lab_id, SWITCHES), port_name(self._link, switch)

    def _cable_is_up(self) -> bool:
        netns, device = self._port()
        return inside(netns, partial(is_up, device))


def _known(direction: str) -> Direction:
    try:
        return Direction(direction)
    except ValueError:
        raise UsageError(
            f"'{direction}' is not a direction of a link: write {' or '.join(map(repr, map(str, Direction)))}"
        ) from None
