"""Watches the round-trip times (RTT) of a path while a copy runs over it: ten a second, to its end.

The method is that of `mpx probe`, but only one of the two that open no connection for each probe: the echo of
`mpx serve`, or an idle session.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import count
from typing import Protocol

from mpx.errors import ConnectionLost, Interrupted, MpxError
from mpx.net import tcp
from mpx.recognition.pulses.maker import PulseMaker
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.rtt.method import Method
from mpx.rtt.methods.choose import LogIn, choose
from mpx.rtt.methods.echo import EchoMethod
from mpx.rtt.runner import Run
from mpx.rtt.schedule import SINGLE_INTERVAL_S, single_s
from mpx.rtt.series import Probe

KEEP_S = 40.0  # older probes are not used beside data
AGAIN_S, SELDOM_S = 5.0, 300.0  # first and longest pause before another attempt; each is twice the one before
HELD_S = 60.0  # after probes were answered for so long, pauses start from the first again
SILENT_S = 10.0  # without any answer the method is lost

# Yields what is to be told the port of a session before it connects.
Steered = Callable[[], contextlib.AbstractContextManager[Callable[[int], None]]]


class Watches(Protocol):
    """What probes a path beside a copy."""

    trouble: str  # why there are no probes, after an attempt; empty otherwise

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
        """Return the probes sent since then (monotonic clock) that are answered or lost."""
        ...

    def responses(self, from_s: float) -> Sequence[QueueResponse] | None:
        """Return the responses to pulses since then; None where pulses are not possible."""
        ...

    def rest(self, until_s: float) -> None:
        """Make no pulses until then (monotonic clock); replaces an earlier call."""
        ...


class RttWatch(threading.Thread):
    """Probes `address` until `end`; where no method is available, or one is lost, it tries again.

    The probes of a lost method are forgotten, but not the shortest round trip.
    """

    def __init__(
        self,
        host: str,
        address: tcp.Address,
        *,
        asked_s: float = math.inf,
        kernel_s: float = math.inf,
        pulses: PulseMaker | None = None,
        steered: Steered | None = None,
        keep_s: float = KEEP_S,
        log_in: LogIn | None = None,
        why_no_session: str = "",
    ) -> None:
        """`asked_s` is the shortest RTT known to the server's program, `kernel_s` to its kernel.

        An idle session measures the first, the echo the second. `steered` has a session take the path that is
        probed. Probes older than `keep_s` are forgotten. `log_in`, `why_no_session`: see `choose`.
        """
        super().__init__(name="mpx-rtt-watch", daemon=True)
        self.trouble = ""
        self.method = ""  # its name; empty while there is none
        self._host = host
        self._address = address
        # `_run`, `trouble` and `method`: references, written by this thread and read by the control loop's.
        # `_least_s`: lowered by either thread; a value that is lost is found again with the next reading.
        self._run: Run | None = None
        self._done = threading.Event()
        self._begun = False
        self._least_s = asked_s
        self._kernel_s = kernel_s
        self._pulses = pulses
        self._steered = steered
        self._keep_s = keep_s
        self._log_in, self._why_no_session = log_in, why_no_session

    @property
    def base_s(self) -> float:
        """The shortest RTT so far, infinite where there is none."""
        return self._least_s

    def series(self, from_s: float) -> list[Probe]:
        """See Watches."""
        found = self._known()
        even = found if self._pulses is None else self._pulses.without(found)
        return [probe for probe in even if probe.t_s >= from_s]

    def responses(self, from_s: float) -> list[QueueResponse] | None:
        """See Watches."""
        pulses = self._pulses
        return pulses.responses(self._known(), from_s) if pulses and pulses.can else None

    def rest(self, until_s: float) -> None:
        """See Watches."""
        if self._pulses:
            self._pulses.rest(until_s)

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
        """Choose a method and probe, until `end`."""
        again_s = AGAIN_S
        while not self._done.is_set():
            began_s = time.monotonic()
            try:
                self._probe()
            except Interrupted:
                return  # `end` was called
            except (MpxError, OSError) as error:  # OSError: no descriptors are left for the moment
                if time.monotonic() - began_s >= HELD_S:
                    again_s = AGAIN_S
                # After a good one the next attempt comes soon: whether there is trouble shows then.
                self.trouble = "" if self.method and again_s == AGAIN_S else str(error)
            self.method, self._run = "", None
            self._done.wait(again_s)
            again_s = min(SELDOM_S, 2 * again_s)

    def _probe(self) -> None:
        """Probe until `end`, then raise Interrupted; raises ConnectionLost where nothing answers."""
        with contextlib.ExitStack() as opened:
            bound = opened.enter_context(self._steered()) if self._steered else None
            chosen = choose(
                self._host,
                [self._address],
                self._done.is_set,
                is_open=True,
                bound=bound,
                log_in=self._log_in,
                why_no_session=self._why_no_session,
            )
            opened.enter_context(chosen.opened)
            # Too many of them: ten a second, and many servers of FTP start a process for each.
            if chosen.method.kind == "handshake" and not self._why_no_session:
                raise ConnectionLost(f"no further session for probes could be had ({chosen.reason})")
            self.method, self.trouble = chosen.method.name, ""
            if isinstance(chosen.method, EchoMethod):
                self._least_s = min(self._least_s, self._kernel_s)
            self._run = run = Run(chosen.method, keep_s=self._keep_s)
            with contextlib.closing(self._times(run, chosen.method)) as times:
                run.go(_while_answered(run, times), self._done.is_set)

    def _times(self, run: Run, method: Method) -> Generator[float]:
        """Return when to probe, for ever; to be closed, as a pulse may be under way."""
        if self._pulses is None:
            return (single_s(number) for number in count())
        self._pulses.over(method)
        return self._pulses.times(run, self._least)

    def begin(self) -> None:
        """Start probing, once; where no thread can be started, `trouble` says so and the next call tries."""
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
    """Yield the times; raises ConnectionLost when nothing was answered for SILENT_S."""
    checked = round(SILENT_S / SINGLE_INTERVAL_S)
    for number, due_s in enumerate(times):
        if number and number % checked == 0:
            latest = run.probes()[-checked:]
            if len(latest) == checked and all(probe.rtt_s is None for probe in latest):
                raise ConnectionLost("probes are no longer answered")
        yield due_s
