"""How streams are dealt over paths, and what is believed of what a controller says."""

import contextlib
import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.mode_e.carriers import MOST_OF_MEAN, dealt, resized, spread
from mpx.engine.path_set import interleaved, read_path_set, split
from mpx.errors import ControllerError

WEIGHTS = st.lists(st.integers(1, 40), min_size=1, max_size=8)


@given(st.integers(0, 300), WEIGHTS)
def test_all_streams_are_dealt_and_no_path_is_without_one_if_there_are_enough(
    total: int, weights: list[int]
) -> None:
    counts = split(total, weights)
    assert sum(counts) == total
    assert min(counts) >= (1 if total >= len(weights) else 0)


@given(WEIGHTS, st.integers(1, 5))
def test_as_many_as_predicted_are_exactly_the_predictions(weights: list[int], times: int) -> None:
    assert split(times * sum(weights), weights) == [times * weight for weight in weights]


def test_the_ratio_of_the_thesis() -> None:
    assert split(22, [8, 2, 10, 2]) == [8, 2, 10, 2]
    assert split(11, [8, 2, 10, 2]) == [4, 1, 5, 1]
    assert split(33, [2, 2, 18]) == [3, 3, 27]
    assert split(3, [1, 1, 9]) == [1, 1, 1]
    assert split(2, [1, 1, 9]) == [1, 1, 0]


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 30), min_size=1))
def test_wherever_it_is_cut_each_name_has_its_share_within_one(counts: dict[str, int]) -> None:
    order = interleaved(counts)
    assert Counter(order) == Counter({name: count for name, count in counts.items() if count})
    total = len(order)
    for cut in range(1, total + 1):
        so_far = Counter(order[:cut])
        for name, count in counts.items():
            assert abs(so_far[name] * total - cut * count) < total


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.lists(st.booleans(), max_size=8))
def test_lanes_have_as_many_streams_as_without_paths_and_none_is_dealt_twice(
    streams: list[str], large: list[bool]
) -> None:
    workers = dealt(streams, large)
    assert [len(worker) for worker in workers] == spread(len(streams), large)
    if len(streams) >= len(large) > 0:
        assert Counter(path for worker in workers for path in worker) == Counter(streams)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(0, 300))
def test_few_sessions_change_when_the_number_of_streams_does(shares: list[int], more: int) -> None:
    streams = len(shares) + more
    new = resized(shares, streams)
    assert sum(new) == streams and min(new) >= 1
    assert max(new) <= math.ceil(MOST_OF_MEAN * streams / len(shares))
    assert resized(new, streams) == new
    if not any(shares):
        assert max(new) - min(new) <= 1


def test_small_sessions_grow_first() -> None:
    assert resized([4, 2, 1, 0], 12) == [4, 2, 1, 5]
    assert resized([4, 2, 1, 5], 16) == [4, 2, 5, 5]
    assert resized([4, 2, 5, 5], 12) == [4, 2, 5, 1]


def told(**more: Any) -> dict[str, Any]:
    path = {"switches": ["1"], "streams": 2, "rate_bps": 1e8, "rtt_s": 0.01, "group": 0, "up": True}
    return {"id": 7, "lease_s": 60.0, "paths": [path, {**path, "group": 1, "rate_bps": None}], **more}


def test_a_path_set_is_read() -> None:
    known = read_path_set(told())
    assert (known.number, known.names, known.groups) == (7, ("0", "1"), [("0",), ("1",)])
    assert known.paths[0].rate_bps == 1e8 and known.paths[1].rate_bps is None
    assert known.only(1).names == ("0",)


@pytest.mark.parametrize(
    "lie",
    [
        None,
        [],
        {},
        told(id="7"),
        told(id=True),
        told(id=-1),
        told(id=2**70),
        told(lease_s=float("nan")),
        told(lease_s=-1),
        told(lease_s="60"),
        told(paths=[]),
        told(paths={}),
        told(paths=told()["paths"] * 40),
        told(paths=[{**told()["paths"][0], "streams": 0}]),
        told(paths=[{**told()["paths"][0], "streams": 10**9}]),
        told(paths=[{**told()["paths"][0], "streams": 1.5}]),
        told(paths=[{**told()["paths"][0], "rtt_s": float("inf")}]),
        told(paths=[{**told()["paths"][0], "rate_bps": "fast"}]),
        told(paths=[{**told()["paths"][0], "group": None}]),
        told(paths=[7]),
    ],
)
def test_what_cannot_be_is_refused(lie: Any) -> None:
    with pytest.raises(ControllerError, match="invalid path set"):
        read_path_set(json.loads(json.dumps(lie)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda some: (
            st.lists(some)
            | st.dictionaries(st.sampled_from(["id", "paths", "lease_s", "streams", "up"]), some)
        ),
    )
)
def test_nothing_that_is_told_is_a_traceback(anything: Any) -> None:
    with contextlib.suppress(ControllerError):
        read_path_set(anything)
