"""Measures the lab's link emulator: rate, delay and its error, a full queue, several links, the highest rate.

    python bench/lab_fidelity.py [--only PART] [--runs N] [--seconds S] [--figure FILE]     (root)

The link has 300 Mbit/s, 64 ms each way and a queue of one BDP unless said otherwise. Rates are those of
frame bytes, as the receiver counted them (UDP) or the kernel behind the link (TCP). `late` is the emulator's
own: delivered after due. `error` is independent of it: stamped UDP frames, the sender's clock before the send
and the kernel's when the frame came out, less what a perfect link would have taken.

A run is valid when every frame is accounted for, none was lost but at the tail of the queue, it carried 99 %
of what there was to carry, and the P99 of `late` is at most 0.3 ms. A line for each limit, which every valid
run has to keep: kept or NOT kept / limit / measured. Exits 1 if one was not kept.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from figures import Spread, Verdict, machine
from harness import command, require_root, run
from lab_load import FULL_UDP_BYTES, IDLE_S, Arrivals, Running, fill_with_tcp, receive_udp, send_udp
from lab_pair import Pair
from mpx_lab.emulator.accounting import DirectionStats, Tally
from mpx_lab.shape import Shape
from mpx_lab.validity import STRICTLY

MBIT = 1_000_000
RATE_BPS = 300 * MBIT
DELAY_S = 0.064
VALID_SHARE = 0.99
WARM_S = 7.0  # of TCP
LIMITS = ((0.5, 0.0001), (0.99, 0.0003))  # this share of the frames has at most this error, in s
DRAWN = 0.8  # the load of the figure
FIRST_RATES_MBIT, RATE_STEP_MBIT = (300, 400, 500, 600), 200


@dataclass(frozen=True)
class FidelityRun:
    """What one link showed in one run."""

    share: float  # of the rate
    offered: float  # of the rate; TCP takes what there is
    late: tuple[float, float, float]  # P50, P99, largest, in s
    errors_s: Sequence[float] = field(default_factory=list)  # sorted; UDP only
    queue_s: float = 0.0  # the delay of a queue that is full; UDP only
    whole: bool = True  # every frame is accounted for, and none was lost but at the queue's tail

    @property
    def wrong(self) -> str:
        """Why a measurement over such a link is not valid, as text; empty where it is valid."""
        if not self.whole:
            return "frames were lost or not accounted for"
        if self.late[1] > STRICTLY.late_p99_s:
            return f"P99 {self.late[1] * 1000:.3f} ms late"
        carried = self.share / min(self.offered, 1)
        return f"{carried:.1%} carried of what there was" if carried < VALID_SHARE else ""

    @property
    def valid(self) -> bool:
        """Whether a measurement over such a link is valid."""
        return not self.wrong


def shape(rate_bps: int, delay_s: float = DELAY_S) -> Shape:
    """Return one direction with a queue of one BDP."""
    return Shape(rate_bps, delay_s, queue_bytes=int(rate_bps * 2 * delay_s / 8))


def udp_runs(links: int, rate_bps: int, offered: float, seconds: float) -> list[FidelityRun]:
    """Load new links with UDP at a share of their rate, all at once."""
    with Pair("fidelity") as pair:
        started = [pair.start(shape(rate_bps), shape(rate_bps)) for _ in range(links)]
        hosts = [f"10.0.{number}.2" for number in range(links)]
        a, b = pair.netns
        receiving = [Running(b, receive_udp, host, FULL_UDP_BYTES, IDLE_S) for host in hosts]
        sending = [Running(a, send_udp, host, rate_bps * offered, seconds, FULL_UDP_BYTES) for host in hosts]
        sent = [sender.result() for sender in sending]
        came = [receiver.result() for receiver in receiving]
        stats = [link.stats().a_to_b for link in started]
    return [
        _udp_run(rate_bps, offered, count, arrivals, stat, seconds)
        for count, arrivals, stat in zip(sent, came, stats, strict=True)
    ]


def _udp_run(
    rate_bps: int, offered: float, sent: int, came: Arrivals, stats: DirectionStats, seconds: float
) -> FidelityRun:
    delays = [(at - sent_at) / 1e9 for sent_at, at in zip(came.sent_ns, came.came_ns, strict=True)]
    lost_at_tail = sent - stats.dropped_queue.frames == len(came.numbers) == stats.delivered.frames
    return FidelityRun(
        share=came.rate_bps(seconds / 4) / rate_bps,
        offered=offered,
        late=_late(stats),
        errors_s=sorted(came.errors_s(rate_bps, DELAY_S)),
        queue_s=at(sorted(delays[len(delays) // 2 :]), 0.5) - DELAY_S,
        whole=lost_at_tail and _whole(stats),
    )


def tcp_run(rate_bps: int, seconds: float) -> FidelityRun:
    """Load a new link with one CUBIC stream; its first seconds, in which it finds the rate, do not count."""
    with Pair("fidelity") as pair:
        link = pair.start(shape(rate_bps), shape(rate_bps))
        carried_bps, came = fill_with_tcp(pair, WARM_S, seconds)
        stats = link.stats()
    there, back = stats.a_to_b, stats.b_to_a
    return FidelityRun(
        share=carried_bps / rate_bps,
        offered=1.0,
        late=max(_late(there), _late(back), key=lambda seen: seen[1]),
        whole=came and _whole(there) and _whole(back),
    )


def _late(stats: DirectionStats) -> tuple[float, float, float]:
    return stats.late.quantile_s(0.5), stats.late.quantile_s(0.99), stats.late.max_ns / 1e9


def _whole(stats: DirectionStats) -> bool:
    return stats.balance == Tally() and not stats.dropped_elsewhere


def at(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[max(math.ceil(share * len(values)), 1) - 1]


def described(values: Sequence[float], factor: float) -> str:
    """Say median (min to max) of several runs, in a unit that is a factor smaller."""
    return f"{Spread(values).times(factor):.3f}"


def row(title: str, runs: Sequence[FidelityRun]) -> None:
    """Print what several runs of the same showed."""
    error = [[at(run.errors_s, share) for run in runs] for share in (0.5, 0.99) if runs[0].errors_s]
    print(
        f"{title:<26} {described([run.share for run in runs], 100):<30} "
        + " ".join(f"{described([run.late[i] for run in runs], 1000):<23}" for i in range(3))
        + " ".join(f"{described(values, 1000):<23}" for values in error)
        + f" {sum(run.valid for run in runs)} of {len(runs)}",
        flush=True,
    )


def header() -> None:
    """Print the head of the table."""
    print(
        f"{'median (min to max)':<26} {'% of the rate':<30} {'late P50, ms':<23} {'late P99, ms':<23} "
        f"{'late max, ms':<23} {'error P50, ms':<23} {'error P99, ms':<22} valid"
    )


def rates(options: argparse.Namespace) -> dict[str, list[FidelityRun]]:
    """UDP and TCP at 300 Mbit/s, 128 ms."""
    udp = [udp_runs(1, RATE_BPS, 1.1, options.seconds)[0] for _ in range(options.runs)]
    row("UDP, 110 % offered", udp)
    tcp = [tcp_run(RATE_BPS, options.seconds) for _ in range(options.runs)]
    row("TCP (CUBIC, one stream)", tcp)
    return {"UDP": udp, "TCP": tcp}


def rates_verdicts(udp: Sequence[FidelityRun], tcp: Sequence[FidelityRun]) -> Iterator[Verdict]:
    """Hold every valid run against the rate, and its full queue against its length divided by the rate."""
    for name, runs in (("UDP", udp), ("TCP", tcp)):
        share = Spread([run.share for run in runs])
        limit = f"{name} carries at least 99 % of the rate, and every run is valid"
        kept = share.least >= VALID_SHARE and all(run.valid for run in runs)
        yield Verdict(limit, f"{share:.3%}; {sum(run.valid for run in runs)} of {len(runs)} valid", kept)
    theory_s = (shape(RATE_BPS).queue_bytes or 0) * 8 / RATE_BPS
    queues_s = [run.queue_s for run in udp if run.valid]
    measured = f"{described(queues_s, 1000)} ms" if queues_s else f"none of {len(udp)} runs is valid"
    kept = bool(queues_s) and max(abs(queue_s / theory_s - 1) for queue_s in queues_s) <= 0.02
    measured += f", by theory {theory_s * 1000:.3f} ms"
    yield Verdict("a full queue's delay within 2 % of theory", measured, kept=kept)


def delay(options: argparse.Namespace) -> dict[str, list[FidelityRun]]:
    """The error of the delay of frames, from a link with room to one that is full."""
    found = {}
    for offered in (0.8, 0.95, 1.1):
        runs = [udp_runs(1, RATE_BPS, offered, options.seconds)[0] for _ in range(options.runs)]
        row(f"UDP, {offered:.0%} offered", runs)
        found[f"{offered:g}"] = runs
        if options.figure and offered == DRAWN:
            draw(runs, options.figure)
    return found


def delay_verdicts(offered: float, runs: Sequence[FidelityRun]) -> Iterator[Verdict]:
    """Say whether every valid run keeps each limit; where none is valid, none is kept."""
    valid = [run for run in runs if run.valid]
    for place, (share, limit_s) in enumerate(LIMITS):
        limit = f"UDP, {offered:.0%} offered: delay error P{share * 100:.0f} below {limit_s * 1000:g} ms"
        if not valid:
            yield Verdict(limit, f"none of {len(runs)} runs is valid", kept=False)
            continue
        own = [run.late[place] for run in valid]
        seen = [at(sorted(abs(error) for error in run.errors_s), share) for run in valid]
        measured = f"own {described(own, 1000)} ms, independent {described(seen, 1000)} ms"
        which = f"{len(valid)} valid runs of {len(runs)}"
        yield Verdict(limit, f"{measured}; {which}", kept=max(own + seen) < limit_s)


def six(options: argparse.Namespace) -> list[list[FidelityRun]]:
    """Six links at once."""
    rounds = [udp_runs(6, 50 * MBIT, 1.05, options.seconds) for _ in range(options.runs)]
    row("six links of 50 Mbit/s", [run for each in rounds for run in each])
    return rounds


def six_verdict(rounds: Sequence[Sequence[FidelityRun]]) -> Verdict:
    """Say whether every round was valid on all six links."""
    valid = sum(all(run.valid for run in each) for each in rounds)
    share = Spread([run.share for each in rounds for run in each])
    limit = "six links of 50 Mbit/s carry 99 % each, P99 at most 0.3 ms late"
    measured = f"{share:.3%}; {valid} of {len(rounds)} rounds valid on all six"
    return Verdict(limit, measured, kept=valid == len(rounds) and share.least >= VALID_SHARE)


def highest_udp(options: argparse.Namespace) -> dict[str, list[FidelityRun]]:
    """The highest rate at which UDP runs are valid."""
    return until_invalid("UDP", lambda rate_bps: udp_runs(1, rate_bps, 1.05, options.seconds)[0])


def highest_tcp(options: argparse.Namespace) -> dict[str, list[FidelityRun]]:
    """The highest rate at which TCP runs are valid."""
    return until_invalid("TCP", lambda rate_bps: tcp_run(rate_bps, options.seconds))


def until_invalid(name: str, one: Callable[[int], FidelityRun]) -> dict[str, list[FidelityRun]]:
    """Raise the rate until more than one of three runs is not valid; return the runs by Mbit/s."""
    found = {}
    for rate_mbit in chain(FIRST_RATES_MBIT, count(FIRST_RATES_MBIT[-1] + RATE_STEP_MBIT, RATE_STEP_MBIT)):
        runs = found[str(rate_mbit)] = [one(rate_mbit * MBIT) for _ in range(3)]
        row(f"{name}, {rate_mbit} Mbit/s", runs)
        if sum(run.valid for run in runs) < 2:
            break
    return found


def highest_verdict(name: str, found: Mapping[str, Sequence[FidelityRun]]) -> Verdict:
    """Say which was the highest rate at which two of three runs were valid, and what was wrong above."""
    valid = [int(rate_mbit) for rate_mbit, runs in found.items() if sum(run.valid for run in runs) >= 2]
    best_mbit, above = max(valid, default=0), list(found)[-1]
    wrong = next((run.wrong for run in found[above] if not run.valid), "nothing")
    limit = f"highest valid rate, {name}, at least {RATE_BPS // MBIT} Mbit/s"
    return Verdict(limit, f"{best_mbit} Mbit/s; at {above} Mbit/s: {wrong}", best_mbit * MBIT >= RATE_BPS)


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold each part that was measured against its limits."""

    def runs(stored: Iterable[Mapping[str, Any]]) -> list[FidelityRun]:
        return [FidelityRun(**each) for each in stored]

    for part, found in measured.items():
        if part == "rates":
            yield from rates_verdicts(runs(found["UDP"]), runs(found["TCP"]))
        elif part == "delay":
            for offered, stored in found.items():
                yield from delay_verdicts(float(offered), runs(stored))
        elif part == "six":
            yield six_verdict(list(map(runs, found)))
        else:
            name = part.removeprefix("highest-").upper()
            yield highest_verdict(name, {rate: runs(stored) for rate, stored in found.items()})


PARTS = {"rates": rates, "delay": delay, "six": six, "highest-udp": highest_udp, "highest-tcp": highest_tcp}


def draw(runs: Sequence[FidelityRun], file: Path) -> None:
    """Draw which share of the frames had at most which error, a line for each run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for each in runs:
        count = len(each.errors_s)
        axes.plot([error * 1000 for error in each.errors_s], [(i + 1) / count for i in range(count)])
    for share, limit_s in LIMITS:
        axes.plot(limit_s * 1000, share, "k<", clip_on=False)
    axes.set(
        xlim=(0, 0.5),
        ylim=(0, 1),
        xlabel="error of the one-way delay in ms, measured from outside",
        ylabel="share of frames",
        title=f"300 Mbit/s, 64 ms one way, UDP at {DRAWN:.0%}; marks: what is asked for",
    )
    figure.savefig(file, dpi=150)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the parts that were asked for."""
    require_root()
    print(machine("cubic (by route)"))
    header()
    return {name: part(options) for name, part in PARTS.items() if options.only in (None, name)}


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load in each run")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors of the part `delay`")
    run(parser, measure, judge)
