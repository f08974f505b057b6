"""When generators send, and which short flows come."""

import itertools
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpx_lab.traffic.schedule import Arrival, Pacer, Phase, arrivals, mean_size, pareto, phases


def test_phases_begin_with_on_and_do_not_drift() -> None:
    assert list(itertools.islice(phases(10, 20), 3)) == [Phase(0, 10), Phase(20, 30), Phase(40, 50)]
    assert next(itertools.islice(phases(0.1, 0.3), 300_000, None)) == Phase(90_000, 90_000.1)


@given(st.floats(1e4, 1e10), st.lists(st.floats(1e-5, 0.009), min_size=1, max_size=200))
def test_a_prompt_pacer_sends_what_the_rate_says(rate_bps: float, steps: list[float]) -> None:
    pacer = Pacer(rate_bps, 1448)
    pacer.begin(5.0)
    now_s, sent = 5.0, 0
    for step_s in steps:
        now_s += step_s
        sent += pacer.due(now_s)
    exact = (now_s - 5.0) * rate_bps / 8 / 1448
    assert pacer.given_up == 0
    assert abs(sent - exact) <= 1 + 1e-6 * exact


@given(st.floats(1e4, 1e10), st.lists(st.floats(0, 2), min_size=1, max_size=100))
def test_no_burst_is_longer_than_the_catch_up_and_nothing_goes_missing(
    rate_bps: float, steps: list[float]
) -> None:
    pacer = Pacer(rate_bps, 1448, catch_up_s=0.01)
    pacer.begin(0.0)
    now_s, sent = 0.0, 0
    for step_s in steps:
        now_s += step_s
        batch = pacer.due(now_s)
        assert batch * 1448 * 8 / rate_bps <= 0.01 + 1448 * 8 / rate_bps
        sent += batch
    exact = now_s * rate_bps / 8 / 1448
    assert abs(sent + pacer.given_up - exact) <= 1 + 1e-6 * exact


@pytest.mark.parametrize(("rate_bps", "batch"), [(1e6, 1), (50e6, 4), (200e6, 17)])
def test_batches_are_no_longer_than_asked_for(rate_bps: float, batch: int) -> None:
    pacer = Pacer(rate_bps, 1448)
    pacer.begin(0.0)
    assert pacer.due(0.0) == 1
    assert pacer.due(pacer.next_s(0.001) + 1e-9) == batch


@example(1.0, 1, 42, 10.0)
@given(st.floats(0, 1), st.integers(1, 10**6), st.integers(1, 10**9), st.floats(0.1, 10))
def test_sizes_stay_within_their_bounds(uniform: float, smallest: int, more: int, shape: float) -> None:
    assert smallest <= pareto(uniform, smallest, smallest + more, shape) <= smallest + more


@settings(max_examples=30)
@given(st.integers(100, 10**6), st.floats(1.5, 10**4), st.one_of(st.just(1.0), st.floats(0.2, 4)))
def test_the_mean_is_that_of_the_sizes(smallest: int, ratio: float, shape: float) -> None:
    largest = int(smallest * ratio)
    steps = 20_000  # the mean of evenly spread quantiles; the last one weighs most, so it needs many
    sizes = (pareto((number + 0.5) / steps, smallest, largest, shape) for number in range(steps))
    assert math.isclose(sum(sizes) / steps, mean_size(smallest, largest, shape), rel_tol=0.05)


def test_arrivals_offer_the_load_and_repeat_with_the_seed() -> None:
    def first(seed: int) -> list[Arrival]:
        flows = arrivals(20e6, 10_000, 1_000_000, 1.2, seed)
        return list(itertools.takewhile(lambda flow: flow.at_s < 1000, flows))

    flows = first(1)
    assert sum(flow.size_bytes for flow in flows) * 8 / 1000 == pytest.approx(20e6, rel=0.05)
    gaps = [after.at_s - before.at_s for before, after in itertools.pairwise(flows)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert spread == pytest.approx(mean, rel=0.05)  # as of exponential gaps
    assert first(1) == flows
    assert first(2) != flows
