"""OPS-F24: active recognition (1-, 3- and 5-NN) over the length of the window, passive 1-NN as the base.

What the row should show: active is better than passive at every length, and by 5 points at least from 20 s on
(the paper: by 7 points at 5 s to 16 points at 50 s).
"""

from collections.abc import Iterable, Mapping, Sequence

from figures import Verdict
from harness import run_row
from mpx_lab.dataset.load import Example
from recognition.paper_cell import CurveRow, Curves, PaperRuns, seconds_of

ACTIVE_KS = (1, 3, 5)
PASSIVE = "passive 1-NN"
CLEARLY, FROM_S = 0.05, 20


class F24(CurveRow):
    """See the head of this file."""

    name = "f24"

    def compute(self, examples: Sequence[Example], effort: str) -> Curves:
        """Three active and one passive curve."""
        return curves_of(examples, effort)


def judge(curves: Mapping[str, Mapping[str, float]]) -> Iterable[Verdict]:
    """Say by how much the bursts help at each length; accuracies by classifier and seconds."""
    for seconds, passive in curves[PASSIVE].items():
        gain = curves["active 1-NN"][seconds] - passive
        limit = CLEARLY if int(seconds) >= FROM_S else 0.0
        asked = f"at least {limit * 100:.0f} points" if limit else "above 0 points"
        kept = gain >= limit if limit else gain > 0
        yield Verdict(f"w = {seconds} s: active less passive {asked}", f"{gain * 100:+.1f}", kept)


def curves_of(examples: Sequence[Example], effort: str) -> Curves:
    """Return the accuracies of F24 and F25."""
    active, passive = (PaperRuns.of(examples, active=so) for so in (True, False))
    found = {w: active.neighbours(w, ACTIVE_KS) for w in seconds_of(effort)}
    curves = {f"active {k}-NN": {w: by_k[k] for w, by_k in found.items()} for k in ACTIVE_KS}
    return {**curves, PASSIVE: {w: passive.neighbours(w, [1])[1] for w in seconds_of(effort)}}


if __name__ == "__main__":
    run_row(F24(), judge)
