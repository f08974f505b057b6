"""A lab as plain values: hosts, switches and the links between them.

Sources and sinks are hosts; a link ends at hosts or switches. A link that is given no rate, delay, queue
or loss between two things of which one is a switch is a plain cable; every other link is emulated.

Hosts that reach each other over switches share a network; every direct link between two hosts is a network of
its own. In the order of the links they are 10.0.0.0/24 and fd00::/64, 10.0.1.0/24 and fd00:0:0:1::/64, ...
Host number N (sources first) has the address N in each of its networks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mpx.errors import UsageError
from mpx_lab.shape import FULL_FRAME_BYTES, PAUSE_S, Shape

HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,14}")
LINK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,12}")  # with .a or .b it is the name of a device: 15 bytes
MAX_HOSTS = 250  # one byte of an address
MAX_NETWORKS = 250
MAX_SWITCHES = 60
MAX_LINKS = 250  # one byte of a hardware address
LINK_SEEDS = 2**32


@dataclass(frozen=True)
class Link:
    """A link between `a` and `b`, the same in both directions; limits as in Shape."""

    a: str
    b: str
    name: str = ""  # a-b unless given
    rate_bps: int | None = None  # bits of frames per second; None: unlimited
    delay_s: float = 0.0  # one way
    queue_bytes: int | None = None  # of each direction; None: unlimited
    queue_packets: int | None = None
    loss: float = 0.0  # share of frames
    seed: int = 0  # of the losses: in the same place of a topology the same seed loses the same frames
    pause_s: float = PAUSE_S  # of its emulator between two polls; longer is cheaper and less exact
    burst_bytes: int | None = None  # this and what follows: in simulated time only, as in Shape
    policer: bool = False
    fair_queue: bool = False
    jitter_s: float = 0.0
    reorder_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"{self.a}-{self.b}")
        if not LINK_NAME.fullmatch(self.name):
            raise UsageError(
                f"'{self.name}' is not a valid name for the link {self.a}-{self.b}: "
                "write 1 to 13 of a-z, 0-9 and -, for example Link(..., name='wan')"
            )
        if self.a == self.b:
            raise UsageError(f"the link {self.name} has {self.a} at both ends")
        if not 0 <= self.seed < LINK_SEEDS:
            raise UsageError(f"the seed of the link {self.name} must be 0 to 2**32-1, not {self.seed}")
        shape = self.shape(seed=0)  # whole numbers, which may have been given as floats
        for name in ("rate_bps", "queue_bytes", "queue_packets", "burst_bytes"):
            object.__setattr__(self, name, getattr(shape, name))

    @property
    def ends(self) -> tuple[str, str]:
        """The two names."""
        return self.a, self.b

    @property
    def shaped(self) -> bool:
        """Whether anything is limited, delayed or lost on it."""
        return self != Link(self.a, self.b, self.name, seed=self.seed)

    def shape(self, seed: int) -> Shape:
        """Return what one of its directions does; raises UsageError where a value is impossible."""
        return Shape(
            rate_bps=self.rate_bps,
            delay_s=self.delay_s,
            queue_bytes=self.queue_bytes,
            queue_packets=self.queue_packets,
            loss=self.loss,
            seed=seed,
            burst_bytes=self.burst_bytes,
            policer=self.policer,
            fair_queue=self.fair_queue,
            jitter_s=self.jitter_s,
            reorder_s=self.reorder_s,
        )

    def scaled(self, scale: float) -> "Link":
        """Return it with rate, burst and byte queue times `scale`; delays stay, and so queue/BDP does."""
        return replace(
            self,
            rate_bps=self.rate_bps and max(1, round(self.rate_bps * scale)),
            queue_bytes=self.queue_bytes and max(FULL_FRAME_BYTES, round(self.queue_bytes * scale)),
            burst_bytes=self.burst_bytes and max(FULL_FRAME_BYTES, round(self.burst_bytes * scale)),
        )


def wan(a: str, b: str, rate_bps: int, rtt_s: float, bdp: float = 1.0, name: str = "wan") -> Link:
    """Return a link with a queue of `bdp` times its bandwidth-delay product (rate times round trip)."""
    queue_bytes = max(FULL_FRAME_BYTES, round(rate_bps / 8 * rtt_s * bdp))
    return Link(a, b, name, rate_bps=rate_bps, delay_s=rtt_s / 2, queue_bytes=queue_bytes)


@dataclass(frozen=True)
class Interface:
    """The end of a link at a host."""

    host: str
    link: str
    device: str  # inside the host
    mac: str
    ipv4: str
    ipv6: str
    network: int

    @property
    def addresses(self) -> tuple[str, str]:
        """IPv4 first."""
        return self.ipv4, self.ipv6

    @property
    def networks(self) -> tuple[str, str]:
        """The two prefixes it is in."""
        return f"10.0.{self.network}.0/24", f"{_prefix6(self.network)}/64"


@dataclass(frozen=True)
class Topology:
    """Hosts, switches and links; raises UsageError unless they fit together."""

    name: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    links: tuple[Link, ...]
    switches: tuple[str, ...] = ()
    text: str = ""  # one line for `mpx lab list`
    scale: float = 1.0  # what rates and byte queues have been multiplied by

    def __post_init__(self) -> None:
        if not HOST_NAME.fullmatch(self.name):
            raise UsageError(
                f"'{self.name}' is not a valid name for a topology: write 1 to 15 of a-z, 0-9 and -"
            )
        for what, names, most in (
            ("hosts", self.hosts, MAX_HOSTS),
            ("switches", self.switches, MAX_SWITCHES),
            ("links", self.links, MAX_LINKS),
        ):
            if len(names) > most:
                raise UsageError(f"the topology {self.name} has {len(names)} {what}; at most {most} fit")
        self._check_names()
        self._check_links()
        if len(self._networks) > MAX_NETWORKS:
            raise UsageError(f"the topology {self.name} has more than {MAX_NETWORKS} separate networks")

    @property
    def hosts(self) -> tuple[str, ...]:
        """Sources, then sinks."""
        return self.sources + self.sinks

    def link(self, name: str) -> Link:
        """Return a link by name; raises UsageError, naming those there are."""
        for link in self.links:
            if link.name == name:
                return link
        names = ", ".join(link.name for link in self.links)
        raise UsageError(f"there is no link '{name}' in {self.name}; there are {names}")

    def direction_seeds(self, name: str, seed: int) -> tuple[int, int]:
        """Return the seeds of the two directions of a link whose own is `seed`, that from `a` to `b` first.

        No two directions of this topology with any two seeds share one. Raises UsageError for no seed.
        """
        link = replace(self.link(name), seed=seed)
        number = [each.name for each in self.links].index(name)
        first = 2 * (link.seed * MAX_LINKS + number) + 1
        return first, first + 1

    def emulated(self, link: Link) -> bool:
        """Whether the emulator carries this link; the others are plain cables (a veth pair)."""
        return link.shaped or (link.a not in self.switches and link.b not in self.switches)

    def scaled(self, scale: float) -> "Topology":
        """Return it with all rates and byte queues times `scale`."""
        if not 0 < scale <= 100:
            raise UsageError(f"a scale must be above 0 and at most 100, not {scale:g}")
        return replace(self, links=tuple(link.scaled(scale) for link in self.links), scale=self.scale * scale)

    def interfaces(self, host: str) -> tuple[Interface, ...]:
        """Return where `host` meets its links: eth0, eth1 and so on, in the order of the links."""
        number = self.hosts.index(host) + 1
        mine = [(index, link) for index, link in enumerate(self.links) if host in link.ends]
        return tuple(
            Interface(
                host=host,
                link=link.name,
                device=f"eth{order}",
                mac=f"02:00:00:00:{index + 1:02x}:{number:02x}",
                ipv4=f"10.0.{self._networks[host, link.name]}.{number}",
                ipv6=f"{_prefix6(self._networks[host, link.name])}{number:x}",
                network=self._networks[host, link.name],
            )
            for order, (index, link) in enumerate(mine)
        )

    def ports(self, switch: str) -> tuple[Link, ...]:
        """Return the links of a switch in the order of its port numbers, which begin at 1."""
        return tuple(link for link in self.links if switch in link.ends)

    def datapath_id(self, switch: str) -> int:
        """Return the datapath ID of a switch for its controller: 1 for the first."""
        return self.switches.index(switch) + 1

    def neighbours(self) -> Iterator[tuple[Interface, Interface]]:
        """Yield every pair of interfaces of two hosts that are in one network, each way."""
        faces = [face for host in self.hosts for face in self.interfaces(host)]
        for one in faces:
            for other in faces:
                if one.network == other.network and one.host != other.host:
                    yield one, other

    @property
    def has_loop(self) -> bool:
        """Whether frames could circle between the switches."""
        between = [link for link in self.links if link.a in self.switches and link.b in self.switches]
        return len(between) > len(self.switches) - len(set(self._islands.values()))

    @cached_property
    def _islands(self) -> dict[str, str]:
        """For each switch the representative of all switches that it can reach over switches."""
        stands_for = {switch: switch for switch in self.switches}
        for link in self.links:
            if link.a in stands_for and link.b in stands_for:
                old, new = stands_for[link.a], stands_for[link.b]
                stands_for = {name: new if to == old else to for name, to in stands_for.items()}
        return stands_for

    @cached_property
    def _networks(self) -> dict[tuple[str, str], int]:
        """The number of the network in which (host, link) is."""
        numbers: dict[str, int] = {}
        found: dict[tuple[str, str], int] = {}
        for link in self.links:
            for host, other in ((link.a, link.b), (link.b, link.a)):
                if host in self.hosts:
                    key = (
                        f"switches {self._islands[other]}" if other in self.switches else f"link {link.name}"
                    )
                    found[host, link.name] = numbers.setdefault(key, len(numbers))
        return found

    def _check_names(self) -> None:
        if not self.sources or not self.sinks:
            raise UsageError(f"the topology {self.name} needs at least one source and one sink")
        seen: set[str] = set()
        for name in self.hosts + self.switches:
            if not HOST_NAME.fullmatch(name) or name in ("switches", "localhost"):
                raise UsageError(
                    f"'{name}' is not a valid name for a host or a switch: write 1 to 15 of a-z, 0-9 and -, "
                    "not 'switches' or 'localhost'"
                )
            if name in seen:
                raise UsageError(f"'{name}' occurs twice in the topology {self.name}")
            seen.add(name)

    def _check_links(self) -> None:
        names: set[str] = set()
        for link in self.links:
            if link.name in names:
                raise UsageError(f"two links of {self.name} are called '{link.name}'; name one of them")
            names.add(link.name)
            for end in link.ends:
                if end not in self.hosts + self.switches:
                    raise UsageError(
                        f"the link {link.name} ends at '{end}', which is neither a host nor a switch"
                    )
        linked = {end for link in self.links for end in link.ends}
        for name in self.hosts + self.switches:
            if name not in linked:
                raise UsageError(f"'{name}' has no link in the topology {self.name}")


def _prefix6(network: int) -> str:
    return f"fd00:0:0:{network:x}::" if network else "fd00::"
