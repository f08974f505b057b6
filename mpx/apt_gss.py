"""GridFTP-APT (automatic parallelism tuning) as published: golden-section search (GSS) chunk by chunk.

After Inoue, Ito, Ohsaki and Imase, "Implementation and Evaluation of GridFTP Automatic Parallelism
Tuning Mechanism for Long-Fat Networks", section II; equation numbers are theirs. The transfer
pauses between chunks and its streams are opened anew, as in the paper. What the paper leaves open, and how
it is resolved here, is listed in docs/tuner.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpx.engine.tuner import Decision, Sample
from mpx.units import counted

NU = (3 - math.sqrt(5)) / 2  # 0.381966..., the golden ratio of eq. (4)
LEAST_RTT_S = 0.0001  # eq. (9) divides by the RTT
UNKNOWN_RTT_S = 0.05  # until the RTT is known
USUAL_WINDOW_BYTES = 65536  # of the paper


@dataclass(frozen=True, slots=True)
class Bracket:
    """Stream counts l <= m <= r between which goodput peaks, with the goodput measured there, byte/s."""

    left: int
    middle: int
    right: int
    left_rate: float
    middle_rate: float
    right_rate: float

    def next_streams(self) -> int:
        """Eq. (4) as printed, rounded to the nearest count but l, m and r; m once none is left."""
        if self.right - self.left <= 2:
            return self.middle
        left_wider = self.middle - self.left > self.right - self.middle
        if left_wider:
            exact = self.left + (self.middle - self.left) * NU
        else:
            exact = self.middle + (self.right - self.middle) * NU
        streams = max(self.left + 1, min(self.right - 1, math.floor(exact + 0.5)))
        if streams == self.middle:
            streams += -1 if left_wider else 1
        return streams

    def predicted_rate(self, streams: int) -> float:
        """Eq. (11) without its factor Delta: goodput at `streams` by linear interpolation, byte/s."""
        if streams == self.middle:
            return self.middle_rate
        if streams < self.middle:
            xi = (streams - self.left) / (self.middle - self.left)
            return (1 - xi) * self.left_rate + xi * self.middle_rate
        xi = (streams - self.middle) / (self.right - self.middle)
        return (1 - xi) * self.middle_rate + xi * self.right_rate

    def narrowed(self, streams: int, rate: float) -> "Bracket":
        """Eqs. (5) to (7): the bracket after `streams` gave `rate`."""
        right = self.middle < streams
        if rate > self.middle_rate:  # eq. (5), then (7)
            if right:
                return Bracket(self.middle, streams, self.right, self.middle_rate, rate, self.right_rate)
            return Bracket(self.left, streams, self.middle, self.left_rate, rate, self.middle_rate)
        if right:  # eq. (6)
            return Bracket(self.left, self.middle, streams, self.left_rate, self.middle_rate, rate)
        return Bracket(streams, self.middle, self.right, rate, self.middle_rate, self.right_rate)


@dataclass(slots=True)
class _Path:
    """One path's search, and its chunk under way."""

    streams: int
    chunk_bytes: int
    began_s: float
    began_bytes: int
    steps: list[tuple[int, float]] = field(default_factory=list)  # (N, G(N)) of the chunks, oldest first
    bracket: Bracket | None = None
    disturbed: bool = False  # the chunk under way was measured partly with something else


class PaperGss:
    """GridFTP-APT for every path of a group, each on its own, with the barrier after each chunk.

    `initial` is N0 (one number, or one per path), `growth` alpha (above 1), `chunk_time_s` Delta in
    seconds, `window_bytes` W, the TCP socket buffer of eq. (9), and `max_streams` the cap on each path.
    A chunk ends when the carrier reports `Sample.still`; the first one also after 2 Delta.
    """

    def __init__(
        self,
        initial: int | Mapping[str, int] = 4,
        growth: float = 2.0,
        chunk_time_s: float = 3.0,
        window_bytes: int = USUAL_WINDOW_BYTES,
        max_streams: int = 512,
    ):
        if growth <= 1 or chunk_time_s <= 0 or window_bytes < 1 or max_streams < 1:
            raise ValueError("growth must exceed 1; chunk time, window and streams must be positive")
        self._initial, self._growth, self._chunk_time_s = initial, growth, chunk_time_s
        self._window_bytes, self._max = window_bytes, max_streams
        self._paths: dict[str, _Path] = {}

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """See `mpx.engine.tuner.Tuner`: one decision for each path whose chunk has arrived."""
        for gone in self._paths.keys() - samples.keys():
            del self._paths[gone]
        decisions = []
        for name, sample in samples.items():
            path = self._paths.get(name)
            if path is None:
                decisions.append(self._begin(name, now_s, sample))
            elif sample.arrived_bytes > path.began_bytes and (sample.still or self._overdue(path, now_s)):
                decisions.append(self._next(name, path, now_s, sample))
        return decisions

    def disturbed(self, now_s: float) -> None:  # noqa: ARG002
        """See `mpx.engine.tuner.Tuner`. The chunk under way decides nothing; the next has as many streams."""
        for path in self._paths.values():
            path.disturbed = True

    def bracket(self, path: str) -> Bracket | None:
        """The bracket (l, m, r) of a path; None while it is being searched for."""
        return self._paths[path].bracket

    def _overdue(self, path: _Path, now_s: float) -> bool:
        """Eq. (9) may promise far too much for a large window: the first chunk ends after 2 Delta."""
        return not path.steps and now_s - path.began_s >= 2 * self._chunk_time_s

    def _begin(self, name: str, now_s: float, sample: Sample) -> Decision:
        """Eq. (1) and, for the first chunk, eq. (9)."""
        initial = self._initial if isinstance(self._initial, int) else self._initial.get(name, 4)
        streams = max(1, min(self._max, initial))
        rtt_s = max(LEAST_RTT_S, sample.rtt_s or UNKNOWN_RTT_S)
        rate = streams * self._window_bytes / rtt_s
        self._paths[name] = path = _Path(streams, 0, now_s, sample.arrived_bytes)
        return self._order(name, path, sample, rate, f"start with {counted(streams, 'stream')}, eq. (1)")

    def _next(self, name: str, path: _Path, now_s: float, sample: Sample) -> Decision:
        moved = sample.arrived_bytes - path.began_bytes
        rate = moved / max(1e-6, now_s - path.began_s)
        short = sample.still and moved < path.chunk_bytes / 2 and sample.bytes_left > 0
        disturbed, path.disturbed = path.disturbed, False
        path.began_s, path.began_bytes = now_s, sample.arrived_bytes
        said = f"{rate * 8 / 1e6:.1f} Mbit/s with {counted(path.streams, 'stream')}"
        if short:
            return self._order(name, path, sample, rate, f"{said}; the chunk was too short, so no decision")
        if disturbed:
            return self._order(
                name,
                path,
                sample,
                rate,
                f"{said}; the congestion control or a path changed during the chunk, so no decision",
            )
        if path.bracket is not None:
            if path.streams != path.bracket.middle:
                path.bracket = path.bracket.narrowed(path.streams, rate)
            return self._search(name, path, sample, said)
        path.steps.append((path.streams, rate))
        if len(path.steps) > 1 and (rate < path.steps[-2][1] or path.streams == path.steps[-2][0]):
            path.bracket = self._bracketed(path.steps)
            return self._search(name, path, sample, said)
        grown = min(
            self._max, max(path.streams + 1, math.floor(path.streams * self._growth + 0.5))
        )  # eq. (3)
        ratio = rate / path.steps[-2][1] if len(path.steps) > 1 else self._growth
        predicted = rate * ratio  # eq. (8); for the second chunk eq. (10)
        path.streams = max(path.streams, grown)
        return self._order(
            name, path, sample, predicted, f"{said}; goodput has not fallen, eq. (2): more streams, eq. (3)"
        )

    def _bracketed(self, steps: list[tuple[int, float]]) -> Bracket:
        """Return the bracket of eq. (2), (N-2, N-1, N); its left end is estimated if N-2 was not measured.

        At the cap the count cannot grow: then the last two chunks had the same N, and the peak lies there.
        """
        (middle, middle_rate), (right, right_rate) = steps[-2:]
        if len(steps) > 2:
            left, left_rate = steps[-3]
        else:
            left = max(1, math.floor(middle / self._growth + 0.5))
            left_rate = middle_rate * left / middle
        return Bracket(left, middle, right, left_rate, middle_rate, right_rate)

    def _search(self, name: str, path: _Path, sample: Sample, said: str) -> Decision:
        """Eqs. (4) and (11)."""
        assert path.bracket is not None
        b = path.bracket
        path.streams = b.next_streams()
        rate = b.predicted_rate(path.streams)
        step = "search ended" if path.streams == b.middle else f"try {path.streams}, eq. (4)"
        return self._order(
            name,
            path,
            sample,
            rate,
            f"{said}; best number in the bracket ({b.left}, {b.middle}, {b.right}): {step}",
        )

    def _order(self, name: str, path: _Path, sample: Sample, rate: float, reason: str) -> Decision:
        """Return the decision for a chunk that lasts Delta at `rate`, byte/s, and is no more than is left."""
        wanted = max(1, math.floor(rate * self._chunk_time_s + 0.5))
        path.chunk_bytes = max(1, min(wanted, sample.bytes_left)) if sample.bytes_left > 0 else wanted
        return Decision(name, path.streams, reason, chunk_bytes=path.chunk_bytes, barrier=True)
