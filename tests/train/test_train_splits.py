"""Nothing that is judged on was learnt from: no window, no run, no link."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.dataset.load import Example
from mpx_train.splits import Split, by_link, by_range, by_run, shuffled
from ops_examples import example
from simulated_background import Wan

from mpx.errors import UsageError
from mpx.recognition.mix import MIXES

runs = st.lists(st.tuples(st.integers(1, 8), st.sampled_from(MIXES)), min_size=12, max_size=80)


def examples(told: list[tuple[int, str]]) -> list[Example]:
    return [
        example(mix, [], run=f"run {i}", link=f"link {name}", wan=Wan(1e8, 0.02 * name, 1))
        for i, (name, mix) in enumerate(told)
    ]


def whole(splits: list[Split], count: int) -> None:
    """Each is judged once, and learnt from in all other folds."""
    assert sorted(np.concatenate([split.judge for split in splits]).tolist()) == list(range(count))
    for split in splits:
        assert not set(split.learn.tolist()) & set(split.judge.tolist())
        assert len(split.learn) + len(split.judge) == count


@given(runs, st.integers(2, 10), st.integers(0, 99))
def test_no_run_is_on_both_sides(told: list[tuple[int, str]], folds: int, seed: int) -> None:
    some = examples(told)
    splits = by_run(some, folds, seed)
    whole(splits, len(some))
    for mix in MIXES:
        sizes = [sum(some[i].mix == mix for i in split.judge) for split in splits]
        assert max(sizes) - min(sizes) <= 1


@given(runs, st.integers(2, 10), st.integers(0, 99))
def test_no_link_is_on_both_sides(told: list[tuple[int, str]], folds: int, seed: int) -> None:
    some = examples([*told, (1, "C"), (2, "C")])
    splits = by_link(some, folds, seed)
    whole(splits, len(some))
    for split in splits:
        learnt, judged = ({some[i].link for i in rows} for rows in (split.learn, split.judge))
        assert judged and not learnt & judged


def test_series_of_one_run_stay_together() -> None:
    twice = [each for each in examples([(name, mix) for name in (1, 2) for mix in MIXES * 3]) for _ in (1, 2)]
    for split in by_run(twice, 3, 1):
        assert not {twice[i].run for i in split.learn} & {twice[i].run for i in split.judge}


def test_more_folds_than_links_leave_one_link_out_each() -> None:
    some = examples([(name, "C") for name in (1, 2, 3) for _ in range(4)])
    assert sorted({some[i].link for i in split.judge} for split in by_link(some, 10, 1)) == [
        {"link 1"},
        {"link 2"},
        {"link 3"},
    ]


@given(runs)
def test_by_range_learns_from_short_links_only(told: list[tuple[int, str]]) -> None:
    some = examples([*told, (3, "C"), (4, "C")])
    (split,) = by_range(some, 0.06)
    assert max(some[i].rtt_s for i in split.learn) == 0.06 and min(some[i].rtt_s for i in split.judge) > 0.06
    assert len(split.learn) + len(split.judge) == len(some)


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(UsageError, match="one link"):
        by_link(examples([(1, "C"), (1, "B")]), 5, 1)
    with pytest.raises(UsageError, match="one side of"):
        by_range(examples([(1, "C"), (2, "B")]))


def test_shuffled_windows_are_spread_evenly() -> None:
    mixes = np.array(["C"] * 50 + ["none"] * 25)
    splits = shuffled(mixes, 5, 1)
    whole(splits, 75)
    assert all((mixes[split.judge] == "C").sum() == 10 for split in splits)
