"""How many streams a copy will need: by the path's rate and the window of a stream, or as the last one.

Huang's n = max(1, a B R) (SDN-enabled GridFTP, (4.8)) is a law of windows: streams that each have W bytes
under way in a round trip R carry the bandwidth B where there are B R / W of them, so a = 1 / W, as in N* of
GridFTP-APT. Huang fits a to a network; here W is what streams have had, or what a socket buffer holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mpx.engine.tuner import START
from mpx.history.outcome import Outcome
from mpx.units import counted, format_duration, format_rate, format_size

MOST = 64  # streams, whatever was seen
OLDEST_S = 30 * 86400.0  # longer ago says nothing
HALVES_S = 7 * 86400.0  # so long ago, and what was seen counts for half, as a power of the streams
SAME_PATH = 1.5  # round trips that differ by more are of another path


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many streams, and why, in words for the report."""

    streams: int
    reason: str


def by_rate(
    bandwidth_bps: float,
    rtt_s: float,
    largest_bytes: int | None,
    outcomes: Sequence[Outcome],
    now_s: float,
) -> Prediction | None:
    """Return n = ceil(B R / W), at most MOST; None where no W is known.

    W is what a stream had where windows limited it last, else what our socket buffer lets it have
    (`largest_bytes`), and never less than a stream is known to have had, since then. `outcomes`: of the same
    route, the latest last.
    """
    recent = [each for each in outcomes if _counts(each, rtt_s, now_s)]
    limited_at = max((at for at, each in enumerate(recent) if each.window_bytes), default=None)
    limited = None if limited_at is None else recent[limited_at].window_bytes
    recent = recent[limited_at or 0 :]
    had = [each.goodput_bps / 8 * each.rtt_s / each.streams for each in recent]
    window_bytes = max([float(largest_bytes or 0) if limited is None else limited, *had])
    whose = "may have in its socket buffer" if window_bytes == largest_bytes else "had before"
    if not window_bytes:
        return None
    needed = min(float(MOST), bandwidth_bps * rtt_s / 8 / window_bytes)  # of a damaged window: infinite
    streams = max(1, math.ceil(needed - 1e-6))
    return Prediction(
        streams,
        f"for {format_rate(bandwidth_bps)} and a round trip of {format_duration(rtt_s)}, with "
        f"{format_size(round(window_bytes))} that a stream {whose}",
    )


def as_before(
    outcomes: Sequence[Outcome], rtt_s: float, now_s: float, share: int = START
) -> Prediction | None:
    """Return the number of streams that the last copy settled on, if that says something of this one.

    Goodput of a stream falls with the round-trip time, whether windows or losses limit it, so the number
    follows that. It fades to `share`, which is what a copy begins with that knows nothing: None for no more.
    """
    if not outcomes:
        return None
    last = outcomes[-1]
    if not _counts(last, rtt_s, now_s):
        return None
    age_s = now_s - last.when_s
    wanted = min(MOST, last.streams * rtt_s / last.rtt_s)
    if wanted <= share:
        return None
    streams = round(share * (wanted / share) ** (0.5 ** (age_s / HALVES_S)))
    if streams <= share:
        return None
    before = f"{counted(last.streams, 'stream')} with {format_rate(last.goodput_bps)}"
    ago = format_duration(max(1, round(age_s)))
    return Prediction(streams, f"as a copy {ago} ago settled on {before}")


def _counts(outcome: Outcome, rtt_s: float, now_s: float) -> bool:
    """Whether an outcome is of this path and not too old."""
    is_recent = 0 <= now_s - outcome.when_s <= OLDEST_S
    return is_recent and 1 / SAME_PATH <= rtt_s / outcome.rtt_s <= SAME_PATH
