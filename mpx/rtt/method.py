"""The contract of a method of probing: it sends without waiting, returns answers, and knows its noise."""

import math
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mpx.errors import ConnectionLost
from mpx.rtt.series import p99

Kind = Literal["echo", "session", "handshake", "icmp"]
NAP_S = 0.0002  # in the last millisecond, an answer without a kernel timestamp is noticed so much later
CALIBRATIONS = 100  # measurements of the noise; some take a millisecond each
CALIBRATION_S = 0.5  # an answer over loopback has come by then, unless a firewall drops it
LOST_AFTER_S = 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the probe of that number."""

    number: int
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Noise:
    """The part of an RTT that may not be due to the network (99th percentile), and how that was measured."""

    rtt_s: float | None  # None: not known; `how` says why
    how: str
    is_estimate: bool = False  # not measured separately from the network


class Method(Protocol):
    """One method of probing one target. One thread uses it; times are on the monotonic clock, in seconds."""

    kind: Kind
    name: str
    lost_after_s: float  # what comes later does not count
    sees_loss: bool  # False: TCP retransmits what is lost, and only `retransmissions` counts it

    @property
    def trouble(self) -> str:
        """What went wrong last, in the words of the system; empty where answers are only missing."""

    @property
    def retransmissions(self) -> int | None:
        """Retransmissions of this host's TCP so far; None where they are not counted."""

    def ask(self, number: int) -> float:
        """Send a probe, whatever is outstanding, and return when it left.

        A probe that cannot be sent is lost. Raises ConnectionLost or TransferTimeout when no further probe
        can be answered.
        """

    def answers(self, until_s: float) -> Sequence[Answer]:
        """Return answers; wait for the first until `until_s` at the latest.

        Raises ConnectionLost when there will be no more.
        """

    def noise(self) -> Noise:
        """Return how exact the answers so far are; raises OSError or ConnectionLost where it cannot."""


def wait(poll: "select.poll", until_s: float) -> list[tuple[int, int]]:
    """Poll until there is an event, or until `until_s`.

    Poll counts in milliseconds. The rest of one is spent polling again and again, with short sleeps in
    between, so that probes leave in time and answers are noticed meanwhile.
    """
    while True:
        left_s = until_s - time.monotonic()
        ready = poll.poll(max(0, math.floor(left_s * 1000)))
        left_s = until_s - time.monotonic()
        if ready or left_s <= 0:
            return ready
        time.sleep(min(left_s, NAP_S))


def loopback_noise_s(method: Method) -> float:
    """Return the 99th percentile of the RTT over loopback, one probe at a time.

    Raises ConnectionLost as soon as one is not answered.
    """
    rtts: list[float] = []
    for number in range(CALIBRATIONS):
        until_s = method.ask(number) + CALIBRATION_S
        while len(rtts) == number and time.monotonic() < until_s:
            rtts += [answer.rtt_s for answer in method.answers(until_s)]
        if len(rtts) == number:
            raise ConnectionLost(f"no answer over loopback ({method.trouble or 'no error'})")
    return p99(rtts)


def waking_noise_s() -> float:
    """Return the 99th percentile of how late this program is woken up."""
    poll, late = select.poll(), []
    for _ in range(CALIBRATIONS):
        slept_s = time.monotonic()
        poll.poll(1)
        late.append(max(0.0, time.monotonic() - slept_s - 0.001))
    return p99(late)
