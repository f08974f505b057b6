"""One run of a dataset: what is on a link and when, all of it known before it is measured."""

import random
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mpx_lab.dataset.links import Wan

RECIPES = 3  # incremented when runs change their meaning though their recipe reads the same

LEAD_S = 5.0  # in which the processes that are needed first start
STAGGER_S = 3.0  # in which the streams of a mix begin
NOTHING_S = 5.0  # where nothing has to settle: time for other processes to start
ALONE_S, ALONE_RTT = 8.0, 20.0  # our copy runs before a mix arrives beside it
SETTLES_S, SETTLES_RTT = 3.0, 10.0  # after our copy has begun, or other traffic
LOGIN_RTT = 15.0  # until our copy sends; logging in takes longer over a full queue
BETWEEN_S = 2.0  # between two series
AGAIN_S, AGAIN_RTT = 5.0, 20.0  # and a cycle of CUBIC: after traffic that displaced the mix
APART = ("dips", "long", "passive")  # parts that may be runs of their own of a link and a mix
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
class Own:
    """A copy of our own beside the mix."""

    congestion: str
    streams: int
    dips: bool = False

    @property
    def spec(self) -> str:
        """The generator that makes this copy."""
        dips = ", dips=1" if self.dips else ""
        return f"gridftp(streams={self.streams}, congestion={self.congestion}{dips})"


@dataclass(frozen=True)
class Stretch:
    """What there is beside the mix while one series lasts."""

    part: str  # what the series is for
    seconds: float
    nuisance: tuple[str, ...] = ()  # generators of other traffic
    profile: str = ""  # of PROFILES
    own: Own | None = None

    @property
    def bursts(self) -> tuple[str, ...]:
        """The generators that probe."""
        return PROFILES[self.profile]

    @property
    def takes_the_link(self) -> bool:
        """Whether the mix has to recover afterwards."""
        return bool(self.profile) or self.own is not None


@dataclass(frozen=True)
class Series:
    """When a stretch is; seconds of the run. What is beside the mix begins before what has a label."""

    stretch: Stretch
    begins_s: float
    from_s: float

    @property
    def until_s(self) -> float:
        """Its end, and of what is beside the mix."""
        return self.from_s + self.stretch.seconds


@dataclass(frozen=True)
class Recipe:
    """One run: a mix on a link, and stretches one after the other. All random values follow from its name."""

    link: Wan
    mix: str  # of MIXES, or what is outside of them
    streams: tuple[str, ...]  # generators that make the mix
    stretches: tuple[Stretch, ...]
    fills: bool = False  # whether the mix has to fill the link for its label to be valid
    ours_first: bool = False  # the mix arrives when the copy of the first stretch is there already
    turn: int = 1

    @property
    def name(self) -> str:
        """What its folder is called."""
        parts = {stretch.part for stretch in self.stretches}
        apart = next((f"-{part}" for part in APART if parts == {part}), "")
        return f"{self.link.id}-{re.sub('[^A-Za-z0-9]+', '-', self.mix)}-{self.turn}{apart}"

    @property
    def arrives_s(self) -> float:
        """When the mix begins."""
        alone_s = ALONE_S + ALONE_RTT * self.link.rtt_s if self.ours_first else 0.0
        return LEAD_S + alone_s

    @cached_property
    def begins_s(self) -> tuple[float, ...]:
        """When each stream of the mix begins."""
        chance = random.Random(f"begin {self.name}")
        return tuple(round(self.arrives_s + chance.uniform(0, STAGGER_S), 3) for _ in self.streams)

    @property
    def settled_s(self) -> float:
        """When the mix is in its steady state.

        Where ours was first it is as old by then whatever the mix: its age must not tell the mix.
        """
        if self.streams or self.ours_first:
            return self.arrives_s + STAGGER_S + self.link.settles_s
        return self.arrives_s + NOTHING_S

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """What is labelled, in the order of time."""
        found: list[Series] = []
        for stretch in self.stretches:
            begins_s = found[-1].until_s + self._pause_s(found[-1].stretch) if found else self.settled_s
            from_s = begins_s + self._comes_up_s(stretch)
            if not found and self.ours_first:
                begins_s, from_s = LEAD_S, self.settled_s
            found.append(Series(stretch, begins_s, from_s))
        return tuple(found)

    @property
    def ends_s(self) -> float:
        """When the run is over."""
        return self.series[-1].until_s + TAIL_S

    def described(self) -> dict[str, Any]:
        """Return it as in run.json; runs with the same description are the same measurement."""
        return {
            "recipes": RECIPES,
            "link": {**asdict(self.link), "queue_bytes": self.link.queue_bytes},
            "mix": self.mix,
            "streams": list(self.streams),
            "begins_s": list(self.begins_s),
            "fills": self.fills,
            "ours_first": self.ours_first,
            "series": [_described(series) for series in self.series],
            "turn": self.turn,
        }

    def _comes_up_s(self, stretch: Stretch) -> float:
        """How long what is beside the mix needs; bursts are looked at from their beginning on."""
        settles_s = SETTLES_S + SETTLES_RTT * self.link.rtt_s
        if stretch.own:
            return max(settles_s, LOGIN_RTT * self.link.rtt_s * (1 + self.link.queue_bdp))
        return settles_s if stretch.nuisance else 0.0

    def _pause_s(self, stretch: Stretch) -> float:
        """How long until the mix is again what it was before a stretch."""
        if stretch.takes_the_link and self.streams:
            return AGAIN_S + AGAIN_RTT * self.link.rtt_s + self.link.cycle_s
        return BETWEEN_S


def _described(series: Series) -> dict[str, Any]:
    stretch = series.stretch
    return {
        "part": stretch.part,
        "begins_s": series.begins_s,
        "from_s": series.from_s,
        "seconds": stretch.seconds,
        "nuisance": list(stretch.nuisance),
        "profile": stretch.profile,
        "bursts": list(stretch.bursts),
        "own_congestion": stretch.own.congestion if stretch.own else "",
        "own_streams": stretch.own.streams if stretch.own else 0,
    }
