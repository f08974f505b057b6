"""The bench of links drawn at random: what it makes of the runs of a link, and which it repeats."""

import argparse
from types import SimpleNamespace
from typing import Any

import pytest
import tuner_links
from apt.measure import Goodput
from apt.random_links import Drawn, draw
from apt.tools import DOWN, fixed
from mpx_lab.series import Sample

RATES = {1: 10e6, 4: 40e6, 16: 98e6, 64: 100e6, 128: 90e6}


def alone() -> Drawn:
    return next(each for n in range(1, 99) if not (each := draw(n, 3)).link.beside)


def run(rate_bps: float, from_s: float = 0.0) -> Any:
    """A run at that rate from then on, nothing before."""
    times = [i / 10 for i in range(1, 301)]
    samples = [Sample(0.0, 0), *(Sample(t, round(rate_bps / 80) * (t > from_s)) for t in times)]
    return SimpleNamespace(goodput=Goodput(samples), late_streams=lambda: 20.0)


def test_a_link_is_judged_by_the_best_fixed_number() -> None:
    runs: dict[str, list[Any]] = {fixed(number): [run(rate)] for number, rate in RATES.items()}
    runs["auto"] = [run(95e6), run(95e6, from_s=3.0), run(97e6)]
    judged = tuner_links._judged(alone(), runs)
    assert (judged["best"], judged["fewest"], judged["streams"]) == (64, 16, 20.0)
    assert judged["best_bps"] == pytest.approx(100e6)
    assert judged["shares"] == pytest.approx([0.95, 0.855, 0.97])
    assert judged["reached_s"] == judged["best_reached_s"] == pytest.approx(1.0)


def test_the_best_fixed_numbers_are_repeated() -> None:
    drawn, stored = alone(), {}
    for number, rate in RATES.items():
        stored[tuner_links._cell(drawn, fixed(number), 32.0, 1).name] = run(rate)
    store: Any = SimpleNamespace(has=lambda cell: cell.name in stored, load=lambda cell: stored[cell.name])
    assert tuner_links._numbers(drawn, store, 32.0, 1) == [fixed(number) for number in RATES]
    assert tuner_links._numbers(drawn, store, 32.0, 2) == [fixed(64), fixed(16)]


def test_which_links_and_tools() -> None:
    assert list(tuner_links._range("3-5")) == [3, 4, 5] and list(tuner_links._range("7")) == [7]
    with pytest.raises(argparse.ArgumentTypeError, match="FIRST-LAST"):
        tuner_links._range("some")
    beside = next(each for n in range(1, 99) if (each := draw(n, 3)).link.beside)
    assert tuner_links._ours(alone().link) == "auto" and tuner_links._ours(beside.link) == "mpx-fast"
    assert tuner_links._cell(beside, "auto", 32.0, 1).tool.endswith(DOWN) == beside.down
