"""What a way of probing is: it asks without waiting, tells what was answered, and how exact that is."""

import math
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from mpx.errors import ConnectionLost
from mpx.rtt.series import p99

Kind = Literal["echo", "session", "handshake", "icmp"]
NAP_S = 0.0002  # an answer without a time of its own is noticed so much later, in the last millisecond
CALIBRATIONS = 100  # how often a noise is measured; some take a millisecond
CALIBRATION_S = 0.5  # an answer over loopback is there by then, or a firewall is in between
LOST_AFTER_S = 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the probe of that number."""

    number: int
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Noise:
    """How much of an RTT may not be the network's (99 % have no more), and how that is known."""

    rtt_s: float | None  # None: not known; `how` says why
    how: str
    is_estimate: bool = False  # it was not measured apart from the network


class Way(Protocol):
    """One way to probe one target. One thread uses it; times are those of the monotonic clock, in seconds."""

    kind: Kind
    name: str
    lost_after_s: float  # what comes later does not count
    sees_loss: bool  # False: TCP sends again what the network loses, and only `retransmissions` tells of it

    @property
    def trouble(self) -> str:
        """What went wrong last, in the system's words; empty where there was only silence."""

    @property
    def retransmissions(self) -> int | None:
        """How often this host's TCP has sent again so far; None where nobody counts."""

    def ask(self, number: int) -> float:
        """Send a probe, whatever is under way, and return when it left.

        A probe that cannot be sent is lost. Raises ConnectionLost or TransferTimeout when no further one can
        be answered.
        """

    def answers(self, until_s: float) -> Sequence[Answer]:
        """Return what has been answered; wait for the first answer, `until_s` at the latest.

        Raises ConnectionLost when there will be no more.
        """

    def noise(self) -> Noise:
        """Return how exact the answers so far are; raises OSError or ConnectionLost if nobody can tell."""


def wait(poll: "select.poll", until_s: float) -> list[tuple[int, int]]:
    """Poll until something comes or `until_s`.

    Poll counts in milliseconds. The rest of one is spent asking again and again, and sleeping a little in
    between, so that probes leave in time and answers are noticed meanwhile.
    """
    while True:
        left_s = until_s - time.monotonic()
        ready = poll.poll(max(0, math.floor(left_s * 1000)))
        left_s = until_s - time.monotonic()
        if ready or left_s <= 0:
            return ready
        time.sleep(min(left_s, NAP_S))


def loopback_noise_s(way: Way) -> float:
    """Return the 99th percentile of what `way` measures where there is no network, one probe at a time.

    Raises ConnectionLost as soon as one is not answered.
    """
    rtts: list[float] = []
    for number in range(CALIBRATIONS):
        until_s = way.ask(number) + CALIBRATION_S
        while len(rtts) == number and time.monotonic() < until_s:
            rtts += [answer.rtt_s for answer in way.answers(until_s)]
        if len(rtts) == number:
            raise ConnectionLost(f"nothing comes back over loopback ({way.trouble or 'no answer'})")
    return p99(rtts)


def waking_noise_s() -> float:
    """Return the 99th percentile of how late this program wakes up."""
    poll, late = select.poll(), []
    for _ in range(CALIBRATIONS):
        slept_s = time.monotonic()
        poll.poll(1)
        late.append(max(0.0, time.monotonic() - slept_s - 0.001))
    return p99(late)
