"""What the paper's classifier compares and counts (OPS, section 5.4): samples, one a second, and votes.

The classifier itself is mpx.ops_classifier.NearestNeighbours; distances are those of dtw.py.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpx.recognition.windows import FEWEST_ANSWERS, Floats
from mpx.rtt.series import Probe, resampled

SAMPLE_S = 1.0
Texts = NDArray[np.str_]


def samples_ms(series: Sequence[Probe]) -> Floats:
    """Return the paper's samples: round-trip times in milliseconds, one a second.

    A sample that was lost repeats the one before it, at the beginning the one after it. Returns a single zero
    where nothing was answered.
    """
    found = np.array([np.nan if rtt_s is None else rtt_s * 1e3 for rtt_s in resampled(series, SAMPLE_S)])
    known = np.flatnonzero(~np.isnan(found))
    if not len(known):
        return np.zeros(1)
    before = np.searchsorted(known, np.arange(len(found)), side="right") - 1
    return np.asarray(found[known[np.maximum(before, 0)]])


def last_window_ms(series: Sequence[Probe], seconds: int) -> Floats | None:
    """Return the last samples of a series; None where it is too short or most of it was lost."""
    samples = samples_ms(series)
    if len(samples) < seconds:
        return None
    last = resampled(series, SAMPLE_S)[-seconds:]
    return samples[-seconds:] if sum(each is not None for each in last) >= FEWEST_ANSWERS * seconds else None


def votes(distances: Floats, mixes: Texts, k: int) -> tuple[Texts, NDArray[np.intp]]:
    """Return the known mixes by name, and for each row of `distances` how many of the k nearest each has."""
    names, numbers = np.unique(mixes, return_inverse=True)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return names, np.stack([(numbers[nearest] == each).sum(axis=1) for each in range(len(names))], axis=1)


def vote(distances: Floats, mixes: Texts, k: int) -> Texts:
    """Return the mix of most of the k nearest for each row of `distances`.

    A tie goes to the mix that comes first by name, as in tslearn.
    """
    names, counts = votes(distances, mixes, k)
    return np.asarray(names[counts.argmax(axis=1)])
