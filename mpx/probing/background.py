"""The background of a probed path, by its round-trip times, and the congestion control of a copy over it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mpx import ops_classifier
from mpx.choices import SCAVENGER
from mpx.errors import UsageError
from mpx.net import congestion_control
from mpx.recognition.accumulated import Accumulated, Decided, accumulated
from mpx.recognition.classifier import Classifier
from mpx.recognition.mix import ANY_BBR, CUBIC_ONLY, GROUP_OF, GROUPS, NOBODY, UNKNOWN, Mix
from mpx.recognition.observation import LEAST_SWING_S, PASSIVE
from mpx.recognition.policy import before_anything_is_known, permitted, wanted
from mpx.recognition.switching import SURE, decided_together, requirement
from mpx.rtt.series import Probe, p99
from mpx.units import counted, format_duration, format_rate

_IN_WORDS = {
    "none": "no other traffic (none)",
    "C": "one CUBIC stream (C)",
    "B": "one BBR stream (B)",
    "CC": "two CUBIC streams (CC)",
    "BC": "a BBR and a CUBIC stream (BC)",
    "BB": "two BBR streams (BB)",
}
_GROUP_IN_WORDS = {NOBODY: "no other traffic", CUBIC_ONLY: "CUBIC only", ANY_BBR: "BBR, perhaps with CUBIC"}
_STEADY = 5  # samples, 0.5 s: a shorter peak may be a burst of acknowledgements


@dataclass(frozen=True, slots=True)
class CongestionChoice:
    """The congestion control that a copy from here would use, and why."""

    policy: str
    congestion: str | None  # None: the kernel's own choice, as nothing may be chosen
    reason: str

    def in_words(self) -> str:
        """Return it as text."""
        return f"{self.congestion or 'the default of the kernel'} ({self.policy}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The bottleneck as bursts show it; the share of other traffic is not included."""

    rate_bps: float  # payload, the most that the bursts carried over half a second
    queue_s: float  # longest queueing delay
    dropped: bool  # whether the queue overflowed: if not, it may hold more than that

    @property
    def is_full(self) -> bool:
        """Whether the bursts filled it, so that the rate is what it carries."""
        return self.dropped or self.queue_s > LEAST_SWING_S

    def as_dict(self) -> dict[str, Any]:
        """Return it as in the JSON."""
        return {
            "rate_bps": round(self.rate_bps),
            "queue_s": round(self.queue_s, 6),
            "queue_dropped": self.dropped,
        }

    def in_words(self) -> str:
        """Return it as text."""
        more = "" if self.dropped else "at least "
        return f"at least {format_rate(self.rate_bps)}; its queue holds {more}{format_duration(self.queue_s)}"


@dataclass(frozen=True, slots=True)
class ModelUsed:
    """The model that was asked."""

    classifier: str  # of choices.TRAINABLE
    folder: str  # as the user names it, empty for one that came with mpx

    def as_dict(self) -> dict[str, Any]:
        """Return it as in the JSON."""
        return {"name": self.classifier, "model": self.folder or None}


@dataclass(frozen=True, slots=True)
class PathBackground:
    """The background of a path; `mix` is None where it is not known, and `trouble` says why."""

    mix: Mix | None
    trouble: str
    decision: CongestionChoice
    base_s: float | None = None  # the shortest round trip
    model: ModelUsed | None = None  # None: none was asked
    evidence: Accumulated | None = None  # what `mix` comes from

    def in_words(self) -> str:
        """Return it as text."""
        if self.mix is None:
            return f"not known: {self.trouble}"
        groups = ", ".join(f"{group} {share:.0%}" for group, share in self.mix.groups.items())
        if why := _too_short(self.mix, self.base_s):
            return f"unknown: {why} (nearest: {groups})"
        if self.mix.name == UNKNOWN:
            return f"unknown: unlike all training data (nearest: {groups})"
        one = f"{_IN_WORDS[self.mix.name]}, {self.mix.probability:.0%}"
        if GROUP_OF[self.mix.name] == self.mix.group:
            return f"{one} ({groups})"
        # Two mixes of a group can be likelier together than the likeliest one, and the group decides.
        group = _GROUP_IN_WORDS[self.mix.group]
        return f"{group}, {self.mix.groups[self.mix.group]:.0%} ({groups}; most probable single mix {one})"

    def evidence_in_words(self) -> str:
        """Return what was decided, and after how long, as text; empty where nothing was read."""
        if self.evidence is None:
            return ""
        read = counted(self.evidence.readings, "reading")
        if self.evidence.group is None:
            return f"{read}: undecided"
        group = f"{self.evidence.group.name} decided after {format_duration(self.evidence.group.after_s)}"
        one = self.evidence.one
        more = f"{one.name} after {format_duration(one.after_s)}" if one else "the mix undecided"
        return f"{read}: {group}, {more}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as in the JSON (docs/probe-format.md)."""
        return {
            "mix": self.mix
            and {
                "class": self.mix.name,
                "probability": round(self.mix.probability, 4),
                "group": self.mix.group,
                "groups": {group: round(self.mix.groups[group], 4) for group in GROUPS},
            },
            "mix_trouble": self.trouble or None,
            "evidence": self.evidence
            and {
                "readings": self.evidence.readings,
                "group": _decided(self.evidence.group),
                "class": _decided(self.evidence.one),
            },
            "classifier": self.model and self.model.as_dict(),
            "decision": {
                "policy": self.decision.policy,
                "congestion": self.decision.congestion,
                "reason": self.decision.reason,
            },
        }


def background(
    series: Sequence[Probe],
    policy: str,
    kind: str = PASSIVE,
    goodput: Sequence[tuple[float, float]] | None = None,
    *,
    load: Callable[[], Classifier] = ops_classifier.load,
    why_not: Callable[[str], str] = congestion_control.why_not_congestion,
    why_not_open: Callable[[str], str] | None = None,
) -> PathBackground:
    """Classify the background from ten probes a second, as `kind` has them: evenly, beside bursts, in trains.

    `goodput` is that of the bursts, on the clock of the probes; `why_not` and `why_not_open` as for
    `congestion_plan.plan`.
    """
    evidence, trouble, model = _recognised(load, series, kind, goodput)
    mix = evidence.mix if evidence else None
    base_s = min((probe.rtt_s for probe in series if probe.rtt_s is not None), default=None)
    decision = _decision(mix, policy, why_not, why_not_open or why_not, base_s)
    return PathBackground(mix, trouble, decision, base_s, model, evidence)


def unrecognised(
    trouble: str, policy: str, why_not: Callable[[str], str] = congestion_control.why_not_congestion
) -> PathBackground:
    """Return an unknown background and its decision; `why_not` as for `congestion_plan.plan`."""
    return PathBackground(None, trouble, _decision(None, policy, why_not, why_not, None))


def bottleneck(
    series: Sequence[Probe], delivered: Sequence[tuple[float, float]], retransmits: int
) -> Bottleneck | None:
    """Return the bottleneck as bursts show it, None where nothing arrived.

    `delivered` is what had arrived, not what was acknowledged: when a lost segment is repaired after a
    second, all data of that second is acknowledged at once, which would be several times the rate of the
    link.
    """
    rates = [bps for _, bps in delivered]
    steady = [sum(rates[i : i + _STEADY]) / _STEADY for i in range(len(rates) - _STEADY + 1)]
    rtts = [probe.rtt_s for probe in series if probe.rtt_s is not None]
    if not rtts or max(steady, default=0.0) <= 0:
        return None
    return Bottleneck(max(steady), p99(rtts) - min(rtts), retransmits > 0)


def _recognised(
    load: Callable[[], Classifier],
    series: Sequence[Probe],
    kind: str,
    goodput: Sequence[tuple[float, float]] | None,
) -> tuple[Accumulated | None, str, ModelUsed | None]:
    answered = [probe.rtt_s for probe in series if probe.rtt_s is not None]
    if series and not answered:
        return None, "no probe was answered", None
    used = None
    try:
        model = load()
        used = ModelUsed(model.name, ops_classifier.named_model())
        window_s = model.window_s(kind)
        if len(series) < 10 * window_s - 1:
            return None, f"{window_s:g} s of probes are needed at least", used
        return accumulated(model, series, min(answered), goodput, kind=kind), "", used
    except UsageError as error:
        return None, str(error), used
    except Exception as error:  # whatever a broken installation of numpy raises; the measurement is not lost
        return None, f"{type(error).__name__}: {error}", used


def _decided(found: Decided | None) -> dict[str, Any] | None:
    return {"name": found.name, "after_s": round(found.after_s, 3)} if found else None


def _too_short(mix: Mix, base_s: float | None) -> str:
    """Return that round trips are too short for the classifier where that is why it cannot tell, else ""."""
    if mix.name != UNKNOWN or base_s is None or base_s >= LEAST_SWING_S:
        return ""
    least = format_duration(LEAST_SWING_S)
    return f"the RTT of {format_duration(base_s)} is too short to tell; at least {least} is needed"


def _decision(
    mix: Mix | None,
    policy: str,
    why_not: Callable[[str], str],
    why_not_open: Callable[[str], str],
    base_s: float | None,
) -> CongestionChoice:
    """Return what a copy would do if every reading were this one."""
    found = begins = permitted(before_anything_is_known(policy), why_not)

    def why_not_then(name: str) -> str:
        return "" if name == begins.taken else why_not_open(name)

    if mix is None or mix.name == UNKNOWN:
        because = "the background is not known"
        if mix and (why := _too_short(mix, base_s)):
            because += f": {why}"
    elif (required := requirement(policy, mix, why_not_then)).probability < SURE:
        because = f"the background is not certain ({mix.group}, {mix.groups[mix.group]:.0%})"
    else:
        found = permitted(wanted(policy, mix.group), why_not_then)
        because = decided_together(mix, required, SURE) or f"the background is probably {mix.group}"
    if policy == SCAVENGER:
        because += "; paced, so that it leaves no queue"
    if found.refused:
        because += f"; {found.refused}"
    return CongestionChoice(policy, found.taken, because)
