"""How many streams on a path that is full, that is with a queue that stands in front of its bottleneck.

Whoever made the queue: more streams would bring us only what they take from others. So none are added, and
they come down as far as the path stays full. Every mpx does the same, so several end with the same number.
"""

import math

SHARING = 4  # no fewer: so many each come level, and a loss of one stream takes little from all of them
DOWN = 0.7  # each step; those that stay have to fill the path again
GAIN = 0.5  # a look upwards gained if goodput rose by that power of the streams ...
NOISE = 2.0  # ... and by so many times the noise


def fewer(streams: int, least: int) -> int:
    """Return how many streams to go down to; as many as there are, where fewer cannot be."""
    return min(streams, max(least, SHARING, round(DOWN * streams)))


def gained(before: int, before_bps: float, streams: int, goodput_bps: float, noise: float) -> bool:
    """Tell whether `streams` carry so much more than fewer did `before` that not all of it was others'.

    `noise` is the standard deviation of the logarithm of the goodput that was measured. For a path that was
    not full before and is now.
    """
    return goodput_bps > before_bps * math.pow(streams / before, GAIN) * math.exp(NOISE * noise)
