"""Watches the round-trip times (RTT) of a path while a copy runs over it: ten a second, to its end.

The way is the one that `mpx probe` would take: the echo of `mpx serve`, an idle session, handshakes, ICMP.
"""

import itertools
import math
import threading
from collections.abc import Iterator

from mpx import tcp
from mpx.errors import Interrupted, MpxError
from mpx.probing.choose import choose
from mpx.probing.run import Run
from mpx.probing.schedule import SINGLE_INTERVAL_S
from mpx.rtt_series import Probe

KEEP_S = 40.0  # what is older nobody asks for


class RttWatch(threading.Thread):
    """Probes `address` until it is told to end; where that cannot be, `trouble` says why.

    `base_s` is the shortest RTT that is known of the path already.
    """

    def __init__(self, host: str, address: tcp.Address, base_s: float = math.inf) -> None:
        super().__init__(name="mpx-rtt-watch", daemon=True)
        self.trouble = ""
        self.way = ""  # which is taken, once that is known
        self._host = host
        self._address = address
        self._run: Run | None = None
        self._done = threading.Event()
        self._begun = False
        self._least_s = base_s

    @property
    def base_s(self) -> float:
        """The shortest RTT that was ever seen, infinite where none was."""
        return self._least_s

    def series(self, from_s: float) -> list[Probe]:
        """Return the probes sent since then whose fate is known, on the monotonic clock."""
        run = self._run
        if run is None:
            return []
        found = [Probe(run.began_s + probe.t_s, probe.rtt_s) for probe in run.probes()]
        known = [probe.rtt_s for probe in found if probe.rtt_s is not None]
        self._least_s = min([self._least_s, *known])
        return [probe for probe in found if probe.t_s >= from_s]

    def run(self) -> None:
        """Choose a way, and probe."""
        try:
            chosen = choose(self._host, [self._address], self._done.is_set, is_open=True)
            with chosen.opened:
                if chosen.way.kind == "handshake":  # ten a second, and many servers start a process for each
                    self.trouble = f"the server takes no further session for probes ({chosen.reason})"
                    return
                self.way = chosen.way.name
                self._run = Run(chosen.way, keep_s=KEEP_S)
                self._run.go(_for_ever(), self._done.is_set)
        except Interrupted:
            return  # it was told to end
        except MpxError as error:
            self.trouble = str(error)

    def begin(self) -> None:
        """Start probing, once."""
        if not self._begun:
            self._begun = True
            self.start()

    def end(self) -> None:
        """Stop probing."""
        self._done.set()
        if self.is_alive():
            self.join()


def _for_ever() -> Iterator[float]:
    return (number * SINGLE_INTERVAL_S for number in itertools.count())
