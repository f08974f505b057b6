"""A copy over several paths: its path set, the state of the paths, and the feedback at the end."""

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.engine.path_set import PathSet, Side
from mpx.engine.tuner import Sample
from mpx.errors import ControllerError
from mpx.multipath.controller import Controller
from mpx.multipath.health import SUSPECT_S, PathHealth, Seen
from mpx.multipath.server_address import ServerAddress
from mpx.multipath.steering import SteeredPaths
from mpx.report import OnNote
from mpx.rtt.prober import Prober

MEASURED_S = 5.0  # the rate of a path is the highest mean over so long
END_S = 2.0  # wait for the controller at the end; leases end anyway
STOPPED_END_S = 0.5  # where the copy is stopped before its end


@dataclass(slots=True)
class _Carried:
    """The highest goodput of a path over MEASURED_S, and its number of streams then."""

    window: deque[tuple[float, int, int]] = field(default_factory=deque)  # when, bytes, streams
    most_bps: float = 0.0
    streams: int = 0

    def add(self, now_s: float, arrived_bytes: int, streams: int) -> None:
        self.window.append((now_s, arrived_bytes, streams))
        first_s, first_bytes, first_streams = self.window[0]
        if now_s - first_s < MEASURED_S:
            return
        rate_bps = (arrived_bytes - first_bytes) * 8 / (now_s - first_s)
        if streams == first_streams and rate_bps > self.most_bps:
            self.most_bps, self.streams = rate_bps, streams
        self.window.popleft()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a path, with its reason for the report."""

    path: str
    reason: str


class Multipath:
    """See the head of this file. Used by the control loop, which ends before `close` is called.

    Attributes that other threads use say so.

    `near`: the side of this host; `far`: the address of the other. `open_session` opens a session with short
    timeouts, and calls what it is given with the local port before it connects.
    """

    def __init__(
        self,
        client: Controller,
        known: PathSet,
        *,
        near: Side,
        far: ServerAddress,
        open_session: Callable[[Callable[[int], None]], Endpoint],
        note: OnNote,
    ) -> None:
        self.known = known
        # For the report, which may be written meanwhile: each is replaced as a whole.
        self.described: list[dict[str, Any]] = [
            {
                "path": path.name,
                "streams": path.streams,
                "rate_bps": path.rate_bps,
                "rtt_s": path.rtt_s,
                "group": path.group,
                "carried_bytes": 0,
            }
            for path in known.paths
        ]
        self.paths = SteeredPaths(client, known, far=far, note=note, changed=self._has_changed)
        self._client = client
        self._near: Side = near
        self._far = far
        self._open_session = open_session
        self._health = PathHealth()
        self._probes: dict[str, Prober] = {}
        self._shortest_s = dict.fromkeys(known.names, math.inf)
        self._carried = {name: _Carried() for name in known.names}
        # As the controller says: replaced as a whole by the thread of `paths`. All else is the loop's.
        self._down: frozenset[str] = frozenset()
        self._reported_down: frozenset[str] = frozenset()
        self._closed = False
        self._end_s = END_S

    def start(self, may_probe: threading.Event) -> None:
        """Start to renew the set, and to probe its paths when the copy has the sessions that it needs."""
        with contextlib.suppress(RuntimeError):  # no thread can be started: the set ends with its lease
            self.paths.start()
        for name in self.known.names:
            # A lost session is always replaced: only a new one shows soon that the path works again.
            sessions = (self._session(path) for path in repeat(name))
            self._probes[name] = Prober(f"mpx-path-{name}", sessions, may_begin=may_probe)
            with contextlib.suppress(RuntimeError):
                self._probes[name].start()

    @contextlib.contextmanager
    def steered(self, path: str) -> Iterator[Callable[[int], None]]:
        """Yield what has a session take this path, even while the path is lost; to be told its port.

        From any thread.
        """
        steer, ports = self.paths.register(path, self._near, stays=True), list[int]()

        def bound(port: int) -> None:
            ports.append(port)
            steer(port)

        try:
            yield bound
        finally:
            for port in ports:
                self.paths.ended(port, self._near)

    @contextlib.contextmanager
    def _session(self, path: str) -> Iterator[Endpoint]:
        """Open a session that takes this path."""
        with self.steered(path) as bound, contextlib.closing(self._open_session(bound)) as endpoint:
            yield endpoint

    def rtt(self, path: str) -> Rtt | None:
        """Return the last RTT of a path."""
        rtt = self._probes[path].measured.rtt
        if rtt is not None:
            self._shortest_s[path] = min(self._shortest_s[path], rtt.asked_s)
        return rtt

    def shortest_s(self, path: str) -> float:
        """Return the shortest RTT that `rtt` has returned of a path; infinite where there was none."""
        return self._shortest_s[path]

    @property
    def lost(self) -> frozenset[str]:
        """The paths whose streams take others at present."""
        return self._health.lost | self._down

    @property
    def is_in_doubt(self) -> bool:
        """Whether a path may be lost, so that `observe` should be called again soon."""
        return bool(self._health.doubtful)

    def carried(self, now_s: float, samples: Mapping[str, Sample]) -> None:
        """Note what has moved; `now_s` is of time.monotonic().

        Once data has gone to another address, what came over which path is not known.
        """
        if self._far.strayed:
            for place, each in enumerate(self.described):
                self.described[place] = {key: each[key] for key in each if key != "carried_bytes"}
            self._carried = {name: _Carried() for name in self.known.names}
            return
        for place, path in enumerate(self.known.names):
            sample = samples[path]
            self.described[place] = self.described[place] | {"carried_bytes": sample.arrived_bytes}
            self._carried[path].add(now_s, sample.arrived_bytes, sample.streams)

    def observe(self, now_s: float, silent_s: Callable[[str], float | None]) -> Sequence[Change]:
        """Find silent paths; move the streams of lost ones to others. Return the changes.

        `now_s` is of time.monotonic().
        """
        changes: list[Change] = []
        seen = {path: self._seen(path, now_s, silent_s(path)) for path in self.known.names}
        lost, back = self._health.observe(now_s, seen)
        for path in self._health.doubtful:
            self._probes[path].ask()
        if any((seen[path].silent_s or 0.0) > SUSPECT_S for path in self._health.doubtful):
            self.paths.check()  # the controller may have lost it, too
        if lost or back:
            self._move()
        for path in lost:
            silent = f"no data for {seen[path].silent_s or 0.0:.1f} s"
            changes.append(Change(path, f"{silent}; its streams moved to other paths"))
        for path in back:
            changes.append(Change(path, "it works again; its streams moved back"))
        down = self._down
        for path in sorted(down - self._reported_down):
            changes.append(Change(path, "the controller reports it down; its streams moved to other paths"))
        for path in sorted(self._reported_down - down):
            changes.append(Change(path, "the controller reports it up again"))
        self._reported_down = down
        return changes

    def stop(self) -> None:
        """Stop early: no stream waits for the controller any more."""
        self._end_s = STOPPED_END_S
        self.paths.stop()
        self._client.stop()

    def close(self) -> None:
        """Send feedback, release the set, end all sessions. May be called again."""
        if self._closed:
            return
        self._closed = True
        for probe in self._probes.values():
            probe.end()
        ending = threading.Thread(target=self._end, name="mpx-paths-end", daemon=True)
        with contextlib.suppress(RuntimeError):
            ending.start()
            ending.join(self._end_s)

    def _end(self) -> None:
        self._feed_back()
        self.paths.close()

    def _feed_back(self) -> None:
        for path in self.known.paths:
            carried, rtt = self._carried[path.name], self.rtt(path.name)
            if not carried.most_bps or rtt is None:
                continue
            rtt_s = rtt.kernel_s or rtt.asked_s
            try:
                self._client.feedback(
                    self.known.number, path.name, max(1, carried.streams), carried.most_bps, rtt_s
                )
            except ControllerError:
                return  # the copy is over: feedback only improves later predictions

    def _seen(self, path: str, now_s: float, silent_s: float | None) -> Seen:
        probe = self._probes[path]
        measured = probe.measured
        rtt_s = measured.rtt.asked_s if measured.rtt else self._offered_rtt_s(path)
        if not probe.is_alive():  # the server admits no session for it: lost paths are tried instead
            return Seen(silent_s, rtt_s, math.inf if path in self._health.lost else 0.0)
        asked_s = measured.asked_at_s
        return Seen(silent_s, rtt_s, measured.answered_at_s, now_s - asked_s if asked_s is not None else None)

    def _has_changed(self, now: PathSet) -> None:
        names = frozenset(self.known.names)
        self._down = frozenset(path.name for path in now.paths if not path.is_up) & names

    def _move(self) -> None:
        """Move the streams of lost paths to others, evenly, and all others to their own."""
        lost = self._health.lost
        there = [name for name in self.known.names if name not in lost]
        for place, name in enumerate(self.known.names):
            over = there[place % len(there)] if name in lost and there else name
            self.paths.move(name, over)

    def _offered_rtt_s(self, path: str) -> float:
        return next(each.rtt_s for each in self.known.paths if each.name == path)
