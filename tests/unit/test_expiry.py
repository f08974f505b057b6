"""A proxy that will not last as long as a copy is foreseen, once."""

import math

from mpx.transfer.expiry import FIRST_S, LOOK_S, Expiry


class Watched:
    def __init__(self, until_s: float | None) -> None:
        self.until_s = until_s
        self.asked = 0
        self.told: list[str] = []
        self.expiry = Expiry(self._until, lambda text, *_: self.told.append(text))

    def _until(self) -> float | None:
        self.asked += 1
        return self.until_s


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
    assert "1970-01-01 01:23 UTC" in said and "grid-proxy-init" in said


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
