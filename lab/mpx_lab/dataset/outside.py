"""Traffic that is none of the mixes, to learn what *unknown* looks like. All of it fills the queue."""

import random

from mpx_lab.dataset.links import Wan
from mpx_lab.dataset.short_flows import short_flows

RENO = "tcp(congestion=reno)"
# Of the rate, as payload. Less would leave the queue empty, which looks like `none`; that would be the right
# label.
UDP_LOAD, UDP_BURST_LOAD = (1.0, 1.2), (1.0, 1.3)
MANY = (8, 24)  # streams
SHORT_LOAD = (0.4, 0.8)
FILL = ("udp", "many", "many mixed")  # kinds that fill the link


def outside(wan: Wan) -> dict[str, tuple[str, ...]]:
    """Return the generators of each kind, by its name."""
    chance = random.Random(f"outside {wan.id}")
    udp_bps, burst_bps = (wan.rate_bps * chance.uniform(*load) for load in (UDP_LOAD, UDP_BURST_LOAD))
    many = chance.randint(*MANY)
    half = many // 2
    on_s, off_s = chance.uniform(1, 3) + 20 * wan.rtt_s, chance.uniform(1, 3)
    return {
        "reno": (RENO,),
        "reno reno": (RENO, RENO),
        "udp": (f"udp(rate={udp_bps:.0f}bit/s)",),
        "udp bursty": (f"udp-bursty(rate={burst_bps:.0f}bit/s, burst=1s, period={chance.choice((2, 5))}s)",),
        "many": (f"tcp(congestion=cubic, streams={many})",),
        "many mixed": (f"tcp(congestion=cubic, streams={half})", f"tcp(congestion=bbr, streams={half})"),
        "short flows": (short_flows(wan, chance.uniform(*SHORT_LOAD), chance),),
        "application": (f"tcp-square(congestion=cubic, on={on_s:.2f}s, off={off_s:.2f}s)",),
    }
