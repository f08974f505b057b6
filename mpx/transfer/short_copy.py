"""Copies that are over within some round trips: what they wait for is slow start, not the path."""

from collections.abc import Sequence

from mpx.engine.carrier import SHORT_BYTES, StreamSettings
from mpx.engine.endpoint import FileInfo, Kind
from mpx.options import CopyOptions
from mpx.transfer.transport import Transport

LEAST_RTT_S = 0.01  # on shorter paths slow start takes no longer than opening further streams
MOST_EACH = 4  # streams for one of --share, for so short a time


def streams_of_short_copy(transport: Transport, infos: Sequence[FileInfo]) -> int | None:
    """Return how many streams a short copy begins with; None where it is none, or the number is chosen.

    A new stream carries ten segments in its first round trip, and twice as many in the next, whatever the
    path could carry. `infos`: of the sources, none of which may be a folder.
    """
    options, rtt = transport.options, transport.rtt
    if not transport.mode_e or rtt is None or rtt.asked_s < LEAST_RTT_S or _is_chosen(options):
        return None
    sizes = [info.size_bytes for info in infos if info.kind is Kind.FILE]
    if len(sizes) < len(infos) or None in sizes:
        return None
    total_bytes = sum(size or 0 for size in sizes)
    if not 0 < total_bytes <= SHORT_BYTES:
        return None
    wanted = -(-total_bytes // StreamSettings(is_short=True).bytes_each)
    return min(wanted, MOST_EACH * options.share, options.max_streams)


def _is_chosen(options: CopyOptions) -> bool:
    return options.tuner != "auto" or any(
        (
            options.streams,
            options.initial_streams,
            options.controller,
            options.rate_bps,
            options.bandwidth_bps,
        )
    )
