"""The result of a probe: as a value, as JSON (docs/probe-format.md) and as text."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mpx._version import __version__
from mpx.errors import HungUp, Interrupted, Terminated
from mpx.net import tcp
from mpx.probing.background import Bottleneck, PathBackground
from mpx.rtt.method import LOST_AFTER_S, Kind, Noise
from mpx.rtt.schedule import TRAIN_INTERVAL_S
from mpx.rtt.series import Probe, Summary, resampled, summary
from mpx.units import format_duration

_SAMPLING_IN_WORDS = {"single": "10 probes a second", "paper": "10 probes 1 ms apart each second"}
_PROFILE_IN_WORDS = {
    "short": "bursts (CUBIC 2 s, BBR 2 s, nothing 1 s)",
    "paper": "bursts (CUBIC, BBR, CUBIC, nothing, 5 s each)",
}
_JITTER_IN_WORDS = {"single": "", "paper": " (between the means of each ten)"}


@dataclass(frozen=True, slots=True)
class WayTaken:
    """How it was probed."""

    kind: Kind
    name: str
    reason: str  # why this method
    noise: Noise
    trouble: str = ""  # what went wrong last, where probes were lost; empty if answers were only missing
    sees_loss: bool = True  # False: TCP hides it, and only `retransmissions` is known
    retransmissions: int | None = None  # by this host's TCP meanwhile; None where not counted


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one `mpx probe`, complete or until it ended early."""

    target: str  # as it was asked for
    address: tcp.Address  # that was probed, with the TCP port that was asked for
    way: WayTaken
    sampling: str  # "single" or "paper"
    profile: str  # of the bursts, empty where nothing but probes was sent
    window_s: float  # that was asked for
    start_unix_s: float
    duration_s: float
    probes: tuple[Probe, ...]  # those answered or lost; times since the start
    background: PathBackground
    goodput: tuple[tuple[float, float], ...] = ()  # of the bursts: seconds since the start, bit/s until then
    bottleneck: Bottleneck | None = None
    not_sent: int = 0  # this host was busy when they were due
    exit_code: int = 0
    error: str | None = None  # what ended it early

    @property
    def status(self) -> str:
        """How it ended: done, failed or interrupted."""
        if not self.exit_code:
            return "done"
        ends = {kind.exit_code for kind in (Interrupted, Terminated, HungUp)}
        return "interrupted" if self.exit_code in ends else "failed"

    @property
    def mode(self) -> str:
        """Whether data was sent beside the probes: active or passive."""
        return "active" if self.profile else "passive"

    @property
    def series(self) -> list[Probe]:
        """The series for a classifier: the probes, or with the paper's sampling the mean of each train."""
        if self.sampling == "single" or not self.probes:
            return list(self.probes)
        first_s = min(probe.t_s for probe in self.probes)
        means = resampled(self.probes, TRAIN_INTERVAL_S)
        return [Probe(first_s + i * TRAIN_INTERVAL_S, rtt_s) for i, rtt_s in enumerate(means)]

    @property
    def summary(self) -> Summary:
        """The figures of the probes, with the jitter of the series: within a train there is hardly any."""
        return replace(summary(self.probes), jitter_s=summary(self.series).jitter_s)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as in the JSON."""
        figures, way = self.summary, self.way
        return {
            "mpx": __version__,
            "status": self.status,
            "exit_code": self.exit_code,
            "error": self.error,
            "target": self.target,
            "address": {"host": self.address[0], "port": self.address[1]},
            "mode": self.mode,
            "profile": self.profile or None,
            "way": {
                "kind": way.kind,
                "name": way.name,
                "reason": way.reason,
                "trouble": way.trouble or None,
                "retransmissions": way.retransmissions,
                "noise_s": _rounded(way.noise.rtt_s),
                "noise_is_estimate": way.noise.is_estimate,
                "noise_how": way.noise.how,
            },
            "sampling": self.sampling,
            "window_s": self.window_s,
            "start_unix_s": round(self.start_unix_s, 3),
            "duration_s": round(self.duration_s, 3),
            "sent": figures.sent,
            "lost": figures.lost,
            "not_sent": self.not_sent,
            "loss": round(figures.loss, 6) if way.sees_loss else None,
            "rtt": {
                "min_s": _rounded(figures.min_s),
                "median_s": _rounded(figures.median_s),
                "p99_s": _rounded(figures.p99_s),
            },
            "jitter_s": _rounded(figures.jitter_s),
            **self.background.as_dict(),
            "bottleneck": self.bottleneck and self.bottleneck.as_dict(),
            "goodput": [{"t_s": round(t_s, 4), "bps": round(bps)} for t_s, bps in self.goodput],
            "series": [{"t_s": round(p.t_s, 4), "rtt_s": _rounded(p.rtt_s)} for p in self.series],
        }

    def as_lines(self) -> list[str]:
        """Return the result as lines of text."""
        figures = self.summary
        began = datetime.fromtimestamp(self.start_unix_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        rows = [
            ("target", f"{self.target} at {tcp.show(self.address)}"),
            ("way", f"{self.way.name}: {self.way.reason}"),
            ("noise", _noise_in_words(self.way.noise)),
            ("time", f"{began}, {format_duration(self.duration_s)}, {self._sent_in_words()}"),
            ("probes", self._probes_in_words(figures)),
            ("loss", self._loss_in_words(figures)),
            ("RTT", f"min {_ms(figures.min_s)}, median {_ms(figures.median_s)}, P99 {_ms(figures.p99_s)}"),
            ("jitter", _ms(figures.jitter_s) + _JITTER_IN_WORDS[self.sampling]),
        ]
        if self.profile:
            rows.append(
                (
                    "link",
                    self.bottleneck.in_words() if self.bottleneck else "no data of the bursts arrived",
                )
            )
        rows.append(("mix", self.background.in_words()))
        if evidence := self.background.evidence_in_words():
            rows.append(("evidence", evidence))
        rows.append(("decision", self.background.decision.in_words()))
        return [f"{name:<9} {text}" for name, text in rows]

    def _sent_in_words(self) -> str:
        profile = _PROFILE_IN_WORDS.get(self.profile)
        return _SAMPLING_IN_WORDS[self.sampling] + (f", beside {profile}" if profile else "")

    def _probes_in_words(self, figures: Summary) -> str:
        lost = "lost" if self.way.sees_loss else f"without an answer within {LOST_AFTER_S:g} s"
        why = f" ({self.way.trouble})" if self.way.trouble else ""
        not_sent = f"; {self.not_sent} not sent, as this host was busy" if self.not_sent else ""
        return f"{figures.sent} sent, {figures.lost} {lost}{why}{not_sent}"

    def _loss_in_words(self, figures: Summary) -> str:
        if self.way.sees_loss:
            return f"{figures.loss:.2%}"
        again = self.way.retransmissions
        return "not seen over TCP" + ("" if again is None else f" (retransmissions from here: {again})")


def _noise_in_words(noise: Noise) -> str:
    if noise.rtt_s is None:
        return f"not known ({noise.how})"
    return f"{'about ' if noise.is_estimate else ''}{format_duration(noise.rtt_s)} ({noise.how})"


def _ms(value_s: float | None) -> str:
    return "-" if value_s is None else f"{1000 * value_s:.3f} ms"


def _rounded(value_s: float | None) -> float | None:
    return None if value_s is None else round(value_s, 6)
