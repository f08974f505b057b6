"""One cell of an experiment: a link, the traffic on it, and a tool that copies across it for some time."""

import re
from dataclasses import asdict, dataclass
from typing import Any

from apt.tools import UDT

STOCK, MPX = "stock", "mpx"  # servers
RATE, RTT, LOSS = "rate", "rtt", "loss"  # what may change
PAYLOAD_SHARE = 1448 / 1514  # of a full frame, less the headers of Ethernet, IPv4 and TCP with time stamps


@dataclass(frozen=True)
class Link:
    """A bottleneck, as the paper's table 1 has it, and what the hosts at its ends are set to.

    The default is the paper's 1 Gbit/s and 10 ms at a fifth of the clock: the same product of bandwidth
    and delay, so the same windows, queue and number of streams.
    """

    rate_bps: int = 200_000_000
    rtt_s: float = 0.050
    queue_packets: int = 500
    window_bytes: int | None = 65535  # None: tuned by the kernel
    congestion: str = "cubic"
    loss: float = 0.0  # share of frames, in the direction of the data
    udp_share: float = 0.0  # share of the rate that constant UDP takes
    beside: str = ""  # generators of mpx_lab.traffic in the same direction, joined by " + "
    burst_bytes: int | None = None  # of a token bucket; this and what follows: in simulated time only
    policer: bool = False  # without a queue: what comes when the bucket is empty is lost
    fair_queue: bool = False  # fq_codel
    server: str = STOCK  # or MPX
    change: str = ""  # half-way RATE, RTT or LOSS ...
    change_to: float = 0.0  # ... is that, in the units above

    @property
    def ceiling_bps(self) -> float:
        """The most goodput that TCP can have beside the UDP."""
        return self.rate_bps * (1 - self.udp_share) * PAYLOAD_SHARE

    @property
    def neighbours(self) -> dict[str, str]:
        """The generators, by the names of their flows: beside, beside-2, ..."""
        specs = self.beside.split(" + ") if self.beside else []
        return {f"beside-{i}" if i > 1 else "beside": spec for i, spec in enumerate(specs, 1)}

    @property
    def name(self) -> str:
        """A unique name, usable in file names."""
        parts = [
            f"{self.rate_bps / 1e6:g}M",
            f"{self.rtt_s * 1e3:g}ms",
            f"q{self.queue_packets}",
            self.congestion,
        ]
        parts.append("auto" if self.window_bytes is None else f"w{self.window_bytes}")
        if self.loss:
            parts.append(f"loss{self.loss:g}")
        if self.udp_share:
            parts.append(f"udp{self.udp_share:g}")
        if self.burst_bytes:
            parts.append(f"burst{self.burst_bytes}")
        if self.policer:
            parts.append("policer")
        if self.fair_queue:
            parts.append("fair-queue")
        if self.server != STOCK:
            parts.append(self.server)
        if self.change:
            parts.append(f"{self.change}-{self.change_to:g}")
        if self.beside:
            parts.append(re.sub(r"[^a-z0-9]+", "-", self.beside).strip("-"))
        return "-".join(parts)


@dataclass(frozen=True)
class Cell:
    """A tool on a link, for so many seconds; one of several repetitions.

    Of several transfers each begins `every_s` after the one before; the last one has `seconds`.
    """

    link: Link
    tool: str
    seconds: float
    repetition: int = 1
    transfers: int = 1
    every_s: float = 0.0
    waits: bool = True  # until the traffic beside it fills the link

    @property
    def name(self) -> str:
        """What it is stored under."""
        joins = f"-{self.transfers}x{self.every_s:g}s" if self.transfers > 1 else ""
        at_once = "" if self.waits else "-at-once"
        return f"{self.link.name}-{self.tool}-{self.seconds:g}s{joins}{at_once}-{self.repetition}"

    @property
    def can_be_simulated(self) -> bool:
        """Whether it can run in simulated time: UDT reads the processor's cycle counter, not a clock."""
        return UDT not in (self.tool, *self.link.neighbours.values())

    def described(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)
