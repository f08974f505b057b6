"""Watches the round-trip times (RTT) of a path while a copy runs over it: ten a second, to its end.

The way is the one that `mpx probe` would take, but of the two that need no port to be knocked at: the echo of
`mpx serve`, or an idle session.
"""

import contextlib
import math
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol

from mpx.errors import ConnectionLost, Interrupted, MpxError
from mpx.net import tcp
from mpx.recognition.pulses.maker import PulseMaker
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.method import Way
from mpx.rtt.methods.choose import choose
from mpx.rtt.methods.echo import EchoWay
from mpx.rtt.runner import Run
from mpx.rtt.schedule import SINGLE_INTERVAL_S, single_s
from mpx.rtt.series import Probe

KEEP_S = 40.0  # what is older nobody asks for
AGAIN_S, SELDOM_S = 5.0, 300.0  # a way is looked for again after so long, and ever more seldom
HELD_S = 60.0  # what lasted so long was a good one: the next is looked for as soon as the first
SILENT_S = 10.0  # without any answer it is lost


class Watches(Protocol):
    """What is asked of who probes beside a copy."""

    trouble: str  # why there have been no probes yet, though it was tried

    def begin(self) -> None:
        """Start probing, once."""
        ...

    def end(self) -> None:
        """Stop probing."""
        ...

    @property
    def base_s(self) -> float:
        """The shortest round trip ever seen, seconds."""
        ...

    def series(self, from_s: float) -> Sequence[Probe]:
        """Return the probes sent since then (monotonic clock) whose fate is known."""
        ...

    def falls(self, from_s: float) -> Sequence[QueueResponse] | None:
        """Return what dips since then have told; None where there can be none."""
        ...

    def rest(self, until_s: float) -> None:
        """Make no dips until then (monotonic clock), whatever was said before."""
        ...


class RttWatch(threading.Thread):
    """Probes `address` until it is told to end; a way that is not there, or is lost, is looked for again.

    What a lost way has told is forgotten but for the shortest round trip.
    """

    def __init__(
        self,
        host: str,
        address: tcp.Address,
        *,
        asked_s: float = math.inf,
        kernel_s: float = math.inf,
        dips: PulseMaker | None = None,
    ) -> None:
        """`asked_s` is the shortest RTT to the server's program that is known, `kernel_s` to its kernel.

        An idle session answers like the first, the echo like the second.
        """
        super().__init__(name="mpx-rtt-watch", daemon=True)
        self.trouble = ""
        self.way = ""  # which is taken; empty while there is none
        self._host = host
        self._address = address
        self._run: Run | None = None
        self._done = threading.Event()
        self._begun = False
        self._least_s = asked_s
        self._kernel_s = kernel_s
        self._dips = dips

    @property
    def base_s(self) -> float:
        """The shortest RTT that was ever seen, infinite where none was."""
        return self._least_s

    def series(self, from_s: float) -> list[Probe]:
        """Return the probes sent since then whose fate is known, on the monotonic clock."""
        found = self._known()
        even = found if self._dips is None else self._dips.without(found)
        return [probe for probe in even if probe.t_s >= from_s]

    def falls(self, from_s: float) -> list[QueueResponse] | None:
        """Return what dips since then (monotonic clock) have told; None where there can be none."""
        dips = self._dips
        return dips.falls(self._known(), from_s) if dips and dips.can else None

    def rest(self, until_s: float) -> None:
        """Make no dips until then (monotonic clock)."""
        if self._dips:
            self._dips.rest(until_s)

    def _least(self) -> float:
        self._known()
        return self._least_s

    def _known(self) -> list[Probe]:
        run = self._run
        if run is None:
            return []
        found = [Probe(run.began_s + probe.t_s, probe.rtt_s) for probe in run.probes()]
        known = [probe.rtt_s for probe in found if probe.rtt_s is not None]
        self._least_s = min([self._least_s, *known])
        return found

    def run(self) -> None:
        """Choose a way, and probe, until told to end."""
        again_s = AGAIN_S
        while not self._done.is_set():
            began_s = time.monotonic()
            try:
                self._probe()
            except Interrupted:
                return  # it was told to end
            except (MpxError, OSError) as error:  # OSError: no descriptors are left for the moment
                if time.monotonic() - began_s >= HELD_S:
                    again_s = AGAIN_S
                # One that was good is looked for again in a moment: trouble is what that meets.
                self.trouble = "" if self.way and again_s == AGAIN_S else str(error)
            self.way, self._run = "", None
            self._done.wait(again_s)
            again_s = min(SELDOM_S, 2 * again_s)

    def _probe(self) -> None:
        """Probe until told to end; raises Interrupted then, and ConnectionLost where nothing answers."""
        chosen = choose(self._host, [self._address], self._done.is_set, is_open=True)
        with chosen.opened:
            if chosen.way.kind == "handshake":  # ten a second, and many servers start a process for each
                raise ConnectionLost(f"the server takes no further session for probes ({chosen.reason})")
            self.way, self.trouble = chosen.way.name, ""
            if isinstance(chosen.way, EchoWay):
                self._least_s = min(self._least_s, self._kernel_s)
            self._run = run = Run(chosen.way, keep_s=KEEP_S)
            with contextlib.closing(self._times(run, chosen.way)) as times:
                run.go(_while_answered(run, times), self._done.is_set)

    def _times(self, run: Run, way: Way) -> Generator[float]:
        """Return when to probe, for ever; to be closed, so that what a dip slows down is so no longer."""
        if self._dips is None:
            return (single_s(number) for number in count())
        self._dips.over(way)
        return self._dips.times(run, self._least)

    def begin(self) -> None:
        """Start probing, once; where no thread is to be had that is the trouble, and the next call tries."""
        if self._begun:
            return
        try:
            self.start()
        except RuntimeError as error:
            self.trouble = str(error)
        else:
            self._begun, self.trouble = True, ""

    def end(self) -> None:
        """Stop probing."""
        self._done.set()
        if self.is_alive():
            self.join()


def _while_answered(run: Run, times: Iterable[float]) -> Iterator[float]:
    """Yield the times; raises ConnectionLost once nothing was answered for a while."""
    look = round(SILENT_S / SINGLE_INTERVAL_S)
    for number, due_s in enumerate(times):
        if number and number % look == 0:
            latest = run.probes()[-look:]
            if len(latest) == look and all(probe.rtt_s is None for probe in latest):
                raise ConnectionLost("probes are not answered any more")
        yield due_s
