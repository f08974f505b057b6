"""What a way of probing is: it asks without waiting, tells what was answered, and how exact that is."""

import math
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mpx.rtt_series import Probe, summary

CALIBRATIONS = 100  # how often a noise is measured; some take a millisecond
LOST_AFTER_S = 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the probe of that number."""

    number: int
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Noise:
    """How much of an RTT may not be the network's (99 % have no more), and how that is known."""

    rtt_s: float
    how: str
    is_least: bool = False  # it may be more, and nobody here can tell how much


class Way(Protocol):
    """One way to probe one target. One thread uses it; times are those of the monotonic clock, in seconds."""

    name: str
    lost_after_s: float  # what comes later does not count

    @property
    def trouble(self) -> str:
        """What went wrong last, in the system's words; empty where there was only silence."""

    def ask(self, number: int) -> float:
        """Send a probe, whatever is under way, and return when it left.

        A probe that cannot be sent is lost. Raises ConnectionLost when no further one can be answered.
        """

    def answers(self, until_s: float) -> Sequence[Answer]:
        """Return what has been answered; wait for the first answer, `until_s` at the latest.

        Raises ConnectionLost when there will be no more.
        """

    def noise(self) -> Noise:
        """Return how exact the answers so far are."""


def wait(poll: "select.poll", until_s: float) -> list[tuple[int, int]]:
    """Poll until something comes or `until_s`.

    Poll counts in milliseconds. The rest of one is spent asking again and again, so that probes leave in
    time and answers are noticed meanwhile.
    """
    while True:
        left_s = until_s - time.monotonic()
        ready = poll.poll(max(0, math.floor(left_s * 1000)))
        if ready or time.monotonic() >= until_s:
            return ready


def p99_s(rtts: Sequence[float]) -> float:
    """Return the 99th percentile of times in seconds, 0 where there are none."""
    return summary([Probe(0.0, rtt_s) for rtt_s in rtts]).p99_s or 0.0


def loopback_noise_s(way: Way) -> float:
    """Return the 99th percentile of what `way` measures where there is no network, one probe at a time."""
    rtts = []
    for number in range(CALIBRATIONS):
        sent_s = way.ask(number)
        rtts += [answer.rtt_s for answer in way.answers(sent_s + way.lost_after_s)]
    return p99_s(rtts)


def waking_noise_s() -> float:
    """Return the 99th percentile of how late this program wakes up."""
    poll, late = select.poll(), []
    for _ in range(CALIBRATIONS):
        slept_s = time.monotonic()
        poll.poll(1)
        late.append(max(0.0, time.monotonic() - slept_s - 0.001))
    return p99_s(late)
