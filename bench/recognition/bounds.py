"""Where recognition fails: which mixes overlap, on which links, and what would help.

If the links were known (split by run), the windows longer, or the base RTT known for sure, how much better
would it be? What none of these mends is in the series themselves.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from mpx_train.card import scores_of
from mpx_train.learn import Judged
from mpx_train.scores import Scores, worst_pairs
from numpy.typing import NDArray

from mpx.mix import MIXES

QUEUES_BDP = (0.0, 0.5, 1.0, 2.0, np.inf)
RTTS_S = (0.0, 0.02, 0.05, 0.1, np.inf)


def place_lines(judged: Judged) -> list[str]:
    """Return a table of accuracy by queue and by round-trip time, with what is confused most there."""
    is_known = np.isin(judged.windows.mix, MIXES)
    scores = scores_of(judged)
    queue, rtt = judged.windows.queue_bdp[is_known], judged.windows.rtt_s[is_known]
    lines = ["| links | windows | six | three | most confused |", "|---|---|---|---|---|"]
    for low, high in pairwise(QUEUES_BDP):
        lines += _line(scores, (queue >= low) & (queue < high), f"queue {low:g} to {high:g} BDP")
    for low, high in pairwise(RTTS_S):
        lines += _line(scores, (rtt >= low) & (rtt < high), f"RTT {low * 1e3:g} to {high * 1e3:g} ms")
    return lines


def _line(scores: Scores, rows: NDArray[np.bool_], name: str) -> list[str]:
    if not rows.any():
        return []
    some = scores.where(rows)
    pairs = ", ".join(f"{a} for {b} {share:.0%}" for a, b, share in worst_pairs(some.confusion(), 3))
    return [f"| {name} | {rows.sum()} | {some.six.mean:.3f} | {some.three.mean:.3f} | {pairs} |"]


def whole_runs(judged: Judged) -> Scores:
    """Return what is said of whole runs, if the windows of each are taken together."""
    is_known = np.isin(judged.windows.mix, MIXES)
    runs, mixes = judged.windows.run[is_known], judged.windows.mix[is_known]
    shares, fold = judged.shares[is_known, : len(MIXES)], judged.fold[is_known]
    names, first, of = np.unique(runs, return_index=True, return_inverse=True)
    together = np.zeros((len(names), len(MIXES)))
    np.add.at(together, of, np.log(shares + 0.01))
    return Scores(mixes[first], np.array(MIXES)[together.argmax(axis=1)], fold[first])


def overlap_lines(all_scores: Sequence[tuple[str, Scores]]) -> list[str]:
    """Return a table of what would help."""
    lines = ["| if | six | three | BBR there or not |", "|---|---|---|---|"]
    lines += [f"| {name} | {of.six} | {of.three} | {of.two} |" for name, of in all_scores]
    return lines
