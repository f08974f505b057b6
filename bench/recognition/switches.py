"""What a copy would do that is given readings as they are, and one that is given them added up."""

from collections.abc import Sequence

import numpy as np
from mpx_train.readings import ReadSeries

from mpx.choices import BBR, CUBIC, FAIR
from mpx.recognition.evidence import EvidenceRule
from mpx.recognition.mix import ANY_BBR, GROUP_OF, Mix
from mpx.recognition.switching import SwitchHysteresis
from recognition.sequential import WINDOW_S, added_up


def switches(series: Sequence[ReadSeries], now: str, rule: EvidenceRule | None) -> dict[str, float]:
    """Return how many series see the switch that the policy wants beside them, and how many another.

    The copy is on `now` when the first reading is made; without a rule it is given the readings alone.
    """
    due = made = wrong = 0
    after_s: list[float] = []
    for each in series:
        first = _first_switch(added_up(each, rule) if rule else each.readings, now)
        is_due = (GROUP_OF[each.mix] == ANY_BBR) != (now == BBR)
        due += is_due
        if first is not None and is_due:
            made += 1
            after_s.append(WINDOW_S + first)
        wrong += first is not None and not is_due
    return {
        "due": due,
        "made": made,
        "median_s": float(np.median(after_s)) if after_s else 0.0,
        "others": len(series) - due,
        "wrong": wrong,
    }


def _first_switch(readings: Sequence[Mix], now: str) -> int | None:
    """Return at which reading there is a switch; None: at none."""
    hysteresis = SwitchHysteresis(FAIR, CUBIC, lambda _: "")
    if now != CUBIC:
        hysteresis.made(now)
    return next((number for number, reading in enumerate(readings) if hysteresis.read(reading)), None)
