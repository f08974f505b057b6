"""Which tuner serves a copy, and with how many streams it begins.

Each is imported once it is needed.
"""

from collections.abc import Mapping

from mpx.choices import FAST, PAPER
from mpx.engine.path_set import DEFAULT_PATH, PathSet, split
from mpx.engine.tuner import START, Decision, Tuner
from mpx.options import CopyOptions
from mpx.transfer.transport import Transport

FAST_STREAMS = 16  # as many as other tools have that take what they can


def first_of_fast(transport: Transport) -> int | None:
    """Return how many streams `fast` begins with; None where that is not special.

    Streams whose congestion control nobody chose share a path by their number.
    """
    options = transport.options
    if options.policy != FAST or transport.plan.congestion is not None or options.initial_streams:
        return None
    return min(FAST_STREAMS, options.max_streams)


def tuners(
    options: CopyOptions,
    known: PathSet | None,
    first: int | None = None,
    least: int | None = None,
    *,
    window_bytes: int | None = None,
) -> dict[tuple[str, ...], Tuner]:
    """Return who decides on the number of streams, by the paths that each is for.

    `known`: what a controller said of these; None: there is one path. `first`: with how many that begins, and
    `least`: below which it never goes, as fewer would have less of a path that others share. `window_bytes`:
    what the socket buffer of a stream holds, for eq. (9) of GridFTP-APT.
    """
    if known:
        return tuners_by_group(options, known, window_bytes)
    tuner = tuner_for(options, first, least, window_bytes)
    return {(DEFAULT_PATH,): tuner} if tuner else {}


def beginning(options: CopyOptions, known: PathSet | None, *, yields: bool) -> list[Decision]:
    """Return how many streams each path begins with, and why."""
    streams = {DEFAULT_PATH: options.streams or first_streams(options)}
    if known:
        streams, why = first_by_path(options, known), "in the ratio of the predictions"
    elif options.streams is not None:
        why = "fixed by --streams"
    else:
        why = "few, as the copy yields to others" if yields else "where the tuner starts"
    return [Decision(path, count, why) for path, count in streams.items()]


def tuner_for(
    options: CopyOptions,
    first: int | None = None,
    least: int | None = None,
    window_bytes: int | None = None,
) -> Tuner | None:
    """Return the tuner that was asked for; None where the number of streams is fixed."""
    if options.streams is not None:
        return None
    if options.tuner == PAPER:
        return _made(options, first_streams(options), window_bytes=window_bytes)
    return _made(options, options.initial_streams or first, least=least or 1)


def tuners_by_group(
    options: CopyOptions, known: PathSet, window_bytes: int | None = None
) -> dict[tuple[str, ...], Tuner]:
    """Return a tuner for each group of paths that share a bottleneck; none where the number is fixed.

    Each begins with what is predicted for its paths, or with its share of what was asked for.
    """
    if options.streams is not None:
        return {}
    predicted = {path.name: path.streams for path in known.paths}
    first = first_by_path(options, known)
    rooms = split(options.max_streams, [sum(predicted[name] for name in group) for group in known.groups])
    return {
        group: _made(
            options, {name: first[name] for name in group}, max(room, len(group)), window_bytes=window_bytes
        )
        for group, room in zip(known.groups, rooms, strict=True)
    }


def _made(
    options: CopyOptions,
    initial: int | Mapping[str, int] | None,
    most_streams: int | None = None,
    *,
    least: int = 1,
    window_bytes: int | None = None,
) -> Tuner:
    """Return a tuner that begins with so many streams (None: with the share)."""
    most = options.max_streams if most_streams is None else most_streams
    if options.tuner == PAPER:
        from mpx.apt_gss import USUAL_WINDOW_BYTES, PaperGss

        return PaperGss(
            START if initial is None else initial,
            options.growth,
            options.chunk_time_s,
            window_bytes or USUAL_WINDOW_BYTES,
            max_streams=most,
        )
    from mpx.tuning.adaptive import AutoTuner

    yields = options.policy != FAST
    return AutoTuner(initial, most, options.rate_bps, options.share, yields=yields, least=least)


def first_by_path(options: CopyOptions, known: PathSet) -> dict[str, int]:
    """Return how many streams each path of a set begins with: as predicted, or in that ratio."""
    weights = [path.streams for path in known.paths]
    total = options.streams or options.initial_streams or min(sum(weights), options.max_streams)
    return dict(zip(known.names, split(max(total, len(weights)), weights), strict=True))


def first_streams(options: CopyOptions) -> int:
    """Return how many streams a tuner starts with; our own with more where it finds the path to be long."""
    return min(options.initial_streams or START, options.max_streams)
