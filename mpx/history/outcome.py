"""What a copy found of a path: which one, with how many streams, and what they carried."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """One direction between an address of ours and a server, used by one policy.

    Policies differ in what is the best number of streams: `fast` takes more than `fair`.
    """

    ours: str  # address
    server: str  # address
    port: int
    is_upload: bool
    policy: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tuner of one copy came to."""

    when_s: float  # since 1970
    rtt_s: float
    streams: int  # that the copy had longest in its last half minute
    goodput_bps: float  # with these
    window_bytes: float | None  # what a stream had under way where windows limited it; None: they did not
