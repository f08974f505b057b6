"""What would have been faster, as far as the report shows it, with the command or the setting. Pure."""

from collections.abc import Iterator, Sequence

from mpx.choices import FAIR, PAPER, SCAVENGER
from mpx.explain.finding import Finding, FindingKind
from mpx.explain.outcome import after_data_s
from mpx.explain.path_story import shortest_rtt_s
from mpx.explain.record import CopyRecord
from mpx.explain.stretches import OUTAGE_S, full_share, last_attempt, mean_share, of_path, outages
from mpx.intervals import Interval
from mpx.recognition.mix import NOBODY, UNKNOWN
from mpx.units import counted, format_duration, format_rate, format_size

MUCH = 0.2  # of the time
MOSTLY = 0.5
STUCK = 0.25  # of what the other paths carried in the mean
REFERENCE_BPS = 1e9  # for which windows are told
LEAST_WINDOW_BYTES = 4 << 20  # that hosts permit; one smaller is not full because who receives is slow
SMALL_BYTES = 1024 * 1024  # a file of less is over before its stream is fast
LONG_S = 1.0  # that something takes to be worth advice
AT_THE_LIMIT = 0.85  # of --rate
ONE_CORE = 0.85  # of a processor's time: mpx is one process, most of whose work is done by one core at a time


def faster(record: CopyRecord) -> Iterator[Finding]:
    """Yield what would have made the copy faster; at the end, where nothing would, why."""
    advice = [*_of_paths(record), *_of_the_whole(record)]
    if not advice and (text := _nothing(record)):
        yield Finding(FindingKind.LIMIT, text)
    for text in advice:
        yield Finding(FindingKind.ADVICE, text)


def _by_path(record: CopyRecord) -> Iterator[tuple[str, list[Interval]]]:
    several = len(record.paths) > 1
    for path in record.paths:
        moving = [each for each in of_path(record.intervals, path) if each.streams > 0]
        if moving:
            yield (f"path {path}: " if several else ""), moving


def _of_paths(record: CopyRecord) -> Iterator[str]:
    for where, moving in _by_path(record):
        rtt_s = shortest_rtt_s(record, moving)
        receiver = mean_share(moving, lambda each: each.limited_by_receiver) or 0.0
        sender = mean_share(moving, lambda each: each.limited_by_sender) or 0.0
        if receiver >= MUCH:
            text = f"{where}{_wider(_receiver(record), 'rmem', rtt_s)}"
            is_full = (full_share(moving, rtt_s or 0.0) or 0.0) >= MOSTLY
            most = counted(round(max(each.streams for each in moving)), "stream")
            yield text + (f" (the path was full all the same, with up to {most})" if is_full else "")
        if sender >= MUCH:
            yield f"{where}a larger send buffer on this host: {_window('wmem', rtt_s)}"
        if silent := outages(moving):
            lasted, since = (
                format_duration(t_s) for t_s in (sum(each.length_s for each in silent), silent[0].from_s)
            )
            often = f" in {len(silent)} times, the first" if len(silent) > 1 else ""
            yield f"{where}no outage: no data arrived for {lasted}{often} from {since} on"
    yield from _stuck(record)


def _receiver(record: CopyRecord) -> str:
    """Return who receives, where that is not this host."""
    host = record.destination.partition("://")[2].partition("/")[0].rpartition("@")[2]
    host = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return f"the receiver, {host}" if host else "the receiver"


def _wider(who: str, which: str, rtt_s: float | None) -> str:
    """Return what to do about windows: larger ones, or a receiver that empties them sooner."""
    if rtt_s is not None and REFERENCE_BPS * rtt_s / 8 <= LEAST_WINDOW_BYTES:
        return (
            f"a larger window at {who}, if its route or its tcp_{which} limits it, or one that is emptied "
            "sooner: look at its disk and its processor"
        )
    return f"a larger window at {who}: {_window(which, rtt_s)}"


def _window(which: str, rtt_s: float | None) -> str:
    text = f"raise the third number of net.ipv4.tcp_{which} there (sysctl)"
    size_bytes = REFERENCE_BPS * (rtt_s or 0.0) / 8
    if rtt_s is None or size_bytes <= LEAST_WINDOW_BYTES:
        return text
    needs = f"needs {format_size(size_bytes)}"
    return f"{text}; one stream of {format_rate(REFERENCE_BPS)} over {format_duration(rtt_s)} {needs}"


def _stuck(record: CopyRecord) -> Iterator[str]:
    """Yield the paths that carried much less than the others."""
    carried = {
        path: sum(each.arrived_bytes for each in of_path(record.intervals, path)) for path in record.paths
    }
    if len(carried) < 2:
        return
    for path, size in carried.items():
        others = (sum(carried.values()) - size) / (len(carried) - 1)
        if size < STUCK * others:
            mean = f"the others carried {format_size(others)} each in the mean"
            yield f"all paths alike: path {path} carried {format_size(size)}, and {mean}; see what limits it"


def _of_the_whole(record: CopyRecord) -> Iterator[str]:
    yield from _of_this_host(record)
    if record.congestion_not_had:
        yield record.congestion_not_had
    yield from _of_streams(record)
    yield from _of_both_ends(record)


def _of_this_host(record: CopyRecord) -> Iterator[str]:
    """Yield whether this host, or what it was told, had data wait."""
    limit_bps, moved_bps, core = record.settings.rate_bps, _moved_bps(record), _core_share(record)
    idle = _idle(record)
    if limit_bps and moved_bps is not None and _is_at_the_limit(record):
        limit, moved = format_rate(limit_bps), format_rate(moved_bps)
        yield f"a higher --rate: {limit} was permitted, and data moved at {moved}"
    elif idle >= MUCH and record.files.moved > 1 and record.bytes.moved < SMALL_BYTES * record.files.moved:
        mean = format_size(record.bytes.moved / record.files.moved)
        yield (
            f"larger files: streams had nothing to send for {idle:.0%} of the time, as each of "
            f"{record.files.moved} files has {mean} in the mean; an archive (tar) moves as one"
        )
    elif idle >= MUCH and record.settings.tuner == PAPER:
        yield (
            f"no --tuner {PAPER}: streams had nothing to send for {idle:.0%} of the time, as they end "
            "with each chunk"
        )
    elif idle >= MUCH and core < ONE_CORE and not limit_bps and record.settings.policy != SCAVENGER:
        yield (
            f"a faster source: streams had nothing to send for {idle:.0%} of the time, while mpx took "
            f"{core:.0%} of one core; look at the disk that it reads, for example with iostat -x 1"
        )
    if core >= ONE_CORE and record.duration_s >= LONG_S:
        yield f"more processor: mpx took {core:.0%} of one core in the mean; see what else uses it, with top"


def _is_at_the_limit(record: CopyRecord) -> bool:
    """Whether data moved as fast as --rate permits."""
    limit_bps, moved_bps = record.settings.rate_bps, _moved_bps(record)
    return bool(limit_bps) and moved_bps is not None and moved_bps >= AT_THE_LIMIT * (limit_bps or 0.0)


def _idle(record: CopyRecord) -> float:
    """Return the share of the time in which streams had nothing to send; 0 where that is not known."""
    return mean_share([each for each in record.intervals if each.streams > 0], lambda each: each.idle) or 0.0


def _of_streams(record: CopyRecord) -> Iterator[str]:
    """Yield whether more streams were forbidden, where more would have carried more."""
    settings, full = record.settings, _path_share(record)
    if settings.policy == SCAVENGER:
        yield (
            f"another --policy: with {SCAVENGER} a copy takes only what it finds that nobody else uses, and "
            "it is slow to find it"
        )
        return
    if full is None or _is_at_the_limit(record) or _idle(record) >= MUCH:
        return
    if settings.streams is not None and full < MOSTLY:
        fixed = f"--streams {settings.streams} fixed their number, and the path was not full"
        yield f"streams that mpx may change: {fixed}; leave it out"
    elif settings.max_streams and full < MOSTLY and _most_streams(record) >= settings.max_streams:
        yield f"more streams: --max-streams {settings.max_streams} was reached, and the path was not full"
    shared = _shared(record)
    if settings.policy == FAIR and settings.streams is None and shared >= MUCH and full >= MOSTLY:
        share = "" if settings.share is None else f" (--share {settings.share})"
        yield (
            f"a larger share: the path was full, and others were recognised on it for {shared:.0%} of the "
            f"time; policy fair leaves them theirs{share}, --policy fast would take more, where it may"
        )


def _of_both_ends(record: CopyRecord) -> Iterator[str]:
    """Yield where much time went by before data moved, and after."""
    whole, after_s, began_s = format_duration(record.duration_s), after_data_s(record), record.flow_began_s
    least_s = max(LONG_S, MUCH * record.duration_s)
    if after_s is not None and after_s >= least_s and record.status == "done":
        yield (
            f"a quicker end: {format_duration(after_s)} of {whole} went by after the last data, for "
            "checksums and final names"
        )
    if began_s is not None and began_s >= least_s:
        probed_s = record.settings.probe_first_s
        remedy = (
            "several sources in one mpx copy begin once"
            if probed_s is None or probed_s > began_s
            else f"{format_duration(probed_s)} of them were of --probe-first: leave it out"
        )
        yield (
            f"a quicker start: {format_duration(began_s)} of {whole} went by before streams were opened; "
            f"{remedy}"
        )


def _nothing(record: CopyRecord) -> str:
    """Return why nothing would have been faster, where the report shows it."""
    full = _path_share(record)
    if full is not None and full >= MOSTLY:
        return f"nothing that the report shows: the path was full for {full:.0%} of the time"
    return ""


def _core_share(record: CopyRecord) -> float:
    return (record.cpu_s or 0.0) / record.duration_s if record.duration_s else 0.0


def _moved_bps(record: CopyRecord) -> float | None:
    """Return the goodput of all paths while data moved, without outages; None where it is not known."""
    moving = sorted((each for each in record.intervals if each.arrived_bytes), key=lambda each: each.from_s)
    if not moving:
        return None
    until_s, moving_s = moving[0].from_s, 0.0
    for each in moving:
        silent_s = each.from_s - until_s
        moving_s += max(0.0, each.until_s - until_s) - (silent_s if silent_s >= OUTAGE_S else 0.0)
        until_s = max(until_s, each.until_s)
    return sum(each.arrived_bytes for each in moving) * 8 / moving_s if moving_s > 0 else None


def _path_share(record: CopyRecord) -> float | None:
    """Return the share of the time in which paths were full, in the mean; None where queues are not known."""
    shares: Sequence[float] = [
        share
        for _, moving in _by_path(record)
        if (share := full_share(moving, shortest_rtt_s(record, moving) or 0.0)) is not None
    ]
    return sum(shares) / len(shares) if shares else None


def _most_streams(record: CopyRecord) -> int:
    """Return the most streams that there were at once, over all paths of the last attempt."""
    now: dict[str, int] = dict.fromkeys(record.paths, 0)
    most = 0
    for event in last_attempt(record.events):
        if event.path in now:
            now[event.path] = event.streams
        most = max(most, sum(now.values()))
    return most


def _shared(record: CopyRecord) -> float:
    """Return the share of the time in which somebody else was recognised on a path."""
    whole_s = sum(each.length_s for each in record.intervals)
    shared_s = sum(
        each.length_s for each in record.intervals if each.background not in (None, NOBODY, UNKNOWN)
    )
    return shared_s / whole_s if whole_s else 0.0
