"""How many streams on a path that is full, that is with a standing queue at its bottleneck.

Whatever traffic fills the queue, more streams would gain only what they take from others. So none are added,
and their number is reduced as far as the path stays full. Every mpx does the same, so several end with the
same number.
"""

import math

SHARING = 4  # no fewer: with four each, transfers come to equal shares, and one loss costs little
DOWN = 0.7  # factor of each step; the remaining streams have to fill the path again
GAIN = 0.5  # a trial of more streams gained if goodput rose by that power of the streams ...
NOISE = 2.0  # ... and by so many times the noise


def fewer(streams: int, least: int) -> int:
    """Return how many streams to go down to; as many as there are, where fewer cannot be."""
    return min(streams, max(least, SHARING, round(DOWN * streams)))


def gained(before: int, before_bps: float, streams: int, goodput_bps: float, noise: float) -> bool:
    """Return whether `streams` carry so much more than `before` did that not all of it was taken from others.

    `noise` is the standard deviation of the logarithm of the goodput that was measured. For a path that was
    not full before and is now.
    """
    return goodput_bps > before_bps * math.pow(streams / before, GAIN) * math.exp(NOISE * noise)
