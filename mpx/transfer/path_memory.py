"""What a copy takes from earlier ones on its path, and leaves for the next: how many streams it needs."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpx.choices import AUTO
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Sample
from mpx.history import store
from mpx.history.outcome import Outcome, Route
from mpx.history.prediction import as_before, by_rate
from mpx.history.settled import Settling
from mpx.net.socket_buffers import largest_window_bytes
from mpx.options import CopyOptions
from mpx.transfer.ends import Ends
from mpx.transfer.transport import Transport
from mpx.units import counted


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
        is_tuned = options.tuner == AUTO and options.streams is None and options.rate_bps is None
        self._counts = is_tuned and not transport.plan.yields
        self._settling = Settling()

    def applied(
        self, options: CopyOptions, note: Callable[[str], None], usual: int | None = None
    ) -> CopyOptions:
        """Return the options with the number of streams to begin with, where the bandwidth is known.

        `usual`: what the copy begins with otherwise, and no fewer; None: with the share.
        """
        if self._bandwidth_bps is None or self._rtt_s is None or _is_chosen(options):
            return options
        largest_bytes = largest_window_bytes(receives=self._receives)
        predicted = by_rate(self._bandwidth_bps, self._rtt_s, largest_bytes, self._earlier())
        if predicted is None:
            return options
        least = (usual or options.share) if self._counts else 1  # so many may stay on a full path
        streams = min(max(predicted.streams, least), options.max_streams)
        note(f"begins with {counted(streams, 'stream')}: {predicted.reason}")
        return replace(options, initial_streams=streams, bandwidth_bps=None)

    def expected(self, options: CopyOptions, note: Callable[[str], None], usual: int | None) -> int | None:
        """Return how many streams the path needs if it is as it was; None where nothing is known of it.

        Not what to begin with: others may be on the path by now, and they would lose most of it at once.
        """
        if self._rtt_s is None or not self._counts or _is_chosen(options):
            return None
        predicted = as_before(self._earlier(), self._rtt_s, self._now_s(), usual or options.share)
        if predicted is None:
            return None
        streams = min(predicted.streams, options.max_streams)
        note(f"expects to need {counted(streams, 'stream')}: {predicted.reason}")
        return streams

    def _earlier(self) -> Sequence[Outcome]:
        return store.outcomes(self._route) if self._route else ()

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> None:
        """Take what has moved so far."""
        if self._route and self._counts and (sample := samples.get(DEFAULT_PATH)):
            self._settling.observe(now_s, sample)

    def keep(self) -> None:
        """Remember what the copy settled on, if it did."""
        found = self._settling.found(self._rtt_s) if self._rtt_s else None
        if self._route and self._rtt_s and found:
            store.record(
                self._route,
                Outcome(self._now_s(), self._rtt_s, found.streams, found.goodput_bps, found.window_bytes),
            )


def _is_chosen(options: CopyOptions) -> bool:
    return options.streams is not None or options.initial_streams is not None
