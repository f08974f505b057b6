"""Which number of streams a copy settled on: the one that it had longest lately, and what that carried."""

import math
from dataclasses import dataclass

from mpx.engine.tuner import Sample

LATELY_S = 30.0  # what was longer ago counts for less than a third
ENOUGH_S = 5.0  # with one number, before it is worth to be remembered
OPENING_S = 1.0  # after another number is seen: its streams come up to speed
HELD_BACK = 0.5  # windows are the limit, if they are for that share of the time


@dataclass(slots=True)
class _Spell:
    """What one number of streams did, in seconds and bytes that fade."""

    time_s: float = 0.0
    carried_bytes: float = 0.0
    held_back_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """A number of streams, its goodput, and the window of each, bytes, where windows limited them."""

    streams: int
    goodput_bps: float
    window_bytes: float | None


class Settling:
    """Takes every sample of one path in order of time; keeps one spell for each number of streams."""

    def __init__(self) -> None:
        self._spells: dict[int, _Spell] = {}
        self._latest: tuple[float, int] | None = None  # time, and bytes that had arrived
        self._streams, self._since_s = 0, -math.inf

    def observe(self, now_s: float, sample: Sample) -> None:
        """Take what a path has done by `now_s`."""
        if sample.streams != self._streams:
            self._streams, self._since_s = sample.streams, now_s
        before, self._latest = self._latest, (now_s, sample.arrived_bytes)
        if before is None or now_s <= before[0]:
            return
        took_s, came_bytes = now_s - before[0], sample.arrived_bytes - before[1]
        for spell in self._spells.values():
            fades = math.exp(-took_s / LATELY_S)
            spell.time_s *= fades
            spell.carried_bytes *= fades
            spell.held_back_s *= fades
        if sample.streams < 1 or now_s - self._since_s < OPENING_S or not came_bytes:
            return
        spell = self._spells.setdefault(sample.streams, _Spell())
        spell.time_s += took_s
        spell.carried_bytes += came_bytes
        limited = (sample.limited_by_receiver or 0.0) + (sample.limited_by_sender or 0.0)
        spell.held_back_s += took_s * min(1.0, limited)

    def found(self, rtt_s: float) -> Settled | None:
        """Return what the path settled on, None where it did not; `rtt_s`: without queues."""
        if not self._spells:
            return None
        streams, spell = max(self._spells.items(), key=lambda each: each[1].time_s)
        if spell.time_s < ENOUGH_S:
            return None
        goodput_bps = 8 * spell.carried_bytes / spell.time_s
        is_limited = spell.held_back_s > HELD_BACK * spell.time_s
        window_bytes = goodput_bps / 8 * rtt_s / streams if is_limited else None
        return Settled(streams, goodput_bps, window_bytes)
