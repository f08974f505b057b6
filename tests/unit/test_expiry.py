"""A credential that will not last as long as a copy is foreseen, once."""

import math

from mpx.engine.endpoint import Admission
from mpx.transfer.expiry import FIRST_S, LOOK_S, Expiry


class Watched:
    def __init__(self, until_s: float | None) -> None:
        self.until_s = until_s
        self.asked = 0
        self.told: list[str] = []
        self.expiry = Expiry(self._until, lambda text, *_: self.told.append(text))

    def _until(self) -> Admission | None:
        self.asked += 1
        return Admission(self.until_s, "your token for there", "renew it") if self.until_s else None


def test_what_lasts_is_not_told_of() -> None:
    for until_s in (None, 5000.0):
        watched = Watched(until_s)
        for elapsed_s in range(0, 1000, 10):
            watched.expiry.observe(1000.0 + elapsed_s, float(elapsed_s), 100.0)
        assert watched.told == []


def test_what_does_not_last_is_told_of_once_and_early() -> None:
    watched = Watched(5000.0)
    watched.expiry.observe(1000.0, FIRST_S - 1, 9000.0)
    assert watched.told == [] and watched.asked == 0  # the rate says nothing yet
    for elapsed_s in (FIRST_S, FIRST_S + LOOK_S, FIRST_S + 2 * LOOK_S):
        watched.expiry.observe(1000.0 + elapsed_s, elapsed_s, 9000.0)
    (said,) = watched.told
    assert said == (
        "your token for there expires at 1970-01-01 01:23 UTC and at the present rate this copy ends about "
        "1970-01-01 02:46 UTC: renew it; what is left by then is continued by the same command"
    )


def test_while_more_may_be_found_nothing_is_foreseen() -> None:
    watched = Watched(5000.0)
    watched.expiry.observe(1000.0, FIRST_S, math.inf)
    assert watched.told == []
    watched.expiry.observe(1000.0 + LOOK_S, FIRST_S + LOOK_S, 9000.0)
    assert watched.told


def test_a_renewed_one_is_looked_at_again() -> None:
    watched = Watched(5000.0)
    watched.expiry.observe(1000.0, FIRST_S, 100.0)
    watched.until_s = 1200.0
    watched.expiry.observe(1000.0, FIRST_S + 1, 9000.0)
    assert watched.told == [] and watched.asked == 1  # not at each look
    watched.until_s = 50_000.0
    watched.expiry.observe(1000.0, FIRST_S + LOOK_S, 9000.0)
    assert watched.told == [] and watched.asked == 2
