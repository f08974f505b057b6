"""Evidence of the background, added up over readings: a test that goes on until it is sure enough.

The sum of log likelihoods of a sequential test (Wald, Annals of Mathematical Statistics 16, 1945; of several
hypotheses Baum and Veeravalli, IEEE Transactions on Information Theory 40, 1994, equation 4) would be far too
sure here: readings share most of their probes, and a link that is read wrongly once is read wrongly again. So
each further reading counts for a part only (a temper), older ones fade, and the thresholds are not Wald's but
those that kept their error on links that nothing was learnt from (bench/ops_sequential.py).
"""

import math
from dataclasses import dataclass, replace

from mpx.recognition.mix import UNKNOWN, Mix, likeliest

LEAST_SHARE = 1e-4  # of a mix in a reading: none is impossible
CONTRADICTED_S = 12.0  # readings of windows that share no probe contradict what they follow: it has changed


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some readings say together."""

    sums: tuple[float, ...]  # of logarithms of probabilities of MIXES, tempered and faded
    known: float  # weight of readings that were one of MIXES, faded
    unknown: float  # the same of those that were not
    last: Mix  # the latest reading
    spans_s: float  # from the first reading to the last
    rival: "Evidence | None" = None  # the readings since one that contradicts the others, where all do

    @property
    def mix(self) -> Mix:
        """The likeliest mix; unknown where most readings were, with the probability of the latest."""
        if self.unknown >= self.known:
            novelty = self.last.probability if self.last.name == UNKNOWN else 1.0
            return Mix(UNKNOWN, novelty, self._shares)
        return likeliest(self._shares)

    @property
    def _shares(self) -> tuple[float, ...]:
        most = max(self.sums)
        odds = [math.exp(each - most) for each in self.sums]
        return tuple(each / sum(odds) for each in odds)


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """How readings are added up; the defaults make the true mixes of unseen links likeliest."""

    temper: float = 0.1  # the part of a further reading that counts, for each second since the one before
    fade: float = 0.95  # what is left of the sum after a second
    unknown: float = 0.2  # the part that counts of a reading that is unknown

    def after(self, evidence: Evidence | None, reading: Mix, step_s: float) -> Evidence:
        """Return the evidence with one more reading, `step_s` seconds after the one before (None: the first).

        Where readings of other groups have followed for CONTRADICTED_S, only these count.
        """
        if evidence is None:
            return self._first(reading)
        added = self._added(evidence, reading, step_s)
        if reading.name == UNKNOWN:
            return added
        if reading.group == evidence.mix.group:
            return replace(added, rival=None)
        rival = self.after(evidence.rival, reading, step_s) if evidence.rival else self._first(reading)
        return replace(rival, rival=None) if rival.spans_s >= CONTRADICTED_S else replace(added, rival=rival)

    def _first(self, reading: Mix) -> Evidence:
        is_unknown = reading.name == UNKNOWN
        return Evidence(_logs(reading), float(not is_unknown), float(is_unknown), reading, 0.0)

    def _added(self, evidence: Evidence, reading: Mix, step_s: float) -> Evidence:
        is_unknown = reading.name == UNKNOWN
        left, weight = self.fade**step_s, min(1.0, self.temper * step_s)
        counts = weight * (self.unknown if is_unknown else 1.0)
        sums = tuple(
            left * before + counts * now for before, now in zip(evidence.sums, _logs(reading), strict=True)
        )
        return Evidence(
            sums,
            left * evidence.known + weight * (not is_unknown),
            left * evidence.unknown + weight * is_unknown,
            reading,
            evidence.spans_s + step_s,
            evidence.rival,
        )


def _logs(reading: Mix) -> tuple[float, ...]:
    return tuple(math.log(max(share, LEAST_SHARE)) for share in reading.shares)
