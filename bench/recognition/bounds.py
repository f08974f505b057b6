"""Where recognition fails: which mixes overlap, on which links, and what would help.

How much better it would be if the links were known (split by run), the windows longer, or the base RTT known
exactly. Errors that remain in all of these are in the series themselves.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from mpx_train.crossfit import Heard
from mpx_train.figures import likeliest_scores
from mpx_train.scores import Scores, worst_pairs
from numpy.typing import NDArray

from mpx.recognition.mix import MIXES

QUEUES_BDP = (0.0, 0.5, 1.0, 2.0, np.inf)
RTTS_S = (0.0, 0.02, 0.05, 0.1, np.inf)


def place_lines(known: Heard) -> list[str]:
    """Return a table of accuracy by queue and by round-trip time, with what is confused most there."""
    scores, windows = likeliest_scores(known), known.judged.windows
    lines = ["| links | windows | six | three | most confused |", "|---|---|---|---|---|"]
    for low, high in pairwise(QUEUES_BDP):
        rows = (windows.queue_bdp >= low) & (windows.queue_bdp < high)
        lines += _line(scores, rows, f"queue {low:g} to {high:g} BDP")
    for low, high in pairwise(RTTS_S):
        rows = (windows.rtt_s >= low) & (windows.rtt_s < high)
        lines += _line(scores, rows, f"RTT {low * 1e3:g} to {high * 1e3:g} ms")
    return lines


def stream_lines(known: Heard) -> list[str]:
    """Return the same by how many streams of ours were there."""
    scores, streams = likeliest_scores(known), known.judged.windows.windows.streams
    assert streams is not None  # windows of a dataset say so
    lines = ["| our streams | windows | six | three | most confused |", "|---|---|---|---|---|"]
    for count in np.unique(streams):
        lines += _line(scores, streams == count, f"{count:.0f}")
    return lines


def _line(scores: Scores, rows: NDArray[np.bool_], name: str) -> list[str]:
    if not rows.any():
        return []
    some = scores.where(rows)
    pairs = ", ".join(f"{a} for {b} {share:.0%}" for a, b, share in worst_pairs(some.confusion(), 3))
    return [f"| {name} | {rows.sum()} | {some.six.mean:.3f} | {some.three.mean:.3f} | {pairs} |"]


def whole_runs(known: Heard) -> Scores:
    """Return what is said of whole runs, if the windows of each are taken together."""
    names, first, of = np.unique(known.judged.windows.run, return_index=True, return_inverse=True)
    together = np.zeros((len(names), len(MIXES)))
    np.add.at(together, of, np.log(known.probabilities + 0.01))
    said = np.array(MIXES)[together.argmax(axis=1)]
    return Scores(known.judged.mix[first], said, known.judged.fold[first])


def overlap_lines(all_scores: Sequence[tuple[str, Scores]]) -> list[str]:
    """Return a table of what would help."""
    lines = ["| if | six | three | BBR there or not |", "|---|---|---|---|"]
    lines += [f"| {name} | {of.six} | {of.three} | {of.two} |" for name, of in all_scores]
    return lines
