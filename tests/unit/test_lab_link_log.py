"""Reading the log of a link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.emulator.accounting import TALLIES, Tally
from mpx_lab.emulator.link_log import LinkLogLine, copy_log, older_part, parse_log, read_log
from mpx_lab.shape import Direction

HEADER = (
    "time_ns,direction,up,rate_bps,delay_ns,queue_max_bytes,"
    + ",".join(f"{name}_frames,{name}_bytes" for name in TALLIES)
    + ",late_p50_ns,late_p99_ns,late_max_ns,pickup_p50_ns,pickup_p99_ns,pickup_max_ns\n"
)
tallies = st.builds(Tally, st.integers(0, 2**40), st.integers(0, 2**50))
whole_ms = st.integers(0, 10**6).map(lambda ms: ms / 1000)
samples = st.builds(
    LinkLogLine,
    time_s=whole_ms,
    direction=st.sampled_from(Direction),
    up=st.booleans(),
    rate_bps=st.none() | st.integers(1, 10**11),
    delay_s=whole_ms,
    queue_max_bytes=st.integers(0, 2**40),
    late_p50_s=whole_ms,
    late_p99_s=whole_ms,
    late_max_s=whole_ms,
    pickup_p50_s=whole_ms,
    pickup_p99_s=whole_ms,
    pickup_max_s=whole_ms,
    **dict.fromkeys(TALLIES, tallies),
)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def line(sample: LinkLogLine) -> str:
    head = [ns(sample.time_s), sample.direction, int(sample.up), sample.rate_bps or 0, ns(sample.delay_s)]
    counts = [f"{getattr(sample, name).frames},{getattr(sample, name).bytes}" for name in TALLIES]
    late = (sample.late_p50_s, sample.late_p99_s, sample.late_max_s)
    pickup = (sample.pickup_p50_s, sample.pickup_p99_s, sample.pickup_max_s)
    times = [ns(time_s) for time_s in (*late, *pickup)]
    return ",".join(str(word) for word in [*head, sample.queue_max_bytes, *counts, *times]) + "\n"


@given(st.lists(samples, max_size=5))
def test_what_was_written_is_read(written: list[LinkLogLine]) -> None:
    assert list(parse_log([HEADER, *map(line, written)])) == written


@given(samples, samples, st.data())
def test_a_line_cut_by_a_kill_is_left_out(whole: LinkLogLine, cut: LinkLogLine, data: st.DataObject) -> None:
    text = line(cut)
    kept = data.draw(st.integers(0, len(text) - 1))
    rest = [text[:kept]] if kept else []
    assert list(parse_log([HEADER, line(whole), *rest])) == [whole]


@pytest.mark.parametrize("lines", [["a,b\n", "1,2\n"], [HEADER, "1,a-to-b\n"], [HEADER, "now,a-to-b,1\n"]])
def test_what_is_no_log_is_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(parse_log(lines))


@given(samples, samples)
def test_the_part_before_is_read_too(
    tmp_path_factory: pytest.TempPathFactory, old: LinkLogLine, new: LinkLogLine
) -> None:
    log = tmp_path_factory.mktemp("log") / "wan.csv"
    log.write_text(HEADER + line(new))
    assert read_log(log) == [new]
    older_part(log).write_text(HEADER + line(old))
    assert read_log(log) == [old, new]


@given(samples, samples)
def test_both_parts_are_copied(
    tmp_path_factory: pytest.TempPathFactory, old: LinkLogLine, new: LinkLogLine
) -> None:
    log, folder = tmp_path_factory.mktemp("log") / "wan.csv", tmp_path_factory.mktemp("run")
    log.write_text(HEADER + line(new))
    copy_log(log, folder)
    assert [file.name for file in folder.iterdir()] == ["wan.csv"]
    assert read_log(folder / "wan.csv") == [new]
    older_part(log).write_text(HEADER + line(old))
    copy_log(log, folder)
    assert read_log(folder / "wan.csv") == [old, new]
