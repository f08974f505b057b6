"""How many streams a path bears that drops what is above a rate."""

import random

import pytest

from mpx.tuning.bearable import Bearable
from mpx.tuning.losses import Counted

SEGMENTS = 100_000


def lost(streams: int, at_random: float, full_from: int) -> Counted:
    """What so many streams lose: at random, and by the power of 1.33 more from where the path is full."""
    share = at_random * max(1.0, streams / full_from) ** 1.33
    return Counted(SEGMENTS, round(SEGMENTS * share))


def test_until_few_were_counted_all_beyond_the_share_are_too_many() -> None:
    bearable = Bearable(4, 23)
    assert [bearable.are_too_many(n) for n in (4, 5, 23)] == [False, True, True]
    assert (bearable.least, bearable.most) == (4, 4)
    bearable.judge(11, lost(11, 0.001, 8))  # more than the share: it says nothing of few
    assert bearable.most == 4
    bearable.judge(4, Counted(SEGMENTS, 19))
    assert bearable.most == 4


def test_half_way_to_too_many_may_be_tried_once_few_were_counted() -> None:
    bearable = Bearable(4, 23)
    bearable.judge(4, lost(4, 0.001, 8))
    assert (bearable.least, bearable.most) == (4, 10)
    assert not bearable.are_too_many(10) and bearable.are_too_many(23)


@pytest.mark.parametrize("full_from", [4, 6, 9, 14, 20])
def test_it_ends_near_where_more_streams_lose_more(full_from: int) -> None:
    bearable = Bearable(4, 23)
    for _ in range(10):
        bearable.judge(bearable.least, lost(bearable.least, 0.001, full_from))
        bearable.judge(bearable.most, lost(bearable.most, 0.001, full_from))
    assert bearable.most == bearable.least
    assert full_from / 2 <= bearable.least <= 2 * full_from


def test_a_policer_alone_leaves_the_share() -> None:
    """Losses of CUBIC streams grow by the power of 1.33 with their number, from the first on."""
    bearable = Bearable(4, 16)
    for n in (4, 8, 6):
        bearable.judge(n, lost(n, 0.001, 1))
    assert bearable.are_too_many(6)
    assert (bearable.least, bearable.most) == (4, 4)


@pytest.mark.parametrize("seed", range(5))
def test_few_losses_are_not_judged(seed: int) -> None:
    bearable, chance = Bearable(4, 23), random.Random(seed)
    bearable.judge(4, lost(4, 0.001, 4))
    bearable.judge(8, Counted(9_000, chance.randrange(20)))  # 18 would be explained
    assert not bearable.are_too_many(8) and bearable.least == 4
