"""Measures the kernel's token bucket (TBF on a veth pair) beside the lab's emulator: the same rate, no delay.

    python bench/lab_tbf.py [--runs N] [--seconds S]     (root)

300 Mbit/s of frame bytes and a queue of 1.2 MB, 32 ms. Delays are one way, from the sender's clock before
the send to the kernel's when the frame came out; `error` is what a perfect link would not have taken. Exits
1 if the emulator, in the median, carries less than 99 % or more than 101 % of the rate with TCP or with too
much UDP, or is wrong by more than the bucket is (P99 of the errors with a full queue).
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from figures import Spread, Verdict, machine
from harness import command, require_root, run
from lab_fidelity import at, described
from lab_load import fill_with_tcp, offer_udp
from lab_pair import Pair
from mpx_lab.shape import Shape

RATE_BPS = 300_000_000
QUEUE_BYTES = 1_200_000
BURST_BYTES = 15_140  # ten full frames: 0.4 ms; the smallest that gives TBF its rate here
WARM_S = 1.0
FULL, TCP = "UDP 110 %", "TCP"
EMULATOR, BUCKET = "emulator", "TBF"
Starter = Callable[[Pair], object]


def emulated(pair: Pair) -> object:
    """Start our link."""
    return pair.start(Shape(RATE_BPS, queue_bytes=QUEUE_BYTES), Shape())


def bucket(pair: Pair) -> None:
    """Start the kernel's."""
    pair.start_tbf(RATE_BPS, QUEUE_BYTES, BURST_BYTES)


def udp(start: Starter, offered: float, seconds: float) -> dict[str, float]:
    """Offer UDP at a share of the rate."""
    with Pair("tbf") as pair:
        start(pair)
        _, came = offer_udp(pair, RATE_BPS * offered, seconds)
    delays = sorted((at_ns - sent) / 1e9 for sent, at_ns in zip(came.sent_ns, came.came_ns, strict=True))
    errors = sorted(came.errors_s(RATE_BPS, 0.0))
    return {
        "share": came.rate_bps(WARM_S) / RATE_BPS,
        "delay P50": at(delays, 0.5),
        "delay P99": at(delays, 0.99),
        "error P50": at(errors, 0.5),
        "error P99": at(errors, 0.99),
    }


def tcp(start: Starter, seconds: float) -> dict[str, float]:
    """Fill it with one CUBIC stream; the kernel behind it counts frame bytes."""
    with Pair("tbf") as pair:
        start(pair)
        rate_bps, _ = fill_with_tcp(pair, WARM_S, seconds)
    return {"share": rate_bps / RATE_BPS}


def judge(seen: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]) -> Iterator[Verdict]:
    """Hold the emulator against its rate, and against the bucket; runs by load and link."""

    def median(load: str, name: str, key: str) -> float:
        return Spread([run[key] for run in seen[load][name]]).median

    for load in (FULL, TCP):
        share = median(load, EMULATOR, "share")
        yield Verdict(f"{load}: the emulator carries 99 to 101 %", f"{share:.2%}", 0.99 <= share <= 1.01)
    ours, theirs = (abs(median(FULL, name, "error P99")) * 1000 for name in (EMULATOR, BUCKET))
    limit = f"{FULL}: P99 of the delay's error at most that of the bucket"
    yield Verdict(limit, f"{ours:.3f} ms against {theirs:.3f} ms", ours <= theirs)


def measure(options: argparse.Namespace) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Measure both in turns and print the table."""
    require_root()
    print(machine("cubic (by route)"))
    print("median (min to max); rate in % of 300 Mbit/s, times in ms")
    loads: list[tuple[str, Callable[[Starter], dict[str, float]]]] = [
        ("UDP 95 %", lambda start: udp(start, 0.95, options.seconds)),
        (FULL, lambda start: udp(start, 1.1, options.seconds)),
        (TCP, lambda start: tcp(start, options.seconds)),
    ]
    kinds: list[tuple[str, Starter]] = [(EMULATOR, emulated), (BUCKET, bucket)]
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for load, under_load in loads:
        seen = found[load] = {name: [] for name, _ in kinds}
        for _ in range(options.runs):
            for name, start in kinds:
                seen[name].append(under_load(start))
        for name, runs in seen.items():
            cells = [f"rate {described([run['share'] for run in runs], 100)}"]
            cells += [
                f"{key} {described([run[key] for run in runs], 1000)}" for key in runs[0] if key != "share"
            ]
            print(f"{load:<10} {name:<9} " + "  ".join(f"{cell:<32}" for cell in cells), flush=True)
    return found


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load in each run")
    run(parser, measure, judge)
