"""Which tuner serves a copy."""

from mpx.apt_auto import START, AutoTuner
from mpx.apt_gss import PaperGss
from mpx.options import CopyOptions
from mpx.tuner import Tuner


def tuner_for(options: CopyOptions) -> Tuner | None:
    """Return the tuner that was asked for; None where the number of streams is fixed."""
    if options.streams is not None:
        return None
    if options.tuner == "paper":
        initial = first_streams(options)
        return PaperGss(initial, options.growth, options.chunk_time_s, max_streams=options.max_streams)
    return AutoTuner(options.initial_streams, options.max_streams)


def first_streams(options: CopyOptions) -> int:
    """Return how many streams a tuner starts with; our own with more where it finds the path to be long."""
    return min(options.initial_streams or START, options.max_streams)
