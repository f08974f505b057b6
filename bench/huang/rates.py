"""Figures of copies: rates of streams and of paths, and their variation over time."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from figures import Spread
from mpx_lab.series import Sample, goodput_bps, resample

from huang.copies import Copy
from huang.row import CopyResult

STEP_S = 1.0
SETTLED_S = 1.0  # after which a stream on a path without delay has its full rate
EDGE = 0.15  # share of a stream or copy at both ends that does not count as steady


def seconds(results: Sequence[CopyResult]) -> Spread:
    """Return the times of copies."""
    return Spread([each.copy.seconds for each in results])


def mean_bps(results: Sequence[CopyResult]) -> float:
    """Return the goodput of whole copies, bit/s: the mean over repetitions."""
    return statistics.mean(map(whole_copy_bps, results))


def whole_copy_bps(result: CopyResult) -> float:
    """Return the goodput of a whole copy, bit/s."""
    return result.cell.size_bytes * 8 / result.copy.seconds


def read_rates(result: CopyResult) -> dict[str, float]:
    """Return the goodput of a whole copy and of its middle, bit/s."""
    return {"whole_bps": whole_copy_bps(result), "steady_bps": middle_of_copy_bps(result.copy)}


def steady_bps(results: Sequence[CopyResult]) -> float:
    """Return the goodput of the middle of copies, bit/s: the mean over repetitions.

    From when the first `EDGE` of its bytes have come until only the last are missing: at the end one slow
    stream may be left alone with its block.
    """
    return statistics.mean(middle_of_copy_bps(each.copy) for each in results)


def middle_of_copy_bps(copy: Copy) -> float:
    """Return the goodput of the middle of one copy, bit/s."""
    samples = sorted((each for stream in copy.streams for each in stream), key=lambda each: each.t_s)
    arrived = list(accumulate(each.size_bytes for each in samples))
    first, last = (bisect_left(arrived, share * arrived[-1]) for share in (EDGE, 1 - EDGE))
    return 8 * (arrived[last] - arrived[first]) / (samples[last].t_s - samples[first].t_s)


def middle_bps(stream: Sequence[Sample]) -> float:
    """Return the rate of a stream but for its edges, bit/s."""
    begin_s, end_s = stream[0].t_s, stream[-1].t_s
    edge_s = EDGE * (end_s - begin_s)
    return goodput_bps(stream, begin_s + edge_s, end_s - edge_s)


def rates_of(stream: Sequence[Sample]) -> list[float]:
    """Return the rate of each second of a stream once it has settled, bit/s."""
    return resample(stream, stream[0].t_s + SETTLED_S, stream[-1].t_s, STEP_S)


def variation(stream: Sequence[Sample]) -> float:
    """Return the coefficient of variation of these; infinite where there are too few to tell."""
    rates = rates_of(stream)
    return statistics.pstdev(rates) / statistics.mean(rates) if len(rates) > 1 else math.inf


def by_path(copy: Copy) -> dict[int, list[Sequence[Sample]]]:
    """Return the streams on each path, those that nobody has put on one left out."""
    found: dict[int, list[Sequence[Sample]]] = {}
    for path, stream in zip(copy.paths, copy.streams, strict=True):
        if path is not None:
            found.setdefault(path, []).append(stream)
    return dict(sorted(found.items()))
