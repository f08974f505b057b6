"""The rate limiter: no rate is exceeded, and none is missed."""

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.engine.rate_limiter import CREDIT_S, LOOK_S, RateLimiter


@pytest.mark.parametrize("threads", [1, 8])
def test_the_pacer_is_exact_over_all_streams(threads: int) -> None:
    """Never faster; and not slower either, unless the machine is: then it is measured once more."""
    rate_bps, size = 80e6, 10_000_000
    figures = []
    for _ in range(4):
        limiter = RateLimiter(threading.Event(), rate_bps)
        piece = limiter.piece(256 * 1024)
        assert piece == 200_000  # 20 ms

        def stream(limiter: RateLimiter = limiter, piece: int = piece) -> None:
            for _ in range(size // threads // piece):
                limiter.wait(piece)

        streams = [threading.Thread(target=stream) for _ in range(threads)]
        began_s = time.monotonic()
        for thread in streams:
            thread.start()
        for thread in streams:
            thread.join()
        pieces = threads * (size // threads // piece)
        took_s, wanted_s = time.monotonic() - began_s, (pieces - 1) * piece * 8 / rate_bps
        assert took_s >= wanted_s - CREDIT_S
        figures.append(took_s / wanted_s)
        if abs(figures[-1] - 1) <= 0.03 + CREDIT_S / wanted_s:
            return
    raise AssertionError(f"the rate is not kept: {figures}")


def test_streams_of_one_path_are_held_back_with_those_of_all() -> None:
    """The lower rate counts, whichever it is."""
    for own_bps, all_bps in ((None, 80e6), (80e6, None), (80e6, 800e6), (800e6, 80e6)):
        limiter = RateLimiter(threading.Event(), own_bps, within=RateLimiter(threading.Event(), all_bps))
        assert limiter.piece(256 * 1024) == 200_000 and not limiter.is_unlimited
        began_s = time.monotonic()
        for _ in range(11):
            limiter.wait(200_000)
        assert time.monotonic() - began_s >= 0.2 - 2 * CREDIT_S - 0.002
    assert RateLimiter(threading.Event(), within=RateLimiter(threading.Event())).is_unlimited


def test_time_lost_is_made_up_for_only_a_little() -> None:
    limiter = RateLimiter(threading.Event(), 8e6)
    limiter.wait(1000)
    time.sleep(3 * CREDIT_S)  # a machine that stalls
    began_s = time.monotonic()
    for _ in range(200):
        limiter.wait(1000)  # 200 kB at 1 MB/s
    assert time.monotonic() - began_s >= 0.2 - CREDIT_S - 0.002


def test_an_unlimited_pacer_and_a_stopped_one_do_not_wait() -> None:
    RateLimiter(threading.Event()).wait(1 << 60)
    cancel = threading.Event()
    cancel.set()
    RateLimiter(cancel, 1.0).wait(1 << 20)
    assert RateLimiter(cancel).piece(5) == 5
    assert RateLimiter(cancel, 1.0).piece(1 << 20) == 1460


class Sleeper(threading.Event):
    """A clock that goes on as somebody waits; `at` calls something at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def at(self, time_s: float, call: Callable[[], None]) -> None:
        self._due.append((time_s, call))

    def wait(self, timeout: float | None = None) -> bool:
        self.now_s += max(timeout or 0.0, 1e-6)  # no clock stands still
        for each in [due for due in self._due if due[0] <= self.now_s]:
            self._due.remove(each)
            each[1]()
        return False


def passing(limiter: RateLimiter, clock: Sleeper, seconds: float, largest: int = 256 * 1024) -> int:
    """Pass one piece after the other for so long; return how many bytes that were."""
    until_s, passed = clock.now_s + seconds, 0
    while clock.now_s < until_s:
        piece = limiter.piece(largest)
        limiter.wait(piece)
        passed += piece
    return passed


LOW_BPS, HIGH_BPS = 185e3, 100e6  # of a copy that yields


@pytest.mark.parametrize("before_bps", [None, 1e9])
def test_pieces_of_a_high_rate_do_not_hold_up_a_low_one(before_bps: float | None) -> None:
    clock = Sleeper()
    limiter = RateLimiter(clock, before_bps, lambda: clock.now_s)
    limiter.piece_s = 0.002
    on_their_way = [limiter.piece(256 * 1024) for _ in range(4)]  # of four streams, being read
    limiter.rate_bps = LOW_BPS
    for piece in on_their_way:
        limiter.wait(piece)
    assert clock.now_s <= 4 * 1460 * 8 / LOW_BPS
    assert passing(limiter, clock, 10) * 8 == pytest.approx(10 * LOW_BPS, rel=0.05)


def test_who_has_a_place_waits_no_longer_as_the_rate_falls() -> None:
    clock = Sleeper()
    limiter = RateLimiter(clock, HIGH_BPS, lambda: clock.now_s)
    for _ in range(50):  # the credit is gone
        limiter.wait(limiter.piece(256 * 1024))
    clock.at(clock.now_s, lambda: setattr(limiter, "rate_bps", LOW_BPS))
    due_s = clock.now_s + 0.02
    limiter.wait(limiter.piece(256 * 1024))
    assert clock.now_s <= due_s


def test_who_waits_goes_on_as_the_rate_rises() -> None:
    clock = Sleeper()
    limiter = RateLimiter(clock, LOW_BPS, lambda: clock.now_s)
    for _ in range(64):
        limiter.wait(1460)
    limiter.piece_s = 60.0  # one long piece, and the next waits for it to pass
    limiter.wait(limiter.piece(1 << 20))
    rises_s = clock.now_s + 1.0
    clock.at(rises_s, lambda: setattr(limiter, "rate_bps", HIGH_BPS))
    limiter.wait(1)
    assert clock.now_s <= rises_s + LOOK_S + (1 << 20) * 8 / HIGH_BPS


def test_a_limit_that_is_lifted_counts_for_those_who_wait() -> None:
    clock = Sleeper()
    limiter = RateLimiter(clock, 8.0, lambda: clock.now_s)
    limiter.wait(1460)
    limiter.wait(1460)
    lifted_s = clock.now_s + 1.0
    clock.at(lifted_s, lambda: setattr(limiter, "rate_bps", None))
    limiter.wait(1460)
    assert clock.now_s <= lifted_s + LOOK_S


@given(st.lists(st.tuples(st.floats(1e5, 1e9), st.floats(0.1, 5.0)), min_size=1, max_size=5))
def test_however_the_rate_changes_what_passes_is_what_it_allows(rates: list[tuple[float, float]]) -> None:
    clock = Sleeper()
    limiter = RateLimiter(clock, rates[0][0], lambda: clock.now_s)
    for rate_bps, seconds in rates:
        limiter.rate_bps = rate_bps
        began_s, piece = clock.now_s, limiter.piece(1 << 20)
        passed = passing(limiter, clock, seconds, 1 << 20)
        allowed = rate_bps * (clock.now_s - began_s) / 8
        assert allowed - 2 * piece <= passed <= allowed + rate_bps * CREDIT_S / 8 + 2 * piece
