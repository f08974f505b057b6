"""Kinds of observation of a path; the model has parts of its own for each (model.py).

Passive: no data of ours. Active: bursts of data, after a profile that repeats. In a transfer: a copy is under
way, whose congestion control and number of streams are known; its own load has to be distinguished from that
of others, and differs between CUBIC and BBR. Where this host sends, or `mpx serve` does, rate pulses
(pulse.py) show our share of the link; such kinds are named `dips`, as in models and data sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

LEAST_SWING_S = 0.001  # a smaller swing of round-trip times is noise
MODEL_VARIABLE = "MPX_MODEL"  # the folder of another model than the shipped one

PASSIVE = "passive"
TRAINS = "trains"  # passive, as the paper probes: a train of ten each second, whose mean is a sample
WAYS = (PASSIVE, TRAINS)  # of probing without data of ours
ACTIVE, ACTIVE_SHORT = "active", "active short"
TRANSFER_CUBIC, TRANSFER_BBR = "transfer cubic", "transfer bbr"
DIPS_CUBIC, DIPS_BBR = "dips cubic", "dips bbr"
DIPS = (DIPS_CUBIC, DIPS_BBR)
TRANSFERS = (TRANSFER_CUBIC, TRANSFER_BBR, *DIPS)
KINDS = (PASSIVE, ACTIVE, ACTIVE_SHORT, *TRANSFERS)

# How long each burst lasts, seconds; a window begins with the first. Active is the paper's profile (Anvari
# and Lu, Computers 10(6):76, 2021): CUBIC, BBR, CUBIC, nothing. The short one is CUBIC, BBR, nothing.
PROFILES: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {ACTIVE: (5.0, 5.0, 5.0, 5.0), ACTIVE_SHORT: (2.0, 2.0, 1.0)}
)


@dataclass(frozen=True, slots=True)
class Own:
    """Our own data during an observation."""

    congestion: str
    streams: int
    dips: bool = False  # whether rate pulses are made

    @property
    def kind(self) -> str:
        """The kind of observation, of KINDS."""
        return f"{'dips' if self.dips else 'transfer'} {self.congestion}"


def period_s(kind: str) -> float:
    """Return how long the bursts of a kind last until they repeat, 0 where there are none."""
    return sum(PROFILES.get(kind, ()))
