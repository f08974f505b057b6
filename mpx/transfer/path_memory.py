"""What a copy takes from earlier ones on its path, and leaves for the next: how many streams it needs."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpx.choices import AUTO
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Sample
from mpx.errors import UsageError
from mpx.history import store
from mpx.history.outcome import Outcome, Route
from mpx.history.prediction import as_before, by_rate
from mpx.history.settled import Settling
from mpx.net.socket_buffers import largest_window_bytes
from mpx.options import CopyOptions
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport
from mpx.units import counted

LIMITS = ("share", "max_streams", "congestion")  # what decides on the number beside the path


class PathMemory:
    """The memory of one copy. `observe` belongs to the control loop's thread."""

    def __init__(
        self,
        transport: Transport,
        ends: Ends,
        *,
        has_paths: bool,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`has_paths`: a controller's, which has its own predictions, and learns from the copy."""
        options, rtt = transport.options, transport.rtt
        self._bandwidth_bps = transport.bandwidth_bps
        self._now_s, self._rtt_s = now_s, rtt.asked_s if rtt else None
        self._receives = ends.far_is_source
        self._route: Route | None = None
        if options.history and not has_paths and rtt and rtt.address and rtt.local_host:
            server, port = rtt.address
            self._route = Route(rtt.local_host, server, port, not ends.far_is_source, options.policy)
        is_tuned = options.tuner == AUTO and options.streams is None and not transport.plan.yields
        self._counts = is_tuned
        is_free = options.rate_bps is None and not any(map(options.was_given, LIMITS))
        self._is_kept = is_tuned and is_free and transport.mode_e
        self._settling = Settling()

    def applied(
        self, options: CopyOptions, note: Callable[[str], None], usual: int | None = None
    ) -> CopyOptions:
        """Return the options with the number of streams to begin with, where the bandwidth is known.

        `usual`: what the copy begins with otherwise, and no fewer; None: with the share.
        """
        if self._bandwidth_bps is None or self._rtt_s is None or _number_is_given(options):
            return options
        bandwidth_bps = min(self._bandwidth_bps, options.rate_bps or math.inf)
        largest_bytes = largest_window_bytes(receives=self._receives)
        predicted = by_rate(bandwidth_bps, self._rtt_s, largest_bytes, self._earlier(), self._now_s())
        if predicted is None:
            return options
        least = min(usual or options.share, options.max_streams)  # so many may stay on a full path
        if self._counts and predicted.streams <= least:
            note(f"begins with {counted(least, 'stream')}: fewer would do {predicted.reason}")
            return options
        streams = min(predicted.streams, options.max_streams)
        note(f"begins with {counted(streams, 'stream')}: {predicted.reason}")
        return replace(options, initial_streams=streams, bandwidth_bps=None)

    def expected(self, options: CopyOptions, note: Callable[[str], None], usual: int | None) -> int | None:
        """Return how many streams the path needs if it is as it was; None where nothing is known of it.

        Not what to begin with: others may be on the path by now, and they would lose most of it at once.
        """
        if self._rtt_s is None or not self._counts or _number_is_given(options):
            return None
        predicted = as_before(self._earlier(), self._rtt_s, self._now_s(), usual or options.share)
        if predicted is None:
            return None
        streams = min(predicted.streams, options.max_streams)
        note(f"expects to need {counted(streams, 'stream')} if the path has room: {predicted.reason}")
        return streams

    def _earlier(self) -> Sequence[Outcome]:
        with contextlib.suppress(UsageError):
            return store.outcomes(self._route) if self._route else ()
        return ()

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> None:
        """Take what has moved so far."""
        if self._route and self._is_kept and (sample := samples.get(DEFAULT_PATH)):
            self._settling.observe(now_s, sample)

    def keep(self) -> None:
        """Remember what the copy settled on, if it did."""
        found = self._settling.found(self._rtt_s) if self._rtt_s else None
        if self._route and self._rtt_s and found:
            outcome = Outcome(
                self._now_s(), self._rtt_s, found.streams, found.goodput_bps, found.window_bytes
            )
            with contextlib.suppress(UsageError):
                store.record(self._route, outcome)


def _number_is_given(options: CopyOptions) -> bool:
    return options.streams is not None or options.initial_streams is not None
