"""How many streams a path bears that drops what is above a rate: a policer, or routers that share it out.

Few streams may lose segments at random there, and not fill it; many only lose more, and so do others. Between
the two the number is searched for by what is lost: as many as do not lose more than their number explains.
"""

import math

from mpx.tuning.constants import LOSSES, POLICED, STEP
from mpx.tuning.losses import Counted


class Bearable:
    """The search on one group of paths, from when losses have shown that it drops what is above a rate.

    `share`: as many streams are always borne; `too_many`: so many are not, as losses have shown.
    """

    def __init__(self, share: int, too_many: int) -> None:
        self._share = share
        self._few: tuple[int, Counted] | None = None  # the most streams that are borne, and what they lost
        self._too_many = too_many  # the fewest that are not

    def judge(self, streams: int, counted: Counted) -> None:
        """Take what so many streams have carried and lost."""
        if streams >= self._too_many:
            return
        if self._few is None:
            if streams <= self._share and counted.lost >= LOSSES:
                self._few = streams, counted
            return
        few, lost_by_few = self._few
        if streams <= few:
            return
        explained = counted.segments * lost_by_few.share * math.pow(streams / few, POLICED)
        if max(counted.lost, explained) < LOSSES:
            return
        if counted.lost > explained:
            self._too_many = streams
        else:
            self._few = streams, counted

    def are_too_many(self, streams: int) -> bool:
        """Tell whether streams are to be closed: down to `least`."""
        return streams > self.least and (self._few is None or streams >= self._too_many)

    @property
    def least(self) -> int:
        """How many are borne, as far as it is known."""
        return self._few[0] if self._few else self._share

    @property
    def most(self) -> int:
        """How many may be tried: half-way to too many, until that is near."""
        if self._few is None or self._too_many < STEP * self.least:
            return self.least
        return round(math.sqrt(self.least * self._too_many))
