"""Which tuner a copy gets, and where that starts."""

from types import SimpleNamespace
from typing import Any

import pytest
from made_up_paths import Path, drive, knee

from mpx.apt_gss import PaperGss
from mpx.engine.path_set import read_path_set
from mpx.engine.tuner import Sample
from mpx.options import CopyOptions
from mpx.transfer.congestion_plan import Plan
from mpx.transfer.tuner_choice import (
    Prior,
    first_by_path,
    first_of_fast,
    first_streams,
    tuner_for,
    tuners_by_group,
)
from mpx.tuning.adaptive import AutoTuner

FAR = {"path": Sample(0, 0, 10**12, rtt_s=0.1)}


def start(options: CopyOptions) -> int:
    tuner = tuner_for(options)
    assert tuner is not None
    return tuner.observe(0.0, FAR)[0].streams


def test_a_fixed_number_has_none() -> None:
    assert tuner_for(CopyOptions(streams=4)) is None


def test_each_by_its_name() -> None:
    assert isinstance(tuner_for(CopyOptions()), AutoTuner)
    assert isinstance(tuner_for(CopyOptions(tuner="paper")), PaperGss)


def test_a_number_to_start_with_counts_from_python_too_and_as_the_usual_one() -> None:
    assert start(CopyOptions()) == 4  # whatever the RTT
    assert start(CopyOptions(share=1)) == 1
    assert start(CopyOptions(initial_streams=4)) == 4
    assert start(CopyOptions(tuner="paper")) == 4
    assert start(CopyOptions(tuner="paper", initial_streams=6)) == 6


@pytest.mark.parametrize(
    ("congestion", "options", "expected"),
    [
        (None, {}, 16),  # the server sends as its kernel wants
        (None, {"max_streams": 5}, 5),
        (None, {"initial_streams": 2}, None),
        (None, {"policy": "fair"}, None),
        ("bbr", {}, None),
    ],
)
def test_fast_begins_with_as_many_as_others_where_it_cannot_have_bbr(
    congestion: str | None, options: dict[str, Any], expected: int | None
) -> None:
    transport: Any = SimpleNamespace(
        options=CopyOptions(**{"policy": "fast", **options}), plan=Plan(congestion)
    )
    assert first_of_fast(transport) == expected


@pytest.mark.parametrize(("policy", "least"), [("fast", 16), ("fair", 4)])
def test_only_fast_never_tries_fewer_than_it_begins_with(policy: str, least: int) -> None:
    """Beside others fewer carry nearly as much at first, and lose their part of the path later."""
    path, tuner = (
        Path(knee(2)),
        tuner_for(CopyOptions(policy=policy), Prior(16, 16 if policy == "fast" else None)),
    )
    path.extra = {"queue_s": 0.02}
    assert isinstance(tuner, AutoTuner)
    log = drive(tuner, {"p": path}, 60)
    assert log[0][1].streams == 16 and min(decision.streams for _, decision in log) == least


def test_what_fast_keeps_does_not_make_its_first_step_larger() -> None:
    tuner = tuner_for(CopyOptions(policy="fast"), Prior(16, 16))
    assert tuner is not None
    log = drive(tuner, {"p": Path(knee(400), 0.2)}, 10)
    assert [decision.streams for _, decision in log[:2]] == [16, 64]


def test_no_start_above_the_most() -> None:
    for tuner in ("auto", "paper"):
        options = CopyOptions(tuner=tuner, max_streams=3)
        assert (first_streams(options), start(options)) == (3, 3)


PATHS = [
    {"streams": streams, "rate_bps": 1e9, "rtt_s": 0.1, "group": group}
    for streams, group in ((8, 0), (2, 0), (10, 1), (2, 2))
]
KNOWN = read_path_set({"id": 1, "lease_s": 60, "paths": PATHS})


def test_each_group_of_paths_has_one_that_starts_with_the_predictions() -> None:
    tuners = tuners_by_group(CopyOptions(), KNOWN)
    assert list(tuners) == [("0", "1"), ("2",), ("3",)]
    samples = {name: Sample(0, 0, 10**12, rtt_s=0.1) for name in KNOWN.names}
    first = [
        (decision.path, decision.streams)
        for group, tuner in tuners.items()
        for decision in tuner.observe(0.0, {name: samples[name] for name in group})
    ]
    assert first == [("0", 8), ("1", 2), ("2", 10), ("3", 2)]


def test_what_is_asked_for_is_divided_in_the_ratio_of_the_predictions() -> None:
    assert first_by_path(CopyOptions(streams=11), KNOWN) == {"0": 4, "1": 1, "2": 5, "3": 1}
    assert tuners_by_group(CopyOptions(streams=11), KNOWN) == {}
    assert sum(first_by_path(CopyOptions(max_streams=11), KNOWN).values()) == 11
    assert sum(first_by_path(CopyOptions(initial_streams=4), KNOWN).values()) == 4


def test_only_the_fast_policy_keeps_streams_that_take_from_others() -> None:
    counts = {}
    for policy in ("fair", "fast"):
        path, tuner = (
            Path(lambda n: 1e9 * n / (n + 12)),
            tuner_for(CopyOptions(policy=policy, initial_streams=16)),
        )
        path.extra = {"queue_s": 0.02}
        assert isinstance(tuner, AutoTuner)
        counts[policy] = drive(tuner, {"p": path}, 60)[-1][1].streams
    assert counts["fair"] == 4 and counts["fast"] >= 16
