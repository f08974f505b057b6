"""Short flows on a link, as the lab's generator takes them."""

import random

from mpx_lab.dataset.links import Wan

LARGEST_BYTES = 10_000_000


def short_flows(wan: Wan, load: float, chance: random.Random, most_s: float = float("inf")) -> str:
    """Return flows that offer `load` times the rate; the largest would fill the link for `most_s` at most.

    Without that limit one of them may be a CUBIC stream for many seconds, and the label `none` be false.
    """
    largest = round(min(LARGEST_BYTES, wan.rate_bps / 8 * most_s))
    seed = chance.randrange(1, 10**6)
    of = f"load={load:.3f}, of={wan.rate_bps}bit/s, largest={largest}, seed={seed}"
    return f"short-flows({of}, congestion=cubic)"
