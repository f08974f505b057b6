"""Whether a run is valid: not late, not saturated, and no packet lost but by the emulator.

Judged by the 99th percentile of lateness and by the share of very late frames, not by the largest: nearly
every long run has one late frame, so that rule would keep short runs and reject long ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpx_lab.cpu import ALL, CpuUse
from mpx_lab.emulator.accounting import DirectionStats

VERY_LATE_S = 0.001
BUSY = 0.97  # of all cores together, over one sample
FEWEST_LOOKS = 3


@dataclass(frozen=True)
class Punctual:
    """Limits of a valid run: lateness of frames, skipped datagrams, time without an idle processor."""

    late_p99_s: float = 0.0003
    very_late_share: float = 0.002  # of the frames, over VERY_LATE_S late
    pickup_p99_s: float = 0.001
    given_up_share: float = 0.01  # of the datagrams of a generator
    busy_share: float = 0.05  # of the samples of the processors in which all were BUSY


STRICTLY = Punctual()


@dataclass(frozen=True)
class LinkFacts:
    """What a run is judged by in one direction of a link; counts are frames."""

    name: str
    late_p99_s: float
    late_max_s: float
    very_late_share: float
    pickup_p99_s: float  # how long frames may have waited to be read, before their time stamp
    delivered: int
    dropped_queue: int
    dropped_loss: int
    dropped_elsewhere: int
    oversized: int  # super-packets, which no real link carries
    unaccounted: int  # received, but neither delivered nor dropped nor held
    hindrances: tuple[str, ...]  # what makes its emulator late, in words


@dataclass(frozen=True)
class Validity:
    """The verdict, its reasons, and the figures it rests on."""

    valid: bool
    reasons: tuple[str, ...]
    measures: Mapping[str, Any] = field(default_factory=dict)


def link_facts(name: str, before: DirectionStats, after: DirectionStats) -> LinkFacts:
    """Return what happened in one direction between two statistics of the emulator."""
    late = after.late.since(before.late)
    return LinkFacts(
        name=name,
        late_p99_s=late.quantile_s(0.99),
        late_max_s=late.max_ns / 1e9,
        very_late_share=late.share_above(VERY_LATE_S),
        pickup_p99_s=after.pickup.since(before.pickup).quantile_s(0.99),
        delivered=after.delivered.frames - before.delivered.frames,
        dropped_queue=after.dropped_queue.frames - before.dropped_queue.frames,
        dropped_loss=after.dropped_loss.frames - before.dropped_loss.frames,
        dropped_elsewhere=after.dropped_elsewhere - before.dropped_elsewhere,
        oversized=after.dropped_invalid.frames - before.dropped_invalid.frames,
        unaccounted=after.balance.frames,
        hindrances=after.hindrances,
    )


def judge(
    links: Sequence[LinkFacts],
    cpu: Sequence[CpuUse],
    lost: Mapping[str, int],
    given_up: Mapping[str, float] | None = None,
    punctual: Punctual = STRICTLY,
) -> Validity:
    """Return whether a run counts.

    `cpu` are the samples during the run; `lost` are packets lost on the hosts, by where, as the increase of
    their counters says; `given_up` is the share of its datagrams that each UDP generator did not send.
    """
    unsent = dict(given_up or {})
    reasons = [reason for link in links for reason in _wrong_with(link, punctual)]
    together = [use for use in cpu if use.core == ALL]
    saturated = sum(use.busy >= BUSY for use in together) / len(together) if together else 0.0
    if saturated > punctual.busy_share and len(together) >= FEWEST_LOOKS:
        reasons.append(
            f"saturated: the processors were at least {BUSY:.0%} busy in {saturated:.0%} of the seconds"
        )
    reasons += [f"lost on a host: {count} at {where}" for where, count in sorted(lost.items()) if count]
    reasons += [
        f"given up: {share:.1%} of the datagrams of {flow} were not sent, as its sender was kept waiting"
        for flow, share in sorted(unsent.items())
        if share > punctual.given_up_share
    ]
    measures = {
        "links": [
            {
                "name": link.name,
                "late_p99_s": link.late_p99_s,
                "late_max_s": link.late_max_s,
                "very_late_share": link.very_late_share,
                "pickup_p99_s": link.pickup_p99_s,
                "delivered": link.delivered,
                "dropped_queue": link.dropped_queue,
                "dropped_loss": link.dropped_loss,
                "dropped_elsewhere": link.dropped_elsewhere,
                "hindrances": list(link.hindrances),
            }
            for link in links
        ],
        "cpu_busy": _mean([use.busy for use in together]),
        "cpu_steal": _mean([use.steal for use in together]),
        "cpu_saturated_share": saturated,
        "lost": dict(lost),
        "given_up": unsent,
    }
    return Validity(not reasons, tuple(reasons), measures)


def _wrong_with(link: LinkFacts, punctual: Punctual) -> list[str]:
    reasons = []
    because = "".join(f"; {hindrance}" for hindrance in link.hindrances)
    if link.late_p99_s > punctual.late_p99_s:
        reasons.append(
            f"late: 1% of the frames of {link.name} came over {link.late_p99_s * 1e3:.2f} ms late{because}"
        )
    if link.very_late_share > punctual.very_late_share:
        share, limit_ms = link.very_late_share, VERY_LATE_S * 1e3
        reasons.append(
            f"late: {share:.2%} of the frames of {link.name} came over {limit_ms:g} ms late{because}"
        )
    if link.pickup_p99_s > punctual.pickup_p99_s:
        reasons.append(
            f"read late: 1% of the frames of {link.name} may have waited over "
            f"{link.pickup_p99_s * 1e3:.2f} ms before the emulator read them{because}"
        )
    if link.dropped_elsewhere:
        reasons.append(f"lost on {link.name} outside of its queue: {link.dropped_elsewhere} frames")
    if link.oversized:
        reasons.append(f"super-packets on {link.name}: {link.oversized} frames were longer than its MTU")
    if link.unaccounted:
        reasons.append(f"not accounted for on {link.name}: {link.unaccounted} frames")
    return reasons


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
