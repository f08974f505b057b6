"""Background generators by name, in one line of text: `tcp(congestion=bbr, streams=2)`.

A rate is what the generator offers in payload (as its goodput is counted), without headers. Every pattern
begins with its "on" time.
"""

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, get_args, get_type_hints

from mpx.errors import UsageError
from mpx_lab.traffic.values import KINDS, Congestion, Duration, Rate, Size

MOST_STREAMS = 256
MOST_GRIDFTP_STREAMS = 64
MOST_BLOCK_BYTES = 1 << 20
MOST_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Tcp:
    """Streams that send without a pause."""

    name: ClassVar[str] = "tcp"
    congestion: Congestion = ""  # empty: that of the route or the kernel
    streams: int = 1

    def __post_init__(self) -> None:
        _check(self.name, "streams", 1 <= self.streams <= MOST_STREAMS, f"1 to {MOST_STREAMS}")


@dataclass(frozen=True, slots=True)
class TcpSquare:
    """Streams that send for `on` seconds, are cut, and come back as new connections after `off` seconds.

    The first period begins `after` so many seconds, so that two generators can alternate.
    """

    name: ClassVar[str] = "tcp-square"
    congestion: Congestion = ""
    streams: int = 1
    on: Duration = 10.0
    off: Duration = 10.0
    after: Duration = 0.0

    def __post_init__(self) -> None:
        _check(self.name, "streams", 1 <= self.streams <= MOST_STREAMS, f"1 to {MOST_STREAMS}")
        _check(self.name, "on", self.on > 0, "above zero")
        _check(self.name, "off", self.off > 0, "above zero")


@dataclass(frozen=True, slots=True)
class ShortFlows:
    """Connections that arrive at random (Poisson) and each send one piece of a heavy-tailed size.

    They offer `load` times the rate `of` on average. Sizes are bounded Pareto: between `smallest` and
    `largest`, P(size > x) falls with x to the power of -`shape`. The same seed gives the same flows.
    """

    name: ClassVar[str] = "short-flows"
    load: float
    of: Rate
    smallest: Size = 10_000
    largest: Size = 10_000_000
    shape: float = 1.2
    seed: int = 1
    congestion: Congestion = ""

    def __post_init__(self) -> None:
        _check(self.name, "load", 0 < self.load <= 2, "above 0 and at most 2")
        _check(self.name, "of", self.of > 0, "above zero")
        _check(self.name, "smallest", 0 < self.smallest < self.largest, "above zero and below largest")
        _check(self.name, "shape", 0.1 <= self.shape <= 10, "0.1 to 10")


@dataclass(frozen=True, slots=True)
class Udp:
    """Datagrams at a constant rate, whether or not they arrive."""

    name: ClassVar[str] = "udp"
    rate: Rate

    def __post_init__(self) -> None:
        _check(self.name, "rate", self.rate > 0, "above zero")


@dataclass(frozen=True, slots=True)
class UdpSquare:
    """Datagrams at `rate` for `on` seconds, then none for `off` seconds."""

    name: ClassVar[str] = "udp-square"
    rate: Rate
    on: Duration = 10.0
    off: Duration = 10.0

    def __post_init__(self) -> None:
        _check(self.name, "rate", self.rate > 0, "above zero")
        _check(self.name, "on", self.on > 0, "above zero")
        _check(self.name, "off", self.off > 0, "above zero")


@dataclass(frozen=True, slots=True)
class UdpBursty:
    """Datagrams at `rate` for the first `burst` seconds of each `period`: bursty(x, y) of the literature."""

    name: ClassVar[str] = "udp-bursty"
    rate: Rate
    period: Duration
    burst: Duration = 1.0

    def __post_init__(self) -> None:
        _check(self.name, "rate", self.rate > 0, "above zero")
        _check(self.name, "burst", 0 < self.burst < self.period, "above zero and shorter than period")


@dataclass(frozen=True, slots=True)
class GridFtp:
    """A real copy: `mpx copy --streams N` to a real `mpx serve`, file after file for as long as it runs.

    With `dips` 1 it makes a rate pulse each second, and logs the response of the queue
    (mpx.recognition.pulses.pulse).
    """

    name: ClassVar[str] = "gridftp"
    streams: int = 4
    congestion: Congestion = ""
    dips: int = 0

    def __post_init__(self) -> None:
        most = MOST_GRIDFTP_STREAMS
        _check(self.name, "streams", 1 <= self.streams <= most, f"1 to {most}")
        _check(self.name, "dips", self.dips in (0, 1), "0 or 1")


@dataclass(frozen=True, slots=True)
class Rpc:
    """Clients that write as over NFS: each sends blocks, of which `slots` are without an answer at most.

    The defaults give 32 Mbit/s for each client over 128 ms, as NFS of the years around 2010.
    """

    name: ClassVar[str] = "rpc"
    streams: int = 1
    block: Size = 32_768
    slots: int = 16
    congestion: Congestion = ""

    def __post_init__(self) -> None:
        _check(self.name, "streams", 1 <= self.streams <= MOST_STREAMS, f"1 to {MOST_STREAMS}")
        _check(self.name, "block", 512 <= self.block <= MOST_BLOCK_BYTES, "512 B to 1 MiB")
        _check(self.name, "slots", 1 <= self.slots <= MOST_SLOTS, f"1 to {MOST_SLOTS}")


@dataclass(frozen=True, slots=True)
class Udt:
    """One UDT stream that sends without a pause; needs libudt."""

    name: ClassVar[str] = "udt"


Spec = Tcp | TcpSquare | ShortFlows | Udp | UdpSquare | UdpBursty | GridFtp | Rpc | Udt

GENERATORS: dict[str, type[Spec]] = {kind.name: kind for kind in get_args(Spec)}


def parse(text: str) -> Spec:
    """Read `udp-bursty(rate=50Mbit/s, period=5s)`; a name alone takes the defaults. Raises UsageError."""
    name, bracket, rest = text.strip().partition("(")
    kind = GENERATORS.get(name.strip())
    if kind is None:
        known = ", ".join(GENERATORS)
        raise UsageError(f"'{text}' is not a generator: '{name.strip()}' is not one of {known}")
    if bracket and not rest.endswith(")"):
        raise UsageError(
            f"'{text}' is not a generator: the ')' is missing; write for example {_example(kind)}"
        )
    return kind(**_arguments(text, kind, rest[:-1]))


def show(spec: Spec) -> str:
    """Write a generator so that `parse` reads the same; what has its default is left out."""
    hints = get_type_hints(type(spec), include_extras=True)
    said = (
        f"{field.name}={KINDS[hints[field.name]].show(getattr(spec, field.name))}"
        for field in fields(spec)
        if getattr(spec, field.name) != field.default
    )
    return f"{spec.name}({', '.join(said)})"


def protocol_of(spec: Spec) -> str:
    """Return the kind of the receiver: `tcp`, `udp`, or the name of the generator itself."""
    if isinstance(spec, Udp | UdpSquare | UdpBursty):
        return "udp"
    return spec.name if isinstance(spec, GridFtp | Rpc | Udt) else "tcp"


def _arguments(text: str, kind: type[Spec], inside: str) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    known = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in inside.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            raise UsageError(
                f"'{text}' is not a generator: {kind.name} has no '{key}' (it has {', '.join(known)})"
            )
        if not equals or key in given:
            wrong = f"'{key}' is given twice" if key in given else f"'{key}' has no value"
            raise UsageError(f"'{text}' is not a generator: {wrong}; write for example {_example(kind)}")
        try:
            given[key] = KINDS[hints[key]].parse(value)
        except UsageError as error:
            raise UsageError(f"in '{text}': {key}: {error}") from None
    for name, field in known.items():
        if field.default is MISSING and name not in given:
            raise UsageError(
                f"'{text}' is not a generator: {kind.name} needs {name}; write for example {_example(kind)}"
            )
    return given


def _example(kind: type[Spec]) -> str:
    return f"'{EXAMPLES[kind.name]}'"


EXAMPLES = {
    "tcp": "tcp(congestion=bbr, streams=2)",
    "tcp-square": "tcp-square(on=10s, off=10s)",
    "short-flows": "short-flows(load=0.1, of=100Mbit/s)",
    "udp": "udp(rate=50Mbit/s)",
    "udp-square": "udp-square(rate=50Mbit/s, on=10s, off=10s)",
    "udp-bursty": "udp-bursty(rate=50Mbit/s, burst=1s, period=5s)",
    "gridftp": "gridftp(streams=16)",
    "rpc": "rpc(streams=16)",
    "udt": "udt",
}


def _check(name: str, key: str, holds: bool, bounds: str) -> None:
    if not holds:
        raise UsageError(f"{name}: {key} must be {bounds}; write for example '{EXAMPLES[name]}'")
