"""Prediction of the streams of a path, and assignment of streams to paths."""

import math
from collections.abc import Sequence

BYTES_PER_STREAM = 1_900_000.0  # of bandwidth times round-trip time: the fewest that huang found (PRAGMA)
LEARNS = 0.25  # weight of what one transfer reports, and ...
MOST_STEP = 2.0  # ... the largest factor by which one transfer changes it
LEAST_RATE = 0.01  # of what a path carries: who reports less was held up by something else
LEAST_BYTES, MOST_BYTES = 16e3, 1e9  # that a stream is ever believed to carry


def predicted_streams(rate_bps: float, rtt_s: float, bytes_per_stream: float = BYTES_PER_STREAM) -> int:
    """Return n = max(1, a B R), rounded to the nearest (huang, equation 4.8).

    The thesis prints `a` without a unit; it is a number of streams for each Mbit/s times millisecond. Here
    it is 1/a, as bytes of B R (bandwidth times round-trip time) for each stream: 0.001495 of the thesis are
    83.6 kB, 0.000065 are 1.92 MB. Raises ValueError unless all are finite and 1/a is above 0.
    """
    if not (math.isfinite(rate_bps) and math.isfinite(rtt_s) and 0 < bytes_per_stream < math.inf):
        raise ValueError(
            f"no number of streams for {rate_bps} bit/s, {rtt_s} s, {bytes_per_stream} bytes each"
        )
    return max(1, math.floor(rate_bps / 8 * rtt_s / bytes_per_stream + 0.5))


def bytes_per_stream(a: float) -> float:
    """Return 1/a as bytes for each stream, where `a` is per Mbit/s and millisecond, as in the thesis."""
    return 1e6 * 1e-3 / 8 / a


def thesis_a(bytes_each: float) -> float:
    """Return `a` for each Mbit/s and millisecond, as in the thesis, of bytes for each stream."""
    return 1e6 * 1e-3 / 8 / bytes_each


def learnt(bytes_each: float, rate_bps: float, rtt_s: float, best_streams: int) -> float:
    """Return bytes for each stream after a transfer found `best_streams` on a path of that rate and RTT.

    A moving mean of its logarithm, as numbers of streams differ by factors; a path whose product is
    less than one stream's shows nothing about more than one. No transfer changes it by more than `MOST_STEP`.
    """
    if best_streams < 1 or rate_bps <= 0 or rtt_s <= 0:
        return bytes_each
    seen = rate_bps / 8 * rtt_s / best_streams
    if best_streams == 1 and seen < bytes_each:
        return bytes_each
    mixed = math.exp((1 - LEARNS) * math.log(bytes_each) + LEARNS * math.log(seen))
    bounded = min(bytes_each * MOST_STEP, max(bytes_each / MOST_STEP, mixed))
    return min(MOST_BYTES, max(LEAST_BYTES, bounded))


def within(streams: Sequence[int], most: int) -> list[int]:
    """Return numbers of streams that are `most` together or fewer: as they are, or in their ratio.

    Each path keeps one where there are enough.
    """
    return list(streams) if sum(streams) <= most else _by_largest_remainder(streams, most)


def _by_largest_remainder(weights: Sequence[int], count: int) -> list[int]:
    total = sum(weights)
    least = 1 if count >= len(weights) else 0
    exact = [weight / total * count for weight in weights]
    given = [max(least, math.floor(each)) for each in exact]
    while sum(given) > count:  # those that were given one have it from who has most beyond its share
        over = max(
            range(len(given)), key=lambda i: (given[i] - exact[i] if given[i] > least else -math.inf, i)
        )
        given[over] -= 1
    while sum(given) < count:
        short = max(range(len(given)), key=lambda i: (exact[i] - given[i], -i))
        given[short] += 1
    return given
