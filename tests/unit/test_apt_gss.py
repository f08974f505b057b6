"""GridFTP-APT against a trace computed by hand, and properties of its search."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.apt_gss import Bracket, PaperGss
from mpx.engine.tuner import Decision, Sample

# nu = 0.381966; N0 = 4, alpha = 2, Delta = 3 s, W = 65536 bytes, R = 50 ms. Goodput in byte/s.
TRACE = [
    # streams, chunk, goodput given      arithmetic of the chunk, then of the next count
    (4, 15_728_640, 5_000_000),  # (9): 4 * 65536 / 0.05 * 3
    (8, 30_000_000, 9_000_000),  # (10): 2 * 5e6 * 3
    (16, 48_600_000, 15_000_000),  # (8): 9e6 * 9/5 * 3
    (32, 75_000_000, 12_000_000),  # (8): 15e6 * 15/9 * 3; 12e6 < 15e6, (2): bracket (8, 16, 32)
    (22, 41_625_000, 16_000_000),  # (4): 16 + 16 nu = 22.1; (11): xi 6/16, (0.625*15e6 + 0.375*12e6) * 3
    (26, 43_200_000, 14_000_000),  # (7): (16, 22, 32); 22 + 10 nu = 25.8; xi 4/10, (0.6*16e6 + 0.4*12e6) * 3
    (
        18,
        46_000_000,
        15_500_000,
    ),  # (6): (16, 22, 26); 6 > 4: 16 + 6 nu = 18.3; xi 2/6, (2/3*15e6 + 1/3*16e6) * 3
    (24, 45_000_000, 17_000_000),  # (6): (18, 22, 26); 22 + 4 nu = 23.5; xi 2/4, (16e6 + 14e6)/2 * 3
    (25, 46_500_000, 16_500_000),  # (7): (22, 24, 26); 24 + 2 nu = 24.8; xi 1/2, (17e6 + 14e6)/2 * 3
    (23, 49_500_000, 16_800_000),  # (6): (22, 24, 25); 2 > 1: 22 + 2 nu = 22.8; xi 1/2, (16e6 + 17e6)/2 * 3
    (24, 51_000_000, 17_000_000),  # (6): (23, 24, 25), nothing left between: stay, 17e6 * 3
    (24, 51_000_000, 1_000_000),  # settled for good: G(m) is never measured again
    (24, 51_000_000, 17_000_000),
]


def sample(arrived: int, left: int = 10**12, still: bool = True, rtt: float | None = 0.05) -> Sample:
    return Sample(streams=4, arrived_bytes=arrived, bytes_left=left, rtt_s=rtt, still=still)


def only(decisions: object) -> Decision:
    assert isinstance(decisions, list) and len(decisions) == 1
    return decisions[0]


def test_trace_by_hand() -> None:
    tuner, now, arrived = PaperGss(), 100.0, 0
    seen = []
    for _, _, goodput in TRACE:
        decision = only(tuner.observe(now, {"p": sample(arrived)}))
        assert decision.barrier and decision.chunk_bytes is not None
        seen.append((decision.streams, decision.chunk_bytes, goodput))
        assert tuner.observe(now + 0.1, {"p": sample(arrived + 1, still=False)}) == []
        arrived += decision.chunk_bytes
        now += decision.chunk_bytes / goodput
    assert seen == TRACE
    bracket = tuner.bracket("p")
    assert bracket is not None and (bracket.left, bracket.middle, bracket.right) == (23, 24, 25)
    assert bracket.left_rate == pytest.approx(16_800_000) and bracket.right_rate == pytest.approx(16_500_000)


def drive(tuner: PaperGss, goodput: object, chunks: int, left: int = 10**15) -> list[int]:
    now, arrived, counts = 0.0, 0, []
    for _ in range(chunks):
        decision = only(tuner.observe(now, {"p": sample(arrived, left - arrived)}))
        counts.append(decision.streams)
        assert decision.chunk_bytes is not None and decision.chunk_bytes <= left - arrived
        arrived += decision.chunk_bytes
        now += decision.chunk_bytes / goodput(decision.streams)  # type: ignore[operator]
        if arrived >= left:
            break
    return counts


def test_the_papers_own_example_settles_in_its_forty_seconds() -> None:
    """1 Gbit/s and 10 ms with 64 KiB windows: a peak near 32 and 13 to 14 chunks of 3 s."""
    counts = drive(PaperGss(), lambda n: 1e6 * (n if n <= 32 else 32 - 0.2 * (n - 32)), 20)
    assert counts[:5] == [4, 8, 16, 32, 64]
    assert all(16 < n < 64 for n in counts[5:])
    settled = counts.index(counts[-1])
    assert counts[14:] == [counts[-1]] * len(counts[14:]) and settled <= 14
    assert 30 <= counts[-1] <= 34


def test_drop_at_the_second_chunk_estimates_the_left_end() -> None:
    tuner = PaperGss()
    counts = drive(tuner, lambda n: 1e7 / n, 3)
    bracket = tuner.bracket("p")
    assert counts[:2] == [4, 8] and bracket is not None
    assert (bracket.left, bracket.middle, bracket.right) == (2, 4, 8)
    assert bracket.left_rate == pytest.approx(bracket.middle_rate / 2)


def test_a_plateau_doubles_up_to_the_cap() -> None:
    assert drive(PaperGss(max_streams=100), lambda n: 2**20, 7)[:6] == [4, 8, 16, 32, 64, 100]


def test_equal_goodput_is_not_less() -> None:
    assert drive(PaperGss(), lambda n: 2**20, 3) == [4, 8, 16]


def test_a_chunk_never_exceeds_what_is_left() -> None:
    tuner = PaperGss()
    assert only(tuner.observe(0.0, {"p": sample(0, left=1000)})).chunk_bytes == 1000


def test_a_short_last_chunk_decides_nothing() -> None:
    tuner = PaperGss()
    first = only(tuner.observe(0.0, {"p": sample(0)}))
    assert first.chunk_bytes is not None
    again = only(tuner.observe(1.0, {"p": sample(first.chunk_bytes // 2 - 1)}))
    assert again.streams == 4 and "short" in again.reason


def test_a_chunk_in_which_the_streams_were_switched_decides_nothing() -> None:
    tuner = PaperGss()
    first = only(tuner.observe(0.0, {"p": sample(0)}))
    second = only(tuner.observe(3.0, {"p": sample(first.chunk_bytes or 0)}))
    arrived = (first.chunk_bytes or 0) + (second.chunk_bytes or 0)
    tuner.disturbed(4.0)
    again = only(tuner.observe(9.0, {"p": sample(arrived)}))  # far less goodput than before
    assert again.streams == second.streams == 8 and "changed during the chunk" in again.reason
    last = only(tuner.observe(12.0, {"p": sample(arrived + (again.chunk_bytes or 0) * 2)}))
    assert last.streams == 16


def test_a_first_chunk_that_drags_on_is_cut_after_two_chunk_times() -> None:
    tuner = PaperGss()
    tuner.observe(0.0, {"p": sample(0)})
    assert tuner.observe(5.9, {"p": sample(1000, still=False)}) == []
    assert only(tuner.observe(6.0, {"p": sample(1000, still=False)})).streams == 8
    assert tuner.observe(60.0, {"p": sample(2000, still=False)}) == []


def test_unknown_and_zero_rtt_give_a_finite_first_chunk() -> None:
    assert only(PaperGss().observe(0.0, {"p": sample(0, rtt=None)})).chunk_bytes == 15_728_640
    zero = only(PaperGss().observe(0.0, {"p": sample(0, left=10**18, rtt=0.00001)})).chunk_bytes
    assert zero == 4 * 65536 * 10_000 * 3


def test_paths_search_on_their_own() -> None:
    tuner = PaperGss(initial={"a": 2, "b": 6})
    first = {d.path: d for d in tuner.observe(0.0, {"a": sample(0), "b": sample(0)})}
    assert (first["a"].streams, first["b"].streams) == (2, 6)
    moved = first["a"].chunk_bytes or 0
    assert only(tuner.observe(3.0, {"a": sample(moved), "b": sample(9, still=False)})).path == "a"


@pytest.mark.parametrize("wrong", [{"growth": 1.0}, {"chunk_time_s": 0.0}, {"max_streams": 0}])
def test_senseless_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        PaperGss(**wrong)  # type: ignore[arg-type]


@given(
    rates=st.lists(st.floats(1e3, 1e10), min_size=40, max_size=40),
    initial=st.integers(1, 600),
    growth=st.floats(1.01, 5.0),
    most=st.integers(1, 512),
)
def test_any_goodput_keeps_the_bracket_and_ends(
    rates: list[float], initial: int, growth: float, most: int
) -> None:
    tuner = PaperGss(initial=initial, growth=growth, max_streams=most)
    now, arrived, widths = 0.0, 0, []
    for rate in rates:
        decision = only(tuner.observe(now, {"p": sample(arrived)}))
        assert 1 <= decision.streams <= most
        assert decision.chunk_bytes is not None and decision.chunk_bytes >= 1
        bracket = tuner.bracket("p")
        if bracket is not None:
            assert bracket.left <= bracket.middle <= bracket.right
            assert bracket.left <= decision.streams <= bracket.right
            assert math.isfinite(bracket.predicted_rate(bracket.left))
            widths.append(bracket.right - bracket.left)
        arrived += decision.chunk_bytes
        now += decision.chunk_bytes / rate
    assert widths == sorted(widths, reverse=True)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 200))
def test_the_next_count_lies_strictly_inside_until_none_is_left(a: int, b: int, c: int) -> None:
    left, middle, right = sorted({a, a + b, a + b + c})
    bracket = Bracket(left, middle, right, 1.0, 2.0, 1.0)
    streams = bracket.next_streams()
    if right - left <= 2:
        assert streams == middle
    else:
        assert left < streams < right and streams != middle


def test_any_gain_counts_and_a_tie_does_not() -> None:
    bracket = Bracket(8, 16, 32, 1.0, 2.0, 1.5)
    assert bracket.narrowed(22, 2.001) == Bracket(16, 22, 32, 2.0, 2.001, 1.5)
    assert bracket.narrowed(22, 2.0) == Bracket(8, 16, 22, 1.0, 2.0, 2.0)
    assert bracket.narrowed(12, 2.001) == Bracket(8, 12, 16, 1.0, 2.001, 2.0)
    assert bracket.narrowed(12, 2.0) == Bracket(12, 16, 32, 2.0, 2.0, 1.5)


def test_one_stream_is_no_streams() -> None:
    tuner = PaperGss(initial=1)
    first = only(tuner.observe(0.0, {"p": sample(0)}))
    assert first.reason.startswith("start with 1 stream,")
    assert "with 1 stream" in only(tuner.observe(3.0, {"p": sample(first.chunk_bytes or 0)})).reason
