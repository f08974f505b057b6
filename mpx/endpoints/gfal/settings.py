"""What the process that has gfal2 is told as it starts, and again with each copy. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

VARIABLE = "GFAL_TOLD_BY_MPX"  # of its environment, as arguments are shown to everybody
WATCHED_S = 0.5  # for how long who asks about a copy waits for its end


@dataclass(frozen=True, slots=True)
class GfalSettings:
    """Of all that one process does."""

    server: str  # that names are at, `davs://host:port`
    timeout_s: int
    ipv6: bool = False  # nothing else is to be used
    certificate: str = ""
    key: str = ""
    reads: Sequence[str] = ()  # folders of this host, beside what libraries need
    writes: Sequence[str] | None = None  # the same; None: it is not confined at all
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # by server

    def text(self) -> str:
        """Return them as the process is told them."""
        return json.dumps(asdict(self))


def parse_settings(text: str) -> GfalSettings:
    """Read what `text` makes."""
    found: dict[str, Any] = json.loads(text)  # which has no tuples
    for name in ("reads", "writes"):
        if found[name] is not None:
            found[name] = tuple(found[name])
    return GfalSettings(**found)


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """One file to be copied by gfal2."""

    source: str  # URLs
    destination: str
    streams: int = 0  # between two servers of GridFTP; 0: as gfal2 has it
    handed_by: int = -1  # the socket that brings the open source, which has no other name; -1: none
    is_here: bool = False  # the destination is an open file of this host
    is_new: bool = False  # nothing that has that name is replaced
    straight: str = ""  # between two servers: never, or only so; empty: where they can
    congestion: str = ""  # of its connections; empty: the kernel's choice

    @property
    def kind(self) -> tuple[str, str, int, str] | None:
        """Return what copies must have in common to share a context; None: this one shares none.

        Where SRM leads to only it knows, and from two servers of it data move in more than one way.
        """
        ends = self.source.partition(":")[0], self.destination.partition(":")[0]
        if "srm" in ends and "file" not in ends:
            return None
        return (*ends, self.streams, self.straight)


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a copy, or a checksum, has come."""

    is_over: bool = False
    size_bytes: int = 0  # as gfal2 tells, which does so of some schemes, now and then
    sent: int = 0  # over all connections since it began
    received: int = 0
    steps: int = 0  # that gfal2 has told of
    how: str = ""  # in its words: streamed, or a way between two servers
    code: int = 0  # errno of a failure
    message: str = ""
    sum: str = ""


def dumped(value: CopyOrder | JobState) -> bytes:
    """Return what `loaded` reads."""
    return json.dumps(asdict(value)).encode()


def loaded(content: bytes) -> Any:
    """Return the fields of what was dumped; raises ValueError for what is none."""
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("no fields")
    return found
