"""The account of a link and its histograms."""

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.emulator.accounting import TALLIES, Histogram, LinkStats, Tally
from mpx_lab.shape import Shape

STEP_NS = 1000
times = st.lists(st.integers(0, 10**9), min_size=1, max_size=200)


def seen(values_ns: list[int]) -> Histogram:
    """Count in buckets of 1 µs."""
    counts: dict[int, int] = {}
    for value in values_ns:
        upper = value // STEP_NS * STEP_NS + STEP_NS - 1
        counts[upper] = counts.get(upper, 0) + 1
    return Histogram(tuple(sorted(counts.items())), max(values_ns, default=0))


def answer(**tallies: list[int]) -> dict[str, Any]:
    shape = {"rate_bps": 0, "delay_ns": 5, "queue_bytes": 0, "queue_packets": 3, "loss": 0.5, "seed": 7}
    empty = {"max_ns": 0, "counts": []}
    direction = {"shape": shape, **{name: [0, 0] for name in TALLIES}, "device_dropped": 0}
    direction |= {"late": {"max_ns": 9, "counts": [[255, 2]]}, "pickup": empty, **tallies}
    return {
        "name": "wan",
        "time_ns": 2_000_000_000,
        "up": True,
        "realtime": True,
        "memory_locked": True,
        "log_failed": False,
        "cpu_s": 0.5,
        "a-to-b": direction,
        "b-to-a": direction,
    }


@given(times, st.floats(0, 1))
def test_a_quantile_is_not_exceeded_by_its_share(values_ns: list[int], share: float) -> None:
    found_ns = round(seen(values_ns).quantile_s(share) * 1e9)
    assert sum(value <= found_ns for value in values_ns) >= math.ceil(share * len(values_ns))
    exact = sorted(values_ns)[max(math.ceil(share * len(values_ns)), 1) - 1]
    assert exact <= found_ns < exact + STEP_NS
    assert found_ns <= max(values_ns)


@given(times, st.integers(0, 10**9))
def test_nothing_above_a_limit_is_missed(values_ns: list[int], limit_ns: int) -> None:
    histogram = seen(values_ns)
    share = sum(value > limit_ns for value in values_ns) / len(values_ns)
    assert histogram.share_above(limit_ns / 1e9) >= share - 1e-9
    assert histogram.share_above(histogram.max_ns / 1e9) == 0


@given(times, times)
def test_what_came_since_an_earlier_look(before: list[int], after: list[int]) -> None:
    since = seen(before + after).since(seen(before))
    assert since.counts == seen(after).counts
    assert since.max_ns >= max(after)
    assert since.max_ns < max(after) + STEP_NS


def test_of_nothing_there_is_nothing_to_say() -> None:
    assert (Histogram().quantile_s(0.99), Histogram().share_above(0), Histogram().total) == (0, 0, 0)


def test_an_answer_is_read() -> None:
    stats = LinkStats.parse(json.dumps(answer(received=[5, 500])))
    assert (stats.name, stats.time_s, stats.up, stats.hindrances, stats.cpu_s) == ("wan", 2.0, True, (), 0.5)
    there = stats.a_to_b
    assert there.shape == Shape(None, 5e-9, None, 3, 0.5, 7)
    assert there.received == Tally(5, 500)
    assert (there.late.total, there.late.quantile_s(0.5)) == (2, 9e-9)


@pytest.mark.parametrize(
    ("refused", "words"), [("realtime", "no real-time priority"), ("memory_locked", "swapped out")]
)
def test_what_makes_it_late_is_told_of_both_directions(refused: str, words: str) -> None:
    stats = LinkStats.parse(json.dumps({**answer(), refused: False}))
    (told,) = stats.hindrances
    assert words in told
    assert stats.a_to_b.hindrances == stats.b_to_a.hindrances == stats.hindrances


@pytest.mark.parametrize("text", ["{", "{}", "[]", json.dumps({**answer(), "b-to-a": {}})])
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        LinkStats.parse(text)


GOES = [name for name in TALLIES if name not in ("received", "queued")]


@given(st.fixed_dictionaries({name: st.tuples(st.integers(0, 99), st.integers(0, 9999)) for name in GOES}))
def test_the_balance_tells_what_is_missing(goes: dict[str, tuple[int, int]]) -> None:
    total = [sum(part) for part in zip(*goes.values(), strict=True)]
    tallies = {name: list(tally) for name, tally in goes.items()}
    direction = LinkStats.parse(json.dumps(answer(**tallies, received=total))).a_to_b
    assert direction.balance == Tally()
    short = dataclasses.replace(direction, delivered=direction.delivered - Tally(1, 60))
    assert short.balance == Tally(1, 60)


def test_a_full_queue_is_no_loss_elsewhere_but_the_rest_is() -> None:
    fair = answer(dropped_queue=[5, 1], dropped_loss=[5, 1], dropped_down=[5, 1])
    assert LinkStats.parse(json.dumps(fair)).a_to_b.dropped_elsewhere == 0
    lost = answer(dropped_ring=[1, 1], dropped_invalid=[2, 1], write_errors=[4, 1])
    lost["a-to-b"]["device_dropped"] = 8
    assert LinkStats.parse(json.dumps(lost)).a_to_b.dropped_elsewhere == 15
