"""How fairly the transfers of a run shared the link, after each join."""

import statistics
from collections.abc import Sequence

from mpx_lab.series import goodput_bps, jain

from apt.store import Result

SETTLED_S = 30.0  # after a join
WINDOW_S = 10.0  # over which shares are compared
CONVERSATION_BPS = 10_000.0  # what carries less is a control connection


def settled(run: Result, count: int) -> tuple[float, float]:
    """Return from 30 s after a join to the next one, or to the end, in the run's time."""
    begins = [transfer.began_s for transfer in run.transfers]
    ends = [*begins[1:], begins[-1] + run.transfers[-1].goodput.end_s]
    return begins[count - 1] + SETTLED_S, ends[count - 1]


def shares(run: Result, count: int, from_s: float, to_s: float) -> list[float]:
    """Return the goodput of each of the first `count` transfers over a time."""
    return [
        transfer.goodput.mean_bps(from_s - transfer.began_s, to_s - transfer.began_s)
        for transfer in run.transfers[:count]
    ]


def fairness(run: Result, count: int) -> float:
    """Return Jain's index of the transfers over the settled time."""
    return jain(shares(run, count, *settled(run, count)))


def least_fairness(run: Result, count: int) -> float:
    """Return the least index over any ten seconds of the settled time."""
    from_s, to_s = settled(run, count)
    starts = [from_s + step for step in range(max(1, int(to_s - from_s - WINDOW_S) + 1))]
    return min(jain(shares(run, count, start, min(to_s, start + WINDOW_S))) for start in starts)


def stream_fairness(run: Result, count: int) -> float | None:
    """Return the index over the streams that carried data through the last ten seconds; None if none did.

    The paper's tuner opens its streams anew for each chunk, so it has none.
    """
    to_s = settled(run, count)[1]
    from_s = to_s - WINDOW_S
    found = []
    for number in range(1, count + 1):
        for samples in run.run.streams(f"transfer-{number}").values():
            if samples[0].t_s <= from_s and samples[-1].t_s >= to_s - 1:
                found.append(goodput_bps(samples, from_s, to_s))
    carrying = [share for share in found if share > CONVERSATION_BPS]
    return jain(carrying) if carrying else None


def mean_streams(runs: Sequence[Result], count: int) -> list[float]:
    """Return the streams of each transfer over the settled time of all runs; nothing where no tool tells."""
    found: list[list[float]] = [[] for _ in range(count)]
    for run in runs:
        from_s, to_s = settled(run, count)
        for transfer, means in zip(run.transfers, found, strict=False):
            mean = transfer.mean_streams(from_s - transfer.began_s, to_s - transfer.began_s)
            if mean is not None:
                means.append(mean)
    return [statistics.mean(means) for means in found if means]


def unexplained(run: Result) -> tuple[float, float]:
    """Return how far shares of goodput are from shares of streams, and from equal shares, with all."""
    count = len(run.transfers)
    rates, streams = shares(run, count, *settled(run, count)), mean_streams([run], count)
    parts = [rate / sum(rates) for rate in rates]
    by_streams = [abs(part - n / sum(streams)) for part, n in zip(parts, streams, strict=True)]
    return statistics.mean(by_streams), statistics.mean(abs(part - 1 / count) for part in parts)
