"""Ways of watching a path; the model has a part of its own for each (model.py).

Passive: none of our data flows. Active: bursts probe, after a profile that repeats. In a transfer: our own
copy is under way, whose congestion control and number of streams we know; under a load of our own an empty
path looks as under somebody else's, and under CUBIC otherwise than under BBR. Where we are the sender our
copy sends less for a moment now and then (pulse.py), which tells our share of the link.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MODEL_VARIABLE = "MPX_MODEL"  # names another model than the shipped one

PASSIVE = "passive"
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
    """What we send ourselves while we watch."""

    congestion: str
    streams: int
    dips: bool = False  # whether it makes any

    @property
    def kind(self) -> str:
        """The way of watching that this is."""
        return f"{'dips' if self.dips else 'transfer'} {self.congestion}"


def period_s(kind: str) -> float:
    """Return how long the bursts of a kind last until they repeat, 0 where there are none."""
    return sum(PROFILES.get(kind, ()))
