"""What happened on one path: round trips, streams, background, congestion control, losses, outages. Pure."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mpx.explain.finding import Finding, FindingKind, fact
from mpx.explain.record import CopyRecord
from mpx.explain.stretches import (
    Arrivals,
    StreamStep,
    Stretch,
    full_share,
    last_attempt,
    lost_share,
    mean_share,
    of_path,
    outages,
    steps,
    stretches,
)
from mpx.intervals import Interval
from mpx.recognition.mix import MIXES, UNKNOWN
from mpx.report import Event
from mpx.units import counted, format_duration, format_rate, format_size

LEAST_LOSS = 0.0001  # that is told exactly
LEAST_SHARE = 0.1  # of the time, of what is worth a sentence
SHORTEST_STRETCH, SHORTEST_STRETCH_S = (
    0.04,
    2.0,
)  # share of the copy, and seconds, that a reading lasts to be told
MOST_STEPS, MOST_SAID, MOST_STRETCHES = 7, 6, 8  # lines
MOST_IN_A_LINE = 4  # steps, where there are several paths
BACKGROUNDS = dict(
    zip(
        (*MIXES, UNKNOWN),
        (
            "nobody else",
            "one CUBIC stream (C)",
            "one BBR stream (B)",
            "two CUBIC streams (CC)",
            "a BBR and a CUBIC stream (BC)",
            "two BBR streams (BB)",
            "unknown",
        ),
        strict=True,
    )
)


def path_story(record: CopyRecord, path: str) -> Iterator[Finding]:
    """Yield what the report says of a path."""
    intervals = list(of_path(record.intervals, path))
    events = [event for event in last_attempt(record.events) if event.path == path]
    yield from _carried(record, path, intervals)
    yield from _round_trips(record, intervals)
    yield from _limits(record, intervals)
    yield from _streams(steps(events, intervals), in_a_line=len(record.paths) > 1)
    yield from _background(intervals)
    yield from _congestion(record, events)
    yield from _losses(intervals)
    yield from _said(events)
    for outage in outages(intervals):
        yield Finding(FindingKind.PROBLEM, f"no data {_span(outage)}")


def _carried(record: CopyRecord, path: str, intervals: Sequence[Interval]) -> Iterator[Finding]:
    """Yield what a path of several carried, and what the controller had expected."""
    if len(record.paths) < 2 or not intervals:
        return
    mine = sum(each.arrived_bytes for each in intervals)
    whole = sum(each.arrived_bytes for each in record.intervals)
    rate = Arrivals(intervals).goodput_bps(0.0, intervals[-1].until_s) or 0.0
    text = f"carried {format_size(mine)}"
    if whole:
        text += f", {mine / whole:.0%} of all"
    text += f", at {format_rate(rate)}"
    expected = next((each.rate_bps for each in record.offered if each.name == path), None)
    if expected:
        text += f"; the controller expected {format_rate(expected)}"
    yield fact(text)


def shortest_rtt_s(record: CopyRecord, intervals: Sequence[Interval]) -> float | None:
    """Return the shortest round-trip time of a path; None where there is none."""
    measured = [each.rtt_s for each in intervals if each.rtt_s]
    if len(record.paths) == 1 and record.rtt_s:
        measured.append(record.rtt_s)
    return min(measured, default=None)


def _round_trips(record: CopyRecord, intervals: Sequence[Interval]) -> Iterator[Finding]:
    measured = [each.rtt_s for each in intervals if each.rtt_s]
    least = shortest_rtt_s(record, intervals)
    if least is None:
        return
    text = f"round-trip time {format_duration(least)}"
    if measured and max(measured) > 1.1 * least:
        text += f" at its shortest, up to {format_duration(max(measured))} while data moved"
    yield fact(text)


def _limits(record: CopyRecord, intervals: Sequence[Interval]) -> Iterator[Finding]:
    """Yield what held the streams back, by what the kernel says, most of the time first."""
    moving = [each for each in intervals if each.streams > 0]
    receiver = mean_share(moving, lambda each: each.limited_by_receiver)
    shares = (
        (
            full_share(moving, shortest_rtt_s(record, intervals) or 0.0),
            "the path was full: a queue stood in it",
        ),
        (receiver, "the window of the receiver held the streams back"),
        (mean_share(moving, lambda each: each.limited_by_sender), "the send buffer held the streams back"),
        (mean_share(moving, lambda each: each.idle), "the streams had nothing to send"),
    )
    for share, what in sorted((each for each in shares if each[0] is not None), reverse=True):
        if share is not None and share >= LEAST_SHARE:
            yield Finding(FindingKind.LIMIT, f"{what} for {share:.0%} of the time")
    if moving and receiver is None and record.is_download:
        yield fact("whether windows held the streams back is not known, as the other side sent")


def _streams(all_steps: Sequence[StreamStep], *, in_a_line: bool) -> Iterator[Finding]:
    """Yield the numbers of streams, and what each step gained."""
    if len(all_steps) == 1:
        (only,) = all_steps
        rate = "" if only.goodput_bps is None else f", {format_rate(only.goodput_bps)}"
        yield fact(f"{counted(only.streams, 'stream')} from start to end{rate}")
        return
    told = [_step(step, before) for before, step in zip((None, *all_steps), all_steps, strict=False)]
    most = MOST_IN_A_LINE if in_a_line else MOST_STEPS
    left_out = len(told) - most
    if left_out > 0:
        told[most - 1 : -1] = [f"{counted(left_out + 1, 'further number')} of streams"]
    if in_a_line and told:
        yield fact("; ".join(told))
    else:
        yield from map(fact, told)


def _step(step: StreamStep, before: StreamStep | None) -> str:
    text = f"{_at(step.from_s)}: {counted(step.streams, 'stream')}"
    if step.goodput_bps is None:
        return text
    text += f", {format_rate(step.goodput_bps)}"
    if before is not None and before.goodput_bps:
        text += f" ({step.goodput_bps / before.goodput_bps - 1:+.0%})"
    return f"{text} for {format_duration(step.length_s)}"


def told_stretches(intervals: Sequence[Interval]) -> Sequence[Stretch]:
    """Return the readings of the background that lasted, those around a short one as one."""
    if not intervals:
        return []
    least_s = max(SHORTEST_STRETCH_S, SHORTEST_STRETCH * (intervals[-1].until_s - intervals[0].from_s))
    lasting: list[Stretch] = []
    for stretch in stretches(intervals, lambda each: each.background):
        if stretch.length_s < least_s:
            continue
        if lasting and lasting[-1].what == stretch.what:
            lasting[-1] = Stretch(lasting[-1].from_s, stretch.until_s, stretch.what)
        else:
            lasting.append(stretch)
    return lasting


def _background(intervals: Sequence[Interval]) -> Iterator[Finding]:
    """Yield who shared the path, and when that changed."""
    read = stretches(intervals, lambda each: each.background)
    if not read:
        return
    lasting = told_stretches(intervals)
    parts = [
        f"{BACKGROUNDS.get(stretch.what, stretch.what)} {_span(stretch)}"
        for stretch in lasting[:MOST_STRETCHES]
    ]
    if len(lasting) > MOST_STRETCHES:
        parts.append(f"and {counted(len(lasting) - MOST_STRETCHES, 'more change')}")
    if parts:
        yield fact("background: " + "; ".join(parts))
    else:
        yield fact(f"the background changed too often to be told, {len(read)} times")


def _congestion(record: CopyRecord, events: Sequence[Event]) -> Iterator[Finding]:
    """Yield the congestion control, and when and why it was switched."""
    if not events or not (record.is_upload or record.is_download):
        return
    before = events[0].congestion
    if len(record.paths) == 1 or before != record.congestion:  # else it is told once, of all
        yield fact(f"congestion control: {before or 'not chosen by mpx'}")
    for event in events[1:]:
        if event.congestion != before:
            yield fact(f"{_at(event.t_s)}: {event.reason}")
            before = event.congestion


def _losses(intervals: Sequence[Interval]) -> Iterator[Finding]:
    share = lost_share(intervals)
    if share is not None:
        resent = sum(each.resent for each in intervals)
        of_all = f"{share:.2%}" if share >= LEAST_LOSS else f"less than {LEAST_LOSS:.2%}"
        yield fact(f"{counted(resent, 'segment')} sent again, {of_all} of all")


def _said(events: Sequence[Event]) -> Iterator[Finding]:
    """Yield what was found that changed neither streams nor congestion control, the first of each kind."""
    found = [
        event
        for before, event in pairwise(events)
        if event.streams == before.streams and event.congestion == before.congestion
    ]
    kinds: dict[str, Event] = {}
    for event in found:
        kinds.setdefault(re.sub(r"[\d.]+", "", event.reason), event)
    told = list(kinds.values())[:MOST_SAID]
    for event in told:
        yield fact(f"{_at(event.t_s)}: {event.reason}")
    if len(found) > len(told):
        yield fact(f"and {counted(len(found) - len(told), 'more finding')} like these")


def _at(t_s: float) -> str:
    return f"at {format_duration(t_s)}" if t_s else "at first"


def _span(stretch: Stretch) -> str:
    return f"from {format_duration(stretch.from_s)} to {format_duration(stretch.until_s)}"
