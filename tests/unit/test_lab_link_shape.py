"""Shapes: what is possible, and how the emulator is told."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.emulator.link import change_arguments, shape_arguments
from mpx_lab.shape import FULL_FRAME_BYTES, MAX_RATE_BPS, Shape
from mpx_lab.topology import Link

from mpx.errors import UsageError
from mpx.units import parse_rate

shapes = st.builds(
    Shape,
    rate_bps=st.none() | st.integers(1, MAX_RATE_BPS),
    delay_s=st.floats(0, 60),
    queue_bytes=st.none() | st.integers(FULL_FRAME_BYTES, 1 << 40),
    loss=st.floats(0, 1),
    seed=st.integers(0, 2**64 - 1),
)


@given(shapes)
def test_every_shape_is_told_in_the_emulators_words(shape: Shape) -> None:
    words = dict(pair.split("=") for pair in shape_arguments(shape).split(","))
    assert int(words["rate"]) == (shape.rate_bps or 0)
    assert int(words["queue_bytes"]) == (shape.queue_bytes or 0)
    assert math.isclose(int(words["delay_ns"]) / 1e9, shape.delay_s, abs_tol=1e-9)
    assert re.fullmatch(r"[0-9.]+", words["loss"])  # never 1e-05
    assert math.isclose(float(words["loss"]), shape.loss, abs_tol=1e-16)
    assert int(words["seed"]) == shape.seed


def test_a_limit_in_packets_is_told_as_one() -> None:
    assert "queue_packets=500" in shape_arguments(Shape(queue_packets=500))


@pytest.mark.parametrize(
    "impossible",
    [
        {"rate_bps": 0},
        {"rate_bps": MAX_RATE_BPS + 1},
        {"delay_s": -0.001},
        {"delay_s": 61},
        {"delay_s": math.nan},
        {"queue_bytes": 1513},
        {"queue_packets": 0},
        {"queue_bytes": 15140, "queue_packets": 10},
        {"loss": 1.01},
        {"loss": -0.01},
        {"seed": -1},
        {"seed": 2**64},
        {"rate_bps": 0.5},
        {"rate_bps": math.inf},
        {"rate_bps": math.nan},
        {"queue_bytes": 1514.5},
        {"seed": 1.5},
        {"rate_bps": 10**9, "burst_bytes": 1513},
        {"burst_bytes": 15140},
        {"fair_queue": True},
        {"policer": True},
        {"rate_bps": 10**9, "policer": True, "queue_packets": 1},
        {"rate_bps": 10**9, "policer": True, "fair_queue": True},
        {"jitter_s": -0.001},
        {"jitter_s": 1.1},
        {"delay_s": 0.01, "reorder_s": 0.011},
    ],
)
def test_impossible_shapes_are_refused(impossible: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Shape(**impossible)


def test_whole_numbers_may_be_floats() -> None:
    shape = Shape(50e6, queue_bytes=1e6, seed=7.0)  # type: ignore[arg-type]
    assert shape_arguments(shape) == shape_arguments(Shape(50_000_000, queue_bytes=1_000_000, seed=7))
    assert change_arguments({"rate_bps": parse_rate("33.3Mbit/s")}) == ["rate=33300000"]
    assert change_arguments({"queue_packets": 1e2}) == ["queue_packets=100"]
    assert repr(Link("a", "b", rate_bps=1e6).rate_bps) == "1000000"  # type: ignore[arg-type]


def test_only_what_is_named_is_told() -> None:
    assert change_arguments({"rate_bps": None, "queue_packets": 10}) == ["rate=0", "queue_packets=10"]
    assert change_arguments({"delay_s": 0.5, "seed": 0}) == ["delay_ns=500000000", "seed=0"]
    assert change_arguments({}) == []


def test_a_queue_without_a_limit_is_told_once_and_a_limit_beside_none_is_the_limit() -> None:
    assert change_arguments({"queue_bytes": None}) == ["queue_bytes=0"]
    assert change_arguments({"queue_packets": None}) == ["queue_bytes=0"]
    assert change_arguments({"queue_bytes": None, "queue_packets": None}) == ["queue_bytes=0"]
    assert change_arguments({"queue_bytes": 5000, "queue_packets": None}) == ["queue_bytes=5000"]
    assert change_arguments({"queue_bytes": None, "queue_packets": 5}) == ["queue_packets=5"]


def test_impossible_changes_are_refused() -> None:
    with pytest.raises(UsageError, match="not in both"):
        change_arguments({"queue_bytes": 15140, "queue_packets": 10})


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("burst_bytes", Shape(rate_bps=10**9, burst_bytes=15140)),
        ("policer", Shape(rate_bps=10**9, policer=True)),
        ("fair_queue", Shape(rate_bps=10**9, fair_queue=True)),
        ("jitter_s", Shape(jitter_s=0.01)),
        ("reorder_s", Shape(delay_s=0.01, reorder_s=0.01)),
    ],
)
def test_what_only_simulated_time_has_is_refused_elsewhere(name: str, shape: Shape) -> None:
    with pytest.raises(UsageError, match=f"{name} of a link is for simulated time"):
        shape_arguments(shape)


def test_what_a_link_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="colour"):
        change_arguments({"colour": "red"})
