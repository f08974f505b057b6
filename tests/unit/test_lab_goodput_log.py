"""What arrived, stream by stream: written without the streams that are silent, read as if they were there."""

import tempfile
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import Sample, bytes_between
from mpx_lab.traffic.goodput_log import GoodputLog

LOOK_S = 0.1


def written(folder: Path, brought: dict[int, list[int]]) -> RecordedRun:
    """Write what each stream brings by each look."""
    totals = {stream: list(accumulate(sizes)) for stream, sizes in brought.items()}
    with GoodputLog(folder / "flows", "bg", 0.0) as log:
        log.look(0.0, {})
        for number in range(max(len(sizes) for sizes in brought.values())):
            log.look((number + 1) * LOOK_S, {stream: sizes[number] for stream, sizes in totals.items()})
    return RecordedRun(folder, {})


@given(
    st.integers(1, 12).flatmap(
        lambda looks: st.dictionaries(
            st.integers(0, 5),
            st.lists(st.sampled_from([0, 0, 7, 1000]), min_size=looks, max_size=looks),
            min_size=1,
            max_size=4,
        )
    )
)
def test_pauses_are_read_as_pauses(brought: dict[int, list[int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = written(Path(folder), brought)
        streams, together = run.streams("bg"), run.goodput("bg")
    looks = len(together) - 1
    for stream, sizes in brought.items():
        series = streams.get(stream, [Sample(0.0, 0)])
        for number, size in enumerate(sizes):
            begin_s, end_s = together[number].t_s, together[number + 1].t_s
            assert bytes_between(series, begin_s, end_s) == pytest.approx(size)
    assert [sample.size_bytes for sample in together[1:]] == [
        sum(sizes[number] for sizes in brought.values()) for number in range(looks)
    ]


def test_a_stream_that_has_ended_costs_nothing_more(tmp_path: Path) -> None:
    sizes = {0: [5] * 100, 1: [0, 9, 9] + [0] * 97}
    rows = written(tmp_path, sizes).rows("flows/bg.streams.csv")
    assert [(row["t_s"], row["bytes"]) for row in rows if row["stream"] == "1"] == [
        ("0.200000", "9"),
        ("0.300000", "9"),
        ("0.400000", "0"),
    ]
    assert len(rows) == 103
