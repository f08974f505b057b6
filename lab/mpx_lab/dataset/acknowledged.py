"""A sender's own goodput: the bytes that were acknowledged, from NAME.tcp.csv. No I/O."""

from collections.abc import Mapping, Sequence

from mpx_lab.series import Sample

SAME_LOOK_S = 0.05  # lines closer together belong to one sample of all connections
EVERY_S = 0.1
PAUSE_S = 0.25  # without a line: nothing was open


def acknowledged(rows: Sequence[Mapping[str, str]]) -> list[Sample]:
    """Return the bytes that all streams of a flow had acknowledged between samples.

    Counters begin anew with each connection, so one that has fallen is a new one's. What a connection has at
    its first look came since the look before, whether or not there is a line of that.
    """
    found: list[Sample] = []
    last: dict[str, int] = {}
    for row in rows:
        t_s, stream, acked = float(row["t_s"]), row["stream"], int(row["bytes_acked"])
        before = last.get(stream, 0)
        brought = acked - before if acked >= before else acked
        last[stream] = acked
        if found and t_s < found[-1].t_s + SAME_LOOK_S:
            found[-1] = Sample(found[-1].t_s, found[-1].size_bytes + brought)
            continue
        if not found or t_s > found[-1].t_s + PAUSE_S:
            found.append(Sample(t_s - EVERY_S, 0))
        found.append(Sample(t_s, brought))
    return found
