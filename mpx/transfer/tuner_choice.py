"""Which tuner serves a copy, and with how many streams it begins.

Each is imported once it is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known before bytes flow; None where nothing is."""

    first: int | None = None  # streams that one path begins with
    least: int | None = (
        None  # below which it never goes, as fewer would have less of a path that others share
    )
    expected: int | None = None  # streams that earlier copies settled on
    window_bytes: int | None = None  # that a socket buffer of ours holds, for eq. (9) of GridFTP-APT


NOTHING_KNOWN = Prior()


def tuners(
    options: CopyOptions, known: PathSet | None, prior: Prior = NOTHING_KNOWN
) -> dict[tuple[str, ...], Tuner]:
    """Return who decides on the number of streams, by the paths that each is for.

    `known`: what a controller said of these; None: there is one path.
    """
    if known:
        return tuners_by_group(options, known, prior)
    tuner = tuner_for(options, prior)
    return {(DEFAULT_PATH,): tuner} if tuner else {}


def beginning(
    options: CopyOptions,
    known: PathSet | None,
    *,
    yields: bool,
    why_fixed: str = "",
    is_tuned: bool = True,
) -> list[Decision]:
    """Return how many streams each path begins with, and why; `why_fixed`: see Transport."""
    streams = {DEFAULT_PATH: options.streams or first_streams(options)}
    if known:
        streams, why = first_by_path(options, known), "in the ratio of the predictions"
    elif options.streams is not None:
        why = why_fixed or "fixed by --streams"
    elif yields:
        why = "few, as the copy yields to others"
    else:
        why = "where the tuner starts" if is_tuned else "as their number is not tuned"
    return [Decision(path, count, why) for path, count in streams.items()]


def tuner_for(options: CopyOptions, prior: Prior = NOTHING_KNOWN) -> Tuner | None:
    """Return the tuner that was asked for; None where the number of streams is fixed."""
    if options.streams is not None:
        return None
    first = first_streams(options) if options.tuner == PAPER else options.initial_streams or prior.first
    return _made(options, first, options.max_streams, prior)


def tuners_by_group(
    options: CopyOptions, known: PathSet, prior: Prior = NOTHING_KNOWN
) -> dict[tuple[str, ...], Tuner]:
    """Return a tuner for each group of paths that share a bottleneck; none where the number is fixed.

    Each begins with what is predicted for its paths, or with its share of what was asked for.
    """
    if options.streams is not None:
        return {}
    predicted = {path.name: path.streams for path in known.paths}
    first = first_by_path(options, known)
    rooms = split(options.max_streams, [sum(predicted[name] for name in group) for group in known.groups])
    apart = Prior(window_bytes=prior.window_bytes)
    return {
        group: _made(options, {name: first[name] for name in group}, max(room, len(group)), apart)
        for group, room in zip(known.groups, rooms, strict=True)
    }


def _made(
    options: CopyOptions, initial: int | Mapping[str, int] | None, most_streams: int, prior: Prior
) -> Tuner:
    """Return a tuner that begins with so many streams (None: with the share)."""
    if options.tuner == PAPER:
        from mpx.apt_gss import USUAL_WINDOW_BYTES, PaperGss

        return PaperGss(
            START if initial is None else initial,
            options.growth,
            options.chunk_time_s,
            prior.window_bytes or USUAL_WINDOW_BYTES,
            max_streams=most_streams,
        )
    from mpx.tuning.adaptive import AutoTuner

    return AutoTuner(
        initial,
        most_streams,
        options.rate_bps,
        options.share,
        yields=options.policy != FAST,
        least=prior.least or 1,
        expected=prior.expected,
    )


def first_by_path(options: CopyOptions, known: PathSet) -> dict[str, int]:
    """Return how many streams each path of a set begins with: as predicted, or in that ratio."""
    weights = [path.streams for path in known.paths]
    total = options.streams or options.initial_streams or min(sum(weights), options.max_streams)
    return dict(zip(known.names, split(max(total, len(weights)), weights), strict=True))


def first_streams(options: CopyOptions) -> int:
    """Return how many streams a tuner starts with; our own with more where it finds the path to be long."""
    return min(options.initial_streams or START, options.max_streams)
