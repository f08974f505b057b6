"""What the tuner believes of the curve G(n), and how noisy it takes the network to be."""

import math
from random import Random

import pytest

from mpx.tuning.curve_belief import CurveBelief


def test_belief_prefers_the_candidate_that_predicts() -> None:
    belief = CurveBelief(most=256, start=4)
    wide = belief.quantile(0.8) / belief.quantile(0.2)
    for i, n in enumerate([4, 4, 16, 16, 64, 64, 16, 16]):
        belief.add(i * 0.5, n, 1e9 * min(1.0, n / 20), 1.0)
    assert belief.quantile(0.8) / belief.quantile(0.2) < wide / 4
    assert 18 <= belief.target() <= 40
    assert belief.fit(25) > 0.7 > 0.1 > max(belief.fit(100), belief.fit(5))
    assert belief.good(25) > 0.7 > 0.1 > belief.good(100)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_belief_learns_how_noisy_the_network_is(noise: float) -> None:
    belief, dice, off = CurveBelief(most=256, start=4), Random(1), 0.0
    for i in range(100):
        off = off * math.exp(-0.1) + noise * dice.gauss(0, math.sqrt(1 - math.exp(-0.2)))
        belief.add(0.1 * i, (4, 8)[i // 10 % 2], 1e9 * math.exp(off), 1.0)
    assert 0.7 * noise <= belief.noise <= max(0.03, 1.4 * noise)


def test_a_look_is_worth_most_where_the_candidates_part() -> None:
    """Known: no more goodput from 16 to 64 streams. What is below 4 is open, what is above 64 is not."""
    belief = CurveBelief(most=256, start=16)
    for i, n in enumerate([16, 64, 16, 64]):
        belief.add(i * 0.5, n, 1e9, 1.0)
    assert belief.value(16, 4, 0.1) > 4 * belief.value(16, 64, 0.1)
    assert belief.value(16, 4, 0.1) > belief.value(16, 4, 0.3) > 0
