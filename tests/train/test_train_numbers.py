"""MiniROCKET, QUANT and the scores, against plain loops."""

from itertools import combinations

import numpy as np
import pytest
from mpx_train.quant import quantiles
from mpx_train.rocket import Rocket
from mpx_train.scores import Scores, confusion_lines, report_lines, worst_pairs

from mpx.recognition.mix import MIXES

DICE = np.random.default_rng(2)


def test_patterns_match_as_in_plain_loops() -> None:
    series = DICE.normal(size=(3, 40))
    rocket = Rocket.fit(series, 84 * 3 * 2, DICE)
    found = rocket.transform(series)
    assert rocket.gaps == (1, 2, 4) and found.shape == (3, 84 * 3 * 2)
    column = 0
    for g, gap in enumerate(rocket.gaps):
        for p, pattern in enumerate(combinations(range(9), 3)):
            weights = [2 if place in pattern else -1 for place in range(9)]
            edge = 4 * gap
            places = range(40) if p % 2 else range(edge, 40 - edge)
            for bias in rocket.biases[g, p]:
                matches = np.array(
                    [
                        sum(
                            weight * series[1, at]
                            for weight, at in zip(
                                weights, range(middle - edge, middle + edge + 1, gap), strict=True
                            )
                            if 0 <= at < 40
                        )
                        for middle in places
                    ]
                )
                nearly = 1e-9  # a bias may be one of the matches, to the last digit
                assert (
                    (matches > bias + nearly).mean() <= found[1, column] <= (matches > bias - nearly).mean()
                )
                column += 1


def test_quantiles_of_the_whole_and_its_halves() -> None:
    series = DICE.normal(size=(2, 33))
    found = quantiles(series)
    whole = np.quantile(series[0], np.linspace(0, 1, 9))
    whole[1::2] -= series[0].mean()
    assert found[0, :9] == pytest.approx(whole)
    half = np.quantile(series[0, :16], np.linspace(0, 1, 4))
    half[1::2] -= series[0, :16].mean()
    assert found[0, 9:13] == pytest.approx(half)
    assert np.isfinite(found).all() and found.shape[0] == 2


def scores(pairs: str) -> Scores:
    true, said = zip(*(pair.split(">") for pair in pairs.split()), strict=True)
    return Scores(np.array(true), np.array(said), np.arange(len(true)) % 2)


def test_six_three_and_two() -> None:
    some = scores("C>C C>CC B>B BC>BB none>C BB>none")
    assert some.six.mean == pytest.approx(2 / 6)
    assert some.three.mean == pytest.approx(4 / 6)
    assert some.two.mean == pytest.approx(5 / 6)
    assert (some.six.least, some.six.most, some.six.windows) == (0.0, pytest.approx(2 / 3), 6)


def test_what_is_confused() -> None:
    some = scores("C>C C>CC C>CC B>BB B>B none>none")
    confusion = some.confusion()
    assert confusion[MIXES.index("C"), MIXES.index("CC")] == 2 and confusion.sum() == 6
    assert worst_pairs(confusion, 2) == [("C", "CC", pytest.approx(2 / 3)), ("B", "BB", pytest.approx(0.5))]
    assert "| C | . | 33.3% | . | 66.7% | . | . |" in confusion_lines(confusion)
    assert "| B | 1.00 | 0.50 | 0.67 | 2 |" in report_lines(confusion)
