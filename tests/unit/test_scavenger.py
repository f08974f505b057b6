"""--policy scavenger: what the delays of probes make of the limiter's rate."""

import threading
from collections.abc import Sequence

from mpx.engine.rate_limiter import RateLimiter
from mpx.recognition.scavenger import PIECE_S, SPARE_S, Scavenger
from mpx.rtt.series import Probe

BASE_S = 0.02


class Watch:
    """Probes as they are told."""

    def __init__(self) -> None:
        self.trouble = ""
        self.begun = 0
        self.base_s = BASE_S
        self.probes: list[Probe] = []

    def begin(self) -> None:
        self.begun += 1

    def series(self, from_s: float) -> Sequence[Probe]:
        return [probe for probe in self.probes if probe.t_s >= from_s]


def paced(rate_bps: float | None = None) -> tuple[Watch, RateLimiter, Scavenger]:
    watch, pacer = Watch(), RateLimiter(threading.Event(), rate_bps)
    return watch, pacer, Scavenger(watch, pacer, lambda: True)


def goes_on(
    watch: Watch, pacer: RateLimiter, scavenger: Scavenger, from_s: float, until_s: float, queue_s: float
) -> list[str]:
    """Let the limiter's rate arrive beside a queue; return what was said."""
    said, arrived_bytes = [], 0.0
    for tick in range(round(from_s * 10), round(until_s * 10)):
        now_s = tick / 10
        watch.probes.append(Probe(now_s - 0.05, BASE_S + queue_s))
        arrived_bytes += (pacer.rate_bps or 0.0) * 0.1 / 8
        said.append(scavenger.observe(now_s, int(arrived_bytes)))
    return [one for one in said if one]


def test_it_begins_slowly_and_speeds_up_where_there_is_no_queue() -> None:
    watch, pacer, scavenger = paced()
    assert pacer.rate_bps is not None and pacer.rate_bps < 1e6 and pacer.piece_s == PIECE_S
    assert goes_on(watch, pacer, scavenger, 0, 10, 0.0) == []
    assert pacer.rate_bps > 100e6 and watch.begun


def test_it_yields_once_and_comes_back_once() -> None:
    watch, pacer, scavenger = paced()
    goes_on(watch, pacer, scavenger, 0, 5, 0.0)
    assert pacer.rate_bps is not None
    before_bps = pacer.rate_bps
    assert goes_on(watch, pacer, scavenger, 5, 9, 0.030) == []  # which may be a queue of its own
    said = goes_on(watch, pacer, scavenger, 9, 13, 0.030)
    assert said == ["yielding: other traffic keeps a queue of 30 ms"] and pacer.rate_bps < 0.05 * before_bps
    said = goes_on(watch, pacer, scavenger, 13, 23, 0.0)
    assert (
        said == ["other traffic leaves no queue any more: sending at the rate of the path again"]
        and pacer.rate_bps > 0.5 * before_bps
    )


def test_it_is_never_faster_than_was_asked_for() -> None:
    watch, pacer, scavenger = paced(3e6)
    goes_on(watch, pacer, scavenger, 0, 10, 0.0)
    assert pacer.rate_bps == 3e6


def test_where_nobody_answers_it_does_not_crawl() -> None:
    watch, pacer, scavenger = paced()
    watch.trouble = "nobody answers"
    assert scavenger.observe(1.0, 0) == ""
    assert (scavenger.trouble, pacer.rate_bps, pacer.piece_s) == ("nobody answers", None, 0.02)
    watch.trouble = ""
    scavenger.observe(2.0, 0)
    assert scavenger.trouble == "" and pacer.rate_bps is not None and pacer.piece_s == PIECE_S
    watch, pacer, scavenger = paced(3e6)
    watch.trouble = "nobody answers"
    scavenger.observe(1.0, 0)
    assert pacer.rate_bps == 3e6


def test_without_a_session_to_spare_it_goes_on_and_says_why() -> None:
    watch, pacer = Watch(), RateLimiter(threading.Event())
    spare = threading.Event()
    scavenger = Scavenger(watch, pacer, spare.is_set)
    for tick in range(round(SPARE_S * 10)):
        assert scavenger.observe(5.0 + tick / 10, 0) == "" and scavenger.trouble == ""
        assert pacer.rate_bps is not None
    scavenger.observe(5.0 + SPARE_S, 0)
    assert "no session" in scavenger.trouble and pacer.rate_bps is None and watch.begun == 0
    spare.set()
    scavenger.observe(6.0 + SPARE_S, 0)
    assert scavenger.trouble == "" and pacer.rate_bps is not None and watch.begun == 1


def test_it_waits_until_there_is_a_session_to_spare() -> None:
    watch, pacer = Watch(), RateLimiter(threading.Event())
    spare = threading.Event()
    scavenger = Scavenger(watch, pacer, spare.is_set)
    scavenger.observe(1.0, 0)
    assert not watch.begun and pacer.rate_bps is not None
    spare.set()
    scavenger.observe(2.0, 0)
    assert watch.begun
