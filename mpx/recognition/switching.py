"""Hysteresis: when to switch the congestion control of open streams.

A switch costs the start of new streams, and measurements start again, as our own data are part of them. So
one reading is never enough, and each switch back requires a higher probability than the one before.

A switch has to be confirmed: without any sure reading for minutes it is reverted, as it may be unfair to
others whom our own data hide.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mpx.recognition.mix import GROUPS, NOBODY, UNKNOWN, Mix
from mpx.recognition.policy import Switch, before_anything_is_known, permitted, wanted

SURE = 0.8  # least probability, summed over groups for which the policy wants the same, ...
IN_A_ROW = 3  # ... in so many consecutive readings, a second apart
LEANING_READINGS, MOST_LEANING = 12, 10  # or of so many readings, half unknown, so many lean one way ...
LEANING = 0.55  # ... with that probability in the mean of all
STEADY_READINGS, STEADY = 7, 0.65  # or of so many in a row, known or not, all do, with that in the mean
SUREST = 0.9  # each switch back raises the least probability half way towards this
MORE_READINGS, MOST_READINGS = 2, 48  # and multiplies the number of readings, up to a limit
UNSURE_READINGS = 180  # a switch is reverted after so many readings without a sure one that confirms it ...
MORE_PATIENCE, MOST_PATIENCE = 2, 8  # ... multiplied each time, up to a limit


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a reading requires by the policy, with its probability."""

    congestion: str | None  # None: the kernel's own choice, as nothing else may be used
    groups: tuple[str, ...]  # for which that is so: they need not be distinguished
    probability: float  # of these groups together; 0 where the background is unknown
    leaning: float = 0.0  # the same, whether it is unknown or not


def decided_together(mix: Mix, required: Requirement, sure: float) -> str:
    """Return the reason where only several groups together are as probable as `sure`; empty where one is."""
    if mix.groups[mix.group] >= sure:
        return ""
    if required.groups == GROUPS:
        return "the policy has the same choice for any background"
    return f"the background is probably {' or '.join(required.groups)} ({required.probability:.0%} together)"


def requirement(
    policy: str, mix: Mix, why_not: Callable[[str], str], alone: str | None = None
) -> Requirement:
    """Return what a reading requires; `why_not` as for `policy.permitted`; `alone`: with nobody beside."""
    choices = {group: wanted(policy, group) for group in GROUPS}
    choices[NOBODY] = alone or choices[NOBODY]
    required = {group: permitted(choice, why_not).taken for group, choice in choices.items()}
    shares = dict.fromkeys(required.values(), 0.0)
    for group, congestion in required.items():
        shares[congestion] += mix.groups[group]
    most = max(shares, key=lambda each: shares[each])
    alike = tuple(group for group in GROUPS if required[group] == most)
    return Requirement(most, alike, shares[most] if mix.name != UNKNOWN else 0.0, shares[most])


class SwitchHysteresis:
    """Turns readings of the background into switches, for one policy."""

    def __init__(
        self, policy: str, congestion: str, why_not: Callable[[str], str], *, first: str | None = None
    ) -> None:
        """Begin with `congestion`; `why_not` as for `policy.permitted`, of open streams.

        `first`: the choice before anything was known, where a probe has found a reason for another one. What
        it begins with then is as a switch that was made.
        """
        self._policy = policy
        self._why_not = why_not
        self._first, self._now = first or congestion, congestion
        self._used = {congestion}
        self._sure = SURE
        self._readings = IN_A_ROW
        self._consecutive: list[str] = []  # what the latest readings require, all the same
        self._leaning: deque[tuple[str | None, float, bool]] = deque(maxlen=LEANING_READINGS)
        self._is_untried = True  # no switch was made or refused yet
        self._unsure, self._patience = 0, UNSURE_READINGS
        self._alone: str | None = (
            None  # what is used where there is no other traffic; None: as the policy says
        )

    def read(self, mix: Mix) -> Switch | None:
        """Take a reading, a second after the last one; return a switch if one is due.

        The caller then calls `made` or `refused`, before the next reading.
        """
        required = requirement(self._policy, mix, self._why_not_on, self._alone)
        congestion, probability = required.congestion, required.probability
        self._leaning.append((congestion, required.leaning, mix.name == UNKNOWN))
        self._unsure = 0 if congestion == self._now and probability >= SURE else self._unsure + 1
        if congestion is None or congestion == self._now or probability < self._sure:
            self._consecutive.clear()
            return self._leans(required) or self._give_up()
        if self._consecutive and self._consecutive[-1] != congestion:
            self._consecutive.clear()
        self._consecutive.append(congestion)
        if len(self._consecutive) < self._readings:
            return self._leans(required) or self._give_up()
        one = f"the background is probably {mix.name} ({mix.group} with {mix.groups[mix.group]:.0%})"
        because = decided_together(mix, required, self._sure) or one
        return Switch(congestion, f"{because}; policy {self._policy}")

    def _leans(self, required: Requirement) -> Switch | None:
        """Return a switch away from the first choice that many readings lean to, none of them sure.

        Beside several BBR streams a copy on CUBIC starves, and what it sees is unlike what the model was
        trained on; beside one it may have little without ever being sure.
        """
        congestion = required.congestion
        if congestion in (None, self._now) or self._now != self._first:
            return None
        return self._is_steady(required) or self._leans_unknown(required)

    def _is_steady(self, required: Requirement) -> Switch | None:
        if not self._is_untried:
            return None
        latest = [(wanted_now, share) for wanted_now, share, _ in self._leaning][-STEADY_READINGS:]
        mean = sum(share for _, share in latest) / STEADY_READINGS
        if len(latest) < STEADY_READINGS or {each for each, _ in latest} != {required.congestion}:
            return None
        return self._leant(required, f"{STEADY_READINGS} readings in a row", mean) if mean >= STEADY else None

    def _leans_unknown(self, required: Requirement) -> Switch | None:
        if len(self._leaning) < LEANING_READINGS:
            return None
        congestion = required.congestion
        alike = [share for wanted_now, share, _ in self._leaning if wanted_now == congestion]
        mean = sum(alike) / LEANING_READINGS
        is_known = 2 * sum(is_unknown for _, _, is_unknown in self._leaning) < LEANING_READINGS
        if len(alike) < MOST_LEANING or mean < LEANING or is_known:
            return None
        return self._leant(required, f"{len(alike)} of {LEANING_READINGS} readings", mean)

    def _leant(self, required: Requirement, which: str, mean: float) -> Switch:
        assert required.congestion is not None
        groups = " or ".join(required.groups)
        because = f"{which} lean to {groups} ({mean:.0%} in the mean)"
        return Switch(required.congestion, f"{because}; policy {self._policy}")

    def _why_not_on(self, congestion: str) -> str:
        """Return why open streams may not use it; what they use already needs no permission."""
        return "" if congestion == self._now else self._why_not(congestion)

    def alone_with(self, congestion: str) -> None:
        """Note what nobody beside asks for, in place of what the policy says; the streams have it already."""
        self._alone = self._now = congestion
        self._used.add(congestion)
        self._unsure = 0
        self._consecutive.clear()
        self._leaning.clear()

    def made(self, congestion: str) -> None:
        """Note that the streams were switched to this."""
        if self._is_unsure:
            self._patience = min(MOST_PATIENCE * UNSURE_READINGS, MORE_PATIENCE * self._patience)
            self._first = congestion
        elif congestion in self._used:
            self._sure = (self._sure + SUREST) / 2
            self._readings = min(MOST_READINGS, MORE_READINGS * self._readings)
        self._used.add(congestion)
        self._now, self._is_untried = congestion, False
        self._unsure = 0
        self._consecutive.clear()
        self._leaning.clear()

    def refused(self) -> None:
        """Note that a switch is not possible: it is tried again more rarely."""
        self._readings = min(MOST_READINGS, MORE_READINGS * self._readings)
        self._is_untried = False
        self._unsure = 0
        self._consecutive.clear()
        self._leaning.clear()

    @property
    def unsure_readings(self) -> int | None:
        """How many readings ago a sure one confirmed what is used.

        None where the latest require something else.
        """
        return None if self._consecutive else self._unsure

    @property
    def _is_unsure(self) -> bool:
        return self._now != self._first and self._unsure >= self._patience

    def _give_up(self) -> Switch | None:
        if not self._is_unsure:
            return None
        # The first one may have been set by the route, and not be available now.
        back = permitted(self._alone or before_anything_is_known(self._policy), self._why_not_on).taken
        if back is None or back == self._now:
            return None
        return Switch(
            back, f"{self._unsure} readings have not confirmed the last switch; policy {self._policy}"
        )
