"""The background of a path by all of its probes: a reading of each window, and what they decide together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpx.recognition.classifier import Classifier
from mpx.recognition.evidence import Evidence, EvidenceRule
from mpx.recognition.mix import UNKNOWN, Mix
from mpx.recognition.observation import PASSIVE, period_s
from mpx.rtt.schedule import SINGLE_INTERVAL_S
from mpx.rtt.series import Probe

WINDOW_S, STEP_S = 10.0, 1.0  # of a reading, and from one to the next
SLACK_S = 0.5  # more than a window is read from, as probes are not sent at even times
EXACT_S = 1e-6  # less than between two probes: sums of times are not exact
KEPT_S = 120.0  # what came before is not read: it would have faded
SURE = 0.95  # the least probability that decides; of groups 1 % are wrong then, of single mixes 5 %


@dataclass(frozen=True, slots=True)
class Decided:
    """A group or a mix that is decided, and the seconds of probes that it took."""

    name: str
    after_s: float


@dataclass(frozen=True, slots=True)
class Accumulated:
    """What all probes say of the background."""

    mix: Mix
    readings: int
    group: Decided | None  # None: undecided at the end, as the other
    one: Decided | None  # of the six mixes


def accumulated(
    model: Classifier,
    series: Sequence[Probe],
    base_s: float,
    goodput: Sequence[tuple[float, float]] | None = None,
    *,
    kind: str = PASSIVE,
    rule: EvidenceRule = EvidenceRule(),  # noqa: B008 it cannot be changed
) -> Accumulated:
    """Return what windows of a series say together; a series of one window or less is one reading.

    Arguments as those of Model.classify, and raises UsageError as that does. The last two minutes are read.
    """
    evidence: Evidence | None = None
    group: Decided | None = None
    one: Decided | None = None
    readings, before_s, first_s = 0, 0.0, min((probe.t_s for probe in series), default=0.0)
    for end_s, window in windows(series, max(WINDOW_S, model.window_s(kind)), period_s(kind) or STEP_S):
        reading = model.classify(window, base_s, goodput, kind=kind)
        evidence = rule.after(evidence, reading, end_s - before_s)
        mix = evidence.mix if readings else reading
        readings, before_s = readings + 1, end_s
        after_s = end_s - first_s + SINGLE_INTERVAL_S
        group = _still(group, mix.group, _is_sure(mix, mix.groups[mix.group]), after_s)
        one = _still(one, mix.name, _is_sure(mix, mix.probability), after_s)
    return Accumulated(mix, readings, group, one)


def windows(
    series: Sequence[Probe], window_s: float, step_s: float
) -> Iterator[tuple[float, Sequence[Probe]]]:
    """Yield the time of the last probe of each window and its probes, the last window at the series' end."""
    times_s = [probe.t_s for probe in series]
    first_s, last_s = min(times_s, default=0.0), max(times_s, default=0.0)
    spare_s = min(last_s - first_s, KEPT_S) - window_s + SINGLE_INTERVAL_S
    for back in range(max(0, int(spare_s / step_s + EXACT_S)), -1, -1):
        end_s = last_s - back * step_s
        from_s = end_s - window_s - SLACK_S
        yield end_s, [probe for probe in series if from_s < probe.t_s <= end_s + EXACT_S]


def _still(before: Decided | None, name: str, is_sure: bool, after_s: float) -> Decided | None:
    """Return what is decided now, and since when it has been."""
    if not is_sure:
        return None
    return before if before and before.name == name else Decided(name, after_s)


def _is_sure(mix: Mix, share: float) -> bool:
    return mix.name != UNKNOWN and share >= SURE
