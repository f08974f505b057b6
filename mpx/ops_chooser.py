"""When to switch the congestion control of open streams: only when sure, and ever more rarely back and forth.

A switch costs: new streams' worth of start-up, and the watching begins anew, as our own data are part of what
is seen. So one reading is never enough, and each switch back has to be surer than the one before.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mpx.mix import GROUPS, UNKNOWN, Mix
from mpx.ops_policy import permitted, wanted

SURE = 0.8  # that probability of a group ...
IN_A_ROW = 3  # ... in so many readings, a second apart
SURER_BY = 0.5  # each switch back leaves that share of the doubt
SURER_READINGS = 2  # and takes so many times the readings
MOST_READINGS = 48


@dataclass(frozen=True, slots=True)
class Switch:
    """A congestion control to switch to, and why."""

    congestion: str
    reason: str


class Chooser:
    """Turns readings of the background into switches, for one policy."""

    def __init__(self, policy: str, congestion: str, why_not: Callable[[str], str]) -> None:
        """Begin with `congestion`; `why_not` as for `ops_policy.permitted`."""
        self._policy = policy
        self._why_not = why_not
        self._now = congestion  # what the policy has asked for last
        self._used = {congestion}
        self._doubt = 1 - SURE
        self._readings = IN_A_ROW
        self._said: list[str] = []  # what the latest readings ask for, all the same

    def read(self, mix: Mix) -> Switch | None:
        """Take a reading, a second after the last one; return a switch if it is time for one."""
        group = max(GROUPS, key=lambda each: mix.groups[each])
        asks = permitted(wanted(self._policy, group), self._why_not).taken
        is_sure = mix.name != UNKNOWN and mix.groups[group] >= 1 - self._doubt
        if asks is None or asks == self._now or not is_sure:
            self._said.clear()
            return None
        if self._said and self._said[-1] != asks:
            self._said.clear()
        self._said.append(asks)
        if len(self._said) < self._readings:
            return None
        if asks in self._used:
            self._doubt *= SURER_BY
            self._readings = min(MOST_READINGS, self._readings * SURER_READINGS)
        self._used.add(asks)
        self._now = asks
        self._said.clear()
        share = f"{mix.groups[group]:.0%}"
        return Switch(asks, f"the background looks like {mix.name} ({group} with {share}); {self._policy}")
