"""When to switch the congestion control of open streams: only when sure, and ever more rarely back and forth.

A switch costs: new streams' worth of start-up, and the watching begins anew, as our own data are part of what
is seen. So one reading is never enough, and each switch back has to be surer than the one before.

What was switched to needs its reason all the time: without any sure reading for minutes it is given up.
Others may pay for it, and where our own data hide them nothing else would ever end it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mpx.recognition.mix import GROUPS, UNKNOWN, Mix
from mpx.recognition.policy import before_anything_is_known, permitted, wanted

SURE = 0.8  # that probability of all groups for which the policy wants the same ...
IN_A_ROW = 3  # ... in so many readings, a second apart
SUREST = 0.9  # what each switch back comes nearer to by half: beside our own data more is hardly ever said
MORE_READINGS, MOST_READINGS = 2, 48  # and it takes so many times the readings
UNSURE_READINGS = 180  # without a sure one that asks for it, until a switch is given up ...
MORE_PATIENCE, MOST_PATIENCE = 2, 8  # ... so many times as many each time, and at most so many times


@dataclass(frozen=True, slots=True)
class Switch:
    """A congestion control to switch to, and why."""

    congestion: str
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reading asks for, and how sure it is."""

    congestion: str | None  # None: the kernel's own choice, as nothing else may be used
    groups: tuple[str, ...]  # for which that is so: they need not be told apart
    probability: float  # of all of them together; 0 where the background is unknown


def asks_for(policy: str, mix: Mix, why_not: Callable[[str], str]) -> Asked:
    """Return what a reading asks for; `why_not` as for `ops_policy.permitted`."""
    asked = {group: permitted(wanted(policy, group), why_not).taken for group in GROUPS}
    shares = dict.fromkeys(asked.values(), 0.0)
    for group, asks in asked.items():
        shares[asks] += mix.groups[group]
    most = max(shares, key=lambda each: shares[each])
    alike = tuple(group for group in GROUPS if asked[group] == most)
    return Asked(most, alike, shares[most] if mix.name != UNKNOWN else 0.0)


class SwitchHysteresis:
    """Turns readings of the background into switches, for one policy."""

    def __init__(self, policy: str, congestion: str, why_not: Callable[[str], str]) -> None:
        """Begin with `congestion`; `why_not` as for `ops_policy.permitted`, of streams that are open."""
        self._policy = policy
        self._why_not = why_not
        self._first = self._now = congestion
        self._used = {congestion}
        self._sure = SURE
        self._readings = IN_A_ROW
        self._said: list[str] = []  # what the latest readings ask for, all the same
        self._unsure, self._patience = 0, UNSURE_READINGS

    def read(self, mix: Mix) -> Switch | None:
        """Take a reading, a second after the last one; return a switch if it is time for one.

        The caller says with `made` or `refused` what came of it, before the next reading.
        """
        asked = asks_for(self._policy, mix, self._why_not_on)
        asks, probability = asked.congestion, asked.probability
        self._unsure = 0 if asks == self._now and probability >= SURE else self._unsure + 1
        if asks is None or asks == self._now or probability < self._sure:
            self._said.clear()
            return self._give_up()
        if self._said and self._said[-1] != asks:
            self._said.clear()
        self._said.append(asks)
        if len(self._said) < self._readings:
            return self._give_up()
        groups = f"{' or '.join(asked.groups)} with {probability:.0%}"
        return Switch(asks, f"the background looks like {mix.name} ({groups}); {self._policy}")

    def _why_not_on(self, congestion: str) -> str:
        """Return why streams may not go on with it; what they have needs no permission."""
        return "" if congestion == self._now else self._why_not(congestion)

    def made(self, congestion: str) -> None:
        """Say that the streams were switched to this."""
        if self._is_unsure:
            self._patience = min(MOST_PATIENCE * UNSURE_READINGS, MORE_PATIENCE * self._patience)
            self._first = congestion
        elif congestion in self._used:
            self._sure = (self._sure + SUREST) / 2
            self._readings = min(MOST_READINGS, MORE_READINGS * self._readings)
        self._used.add(congestion)
        self._now = congestion
        self._unsure = 0
        self._said.clear()

    def refused(self) -> None:
        """Say that a switch cannot be had: nothing changes, and it is asked for more seldom."""
        self._readings = min(MOST_READINGS, MORE_READINGS * self._readings)
        self._unsure = 0
        self._said.clear()

    @property
    def unsure_readings(self) -> int | None:
        """How many readings ago there was a sure reason for what is used.

        None where something asks for something else.
        """
        return None if self._said else self._unsure

    @property
    def _is_unsure(self) -> bool:
        return self._now != self._first and self._unsure >= self._patience

    def _give_up(self) -> Switch | None:
        if not self._is_unsure:
            return None
        # What it began with may have come with the route, and not be had again.
        back = permitted(before_anything_is_known(self._policy), self._why_not_on).taken
        if back is None or back == self._now:
            return None
        return Switch(back, f"{self._unsure} readings without a reason to go on as before; {self._policy}")
