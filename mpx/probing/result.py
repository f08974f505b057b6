"""What a probe found, as a value, as JSON (docs/probe-format.md) and as lines for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from mpx import tcp
from mpx._version import __version__
from mpx.probing.way import Noise
from mpx.rtt_series import Probe, Summary, means_of_trains, summary
from mpx.units import format_duration

SAMPLING_IN_WORDS = {"single": "10 probes a second", "paper": "10 probes 1 ms apart each second"}


class Mix(Protocol):
    """What congestion controls the background is thought to be a mix of."""

    @property
    def name(self) -> str:
        """The class: none, C, B, CC, BC, BB or unknown."""

    @property
    def probability(self) -> float:
        """How likely that is."""

    @property
    def groups(self) -> Mapping[str, float]:
        """How likely each group of classes is."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Which congestion control a transfer over this path should have, and why."""

    congestion: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The record of one `mpx probe`, whole or as far as it came."""

    target: str  # as it was asked for
    address: tcp.Address  # that was probed, with the TCP port that was asked for
    way: str
    reason: str  # why that way
    noise: Noise
    sampling: str  # "single" or "paper"
    window_s: float  # that was asked for
    start_unix_s: float
    duration_s: float
    probes: tuple[Probe, ...]  # those whose fate is known; times since the start
    error: str | None = None  # what ended it early
    mix: Mix | None = None
    decision: Decision | None = None

    @property
    def summary(self) -> Summary:
        """The figures of the probes."""
        return summary(self.probes)

    @property
    def series(self) -> list[Probe]:
        """What a classifier looks at: the probes, or of the paper's sampling the mean of each train."""
        return means_of_trains(self.probes) if self.sampling == "paper" else list(self.probes)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as it stands in the JSON."""
        told = self.summary
        return {
            "mpx": __version__,
            "target": self.target,
            "address": {"host": self.address[0], "port": self.address[1]},
            "mode": "passive",
            "way": {
                "name": self.way,
                "reason": self.reason,
                "noise_s": _rounded(self.noise.rtt_s),
                "noise_is_least": self.noise.is_least,
                "noise_how": self.noise.how,
            },
            "sampling": self.sampling,
            "window_s": self.window_s,
            "start_unix_s": round(self.start_unix_s, 3),
            "duration_s": round(self.duration_s, 3),
            "error": self.error,
            "sent": told.sent,
            "lost": told.lost,
            "loss": round(told.loss, 6),
            "rtt": {
                "min_s": _rounded(told.min_s),
                "median_s": _rounded(told.median_s),
                "p99_s": _rounded(told.p99_s),
            },
            "jitter_s": _rounded(told.jitter_s),
            "mix": mix_as_dict(self.mix),
            "decision": decision_as_dict(self.decision),
            "series": [{"t_s": round(p.t_s, 4), "rtt_s": _rounded(p.rtt_s)} for p in self.series],
        }

    def as_lines(self) -> list[str]:
        """Return the result for people, fit for a ticket."""
        told = self.summary
        began = datetime.fromtimestamp(self.start_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        least = "at least " if self.noise.is_least else ""
        rows = [
            ("target", f"{self.target} at {tcp.show(self.address)}"),
            ("way", f"{self.way}: {self.reason}"),
            ("noise", f"{least}{format_duration(self.noise.rtt_s)} ({self.noise.how})"),
            ("time", f"{began}, {format_duration(self.duration_s)}, {SAMPLING_IN_WORDS[self.sampling]}"),
            ("probes", f"{told.sent} sent, {told.lost} lost"),
            ("loss", f"{told.loss:.2%}"),
            ("RTT", f"min {_ms(told.min_s)}, median {_ms(told.median_s)}, P99 {_ms(told.p99_s)}"),
            ("jitter", _ms(told.jitter_s)),
            *verdict(self.mix, self.decision),
        ]
        return [f"{name:<9} {text}" for name, text in rows]


def verdict(mix: Mix | None, decision: Decision | None) -> list[tuple[str, str]]:
    """Return what is said for people of the mix and of the decision."""
    if mix is None:
        said = "no model"
    else:
        groups = ", ".join(f"{name} {share:.0%}" for name, share in mix.groups.items())
        said = f"{mix.name} ({mix.probability:.0%}; {groups})"
    decided = f"{decision.congestion}: {decision.reason}" if decision else "no model"
    return [("mix", said), ("decision", decided)]


def mix_as_dict(mix: Mix | None) -> dict[str, Any] | None:
    """Return a mix as it stands in the JSON."""
    if mix is None:
        return None
    groups = {name: round(share, 4) for name, share in mix.groups.items()}
    return {"class": mix.name, "probability": round(mix.probability, 4), "groups": groups}


def decision_as_dict(decision: Decision | None) -> dict[str, Any] | None:
    """Return a decision as it stands in the JSON."""
    return {"congestion": decision.congestion, "reason": decision.reason} if decision else None


def _ms(value_s: float | None) -> str:
    return "-" if value_s is None else f"{1000 * value_s:.3f} ms"


def _rounded(value_s: float | None) -> float | None:
    return None if value_s is None else round(value_s, 6)
