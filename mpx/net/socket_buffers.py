"""How much a TCP stream may have under way: what the kernel lets a socket buffer grow to."""

import contextlib
from pathlib import Path

OF_A_BUFFER = 0.5  # that data have; the rest is the kernel's for itself (tcp_adv_win_scale 1, and twice cwnd)
_LIMITS = Path("/proc/sys/net/ipv4")


def largest_window_bytes(*, receives: bool) -> int | None:
    """Return what our buffer lets a stream have under way that sends, or `receives`; None: not known.

    The buffer of the other side may hold less.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        limits = (_LIMITS / ("tcp_rmem" if receives else "tcp_wmem")).read_text().split()
        return int(OF_A_BUFFER * int(limits[2])) or None
    return None
