"""One path of a copy: what probes it, and what reads its background.

Most copies are over before any of this is needed, so recognition is imported when it is.
"""

import functools
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpx.choices import CUBIC
from mpx.report import OnNote, Severity
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport, why_not_congestion

if TYPE_CHECKING:
    from mpx.multipath.paths_in_use import Multipath
    from mpx.recognition.monitor import BackgroundMonitor, Loading
    from mpx.recognition.watch import RttWatch

Connections = Callable[[], Sequence[socket.socket]]


class SharedModel:
    """The model of all paths of a copy, loaded once."""

    @functools.cached_property
    def loading(self) -> "Loading":
        """What loads it."""
        from mpx import ops_classifier
        from mpx.recognition.monitor import Loading

        return Loading(ops_classifier.load_beside_data)


@dataclass(frozen=True, slots=True)
class WatchedPath:
    """One path of a copy, and what is needed to watch it."""

    path: str
    ends: Ends
    transport: Transport
    multipath: "Multipath | None"

    def noted(self, note: OnNote) -> OnNote:
        """Return what notes a line about this path."""
        if self.multipath is None:
            return note

        def of_path(text: str, severity: Severity = Severity.INFO) -> None:
            note(f"path {self.path}: {text}", severity)

        return of_path

    def watch(
        self, connections: Connections | None = None, *, keep_s: float | None = None
    ) -> "RttWatch | None":
        """Return what probes the path, not begun yet; None where there is none to probe.

        It makes rate pulses in `connections`, if there are any, and keeps probes for `keep_s` (None: as long
        as readings beside data need them).
        """
        rtt = self.transport.rtt
        if rtt is None or rtt.address is None:
            return None
        from mpx.recognition.pulses.local_pacing import LocalPacer
        from mpx.recognition.pulses.maker import PulseMaker
        from mpx.recognition.pulses.remote_pacing import RemotePacer
        from mpx.recognition.watch import KEEP_S, RttWatch

        pacer = RemotePacer if self.ends.far_is_source else LocalPacer
        maker = PulseMaker(pacer(connections)) if connections else None
        asked_s, kernel_s, steered = rtt.asked_s, rtt.kernel_s or math.inf, None
        if self.multipath is not None:  # what the login has measured was of the path that the network chooses
            asked_s = kernel_s = self.multipath.shortest_s(self.path)
            steered = functools.partial(self.multipath.steered, self.path)
        return RttWatch(
            self.ends.host,
            rtt.address,
            asked_s=asked_s,
            kernel_s=kernel_s,
            pulses=maker,
            steered=steered,
            keep_s=KEEP_S if keep_s is None else keep_s,
            log_in=self.ends.log_in_to_probe,
            why_no_session=self.ends.far.capabilities.why_no_session,
        )

    def monitor(
        self, model: SharedModel, connections: Connections, watch: "RttWatch | None", since_s: float
    ) -> "BackgroundMonitor | None":
        """Return what reads the background and says when to switch; None where there is no path to probe.

        Bytes move since `since_s` (monotonic clock).
        """
        watch = watch or self.watch(connections)
        if watch is None:
            return None
        from mpx.recognition.monitor import BackgroundMonitor
        from mpx.recognition.switching import SwitchHysteresis

        transport = self.transport
        congestion = transport.begins_with(self.path) or CUBIC
        why_not = why_not_congestion(transport.options, self.ends, transport.rtt, are_open=True)
        cached = functools.cache(why_not or str)  # each question takes a socket
        first = transport.plan.congestion or CUBIC
        hysteresis = SwitchHysteresis(transport.options.policy, congestion, cached, first=first)
        return BackgroundMonitor(model.loading, watch, hysteresis, congestion, since_s)
