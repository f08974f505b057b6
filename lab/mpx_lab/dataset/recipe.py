"""One run of a dataset: what is on a link and when, so that all of it is known before it is measured."""

import random
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mpx_lab.dataset.links import Wan

RECIPES = 2  # counted up when runs would mean something else though their recipe reads the same

LEAD_S = 5.0  # the processes that are needed first start within that time
STAGGER_S = 3.0  # streams of a mix begin within that time
NOTHING_S = 5.0  # where nothing has to settle: the other processes start
ALONE_S, ALONE_RTT = 8.0, 20.0  # our copy runs before a mix arrives beside it
SETTLES_S, SETTLES_RTT = 3.0, 10.0  # after our copy has begun
BETWEEN_S = 2.0  # one copy of ours and the next
TAIL_S = 1.2  # after the last series: answers that are still under way

# What one stream sends while a path is probed. The paper's profile (Anvari and Lu, Computers 10(6):76, 2021,
# section 4.2) is CUBIC, BBR, CUBIC, nothing, 5 s each; the short one is CUBIC 2 s, BBR 2 s, nothing 1 s.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "": (),
    "paper": (
        "tcp-square(congestion=cubic, on=5s, off=5s)",
        "tcp-square(congestion=bbr, on=5s, off=15s, after=5s)",
    ),
    "short": (
        "tcp-square(congestion=cubic, on=2s, off=3s)",
        "tcp-square(congestion=bbr, on=2s, off=3s, after=2s)",
    ),
}


@dataclass(frozen=True)
class Copies:
    """Our own copies beside a mix: one after the other, each with another congestion control."""

    congestions: tuple[str, ...]
    streams: int
    first: bool  # the mix arrives when ours is there already


@dataclass(frozen=True)
class Copy:
    """One of them; seconds of the run."""

    congestion: str
    streams: int
    from_s: float
    until_s: float

    @property
    def spec(self) -> str:
        """The generator that does it."""
        return f"gridftp(streams={self.streams}, congestion={self.congestion})"


@dataclass(frozen=True)
class Series:
    """A stretch of a run that has a label; seconds of the run."""

    from_s: float
    seconds: float

    @property
    def until_s(self) -> float:
        """Its end."""
        return self.from_s + self.seconds


@dataclass(frozen=True)
class Recipe:
    """One run. All that is random in it follows from its name."""

    part: str
    link: Wan
    mix: str  # of MIXES, or what is outside of them
    streams: tuple[str, ...]  # generators that make the mix
    seconds: float  # of each series
    fills: bool = False  # whether the mix has to fill the link, or the label says nothing
    nuisance: tuple[str, ...] = ()
    profile: str = ""  # of PROFILES
    copies: Copies | None = None
    turn: int = 1

    @property
    def name(self) -> str:
        """What its folder is called."""
        return f"{self.part}-{self.link.id}-{re.sub('[^A-Za-z0-9]+', '-', self.mix)}-{self.turn}"

    @property
    def bursts(self) -> tuple[str, ...]:
        """The generators that probe."""
        return PROFILES[self.profile]

    @property
    def arrives_s(self) -> float:
        """When the mix, and what is beside it, begins."""
        alone_s = ALONE_S + ALONE_RTT * self.link.rtt_s if self._ours_first else 0.0
        return LEAD_S + alone_s

    @cached_property
    def begins_s(self) -> tuple[float, ...]:
        """When each stream of the mix begins."""
        chance = random.Random(f"begin {self.name}")
        return tuple(round(self.arrives_s + chance.uniform(0, STAGGER_S), 3) for _ in self.streams)

    @property
    def settled_s(self) -> float:
        """When the mix looks as it will for hours.

        Where ours was first it is as old by then whatever the mix: its age must not tell the mix.
        """
        if self.streams or self._ours_first:
            return self.arrives_s + STAGGER_S + self.link.settles_s
        return self.arrives_s + NOTHING_S

    @cached_property
    def ours(self) -> tuple[Copy, ...]:
        """Our own copies, in the order of time."""
        if self.copies is None:
            return ()
        settles_s = SETTLES_S + SETTLES_RTT * self.link.rtt_s
        found: list[Copy] = []
        for congestion in self.copies.congestions:
            if found:
                from_s = found[-1].until_s + BETWEEN_S
                series_s = from_s + settles_s
            else:
                from_s = LEAD_S if self._ours_first else self.settled_s
                series_s = self.settled_s if self._ours_first else from_s + settles_s
            found.append(Copy(congestion, self.copies.streams, from_s, series_s + self.seconds))
        return tuple(found)

    @property
    def series(self) -> tuple[Series, ...]:
        """What is labelled: one for each copy of ours, else one."""
        if self.ours:
            return tuple(Series(copy.until_s - self.seconds, self.seconds) for copy in self.ours)
        return (Series(self.settled_s, self.seconds),)

    @property
    def ends_s(self) -> float:
        """When all of it is over."""
        return self.series[-1].until_s + TAIL_S

    def described(self) -> dict[str, Any]:
        """Return it as run.json holds it; two runs that are described alike are the same measurement."""
        copies = self.ours or (None,)
        return {
            "recipes": RECIPES,
            "part": self.part,
            "link": {**asdict(self.link), "queue_bytes": self.link.queue_bytes},
            "mix": self.mix,
            "streams": list(self.streams),
            "begins_s": list(self.begins_s),
            "fills": self.fills,
            "nuisance": list(self.nuisance),
            "nuisance_from_s": self.arrives_s,
            "profile": self.profile,
            "bursts": list(self.bursts),
            "copies": [asdict(copy) for copy in self.ours],
            "ours_first": self._ours_first,
            "series": [
                {
                    **asdict(series),
                    "own_congestion": copy.congestion if copy else "",
                    "own_streams": copy.streams if copy else 0,
                }
                for series, copy in zip(self.series, copies, strict=True)
            ],
            "turn": self.turn,
        }

    @property
    def _ours_first(self) -> bool:
        return self.copies is not None and self.copies.first
