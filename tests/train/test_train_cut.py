"""Windows of runs: where they are cut, what disturbs those that are learnt from, what stays known of each."""

from dataclasses import replace

import numpy as np
import pytest
from mpx_train.cut import BASE_TOO_HIGH, MISALIGNED, drawn, each_second, even, gridded, joined
from ops_examples import example
from simulated_background import Wan

from mpx.recognition.observation import ACTIVE, ACTIVE_SHORT, TRANSFER_BBR
from mpx.rtt.series import Probe

WAN = Wan(50e6, 0.05, 1.0)


def counting(seconds: float, *, base_s: float = 0.06) -> list[Probe]:
    """Each probe tells its own number."""
    return [Probe(i / 10, base_s + i / 1e6) for i in range(round(seconds * 10))]


def test_even_windows_follow_one_another() -> None:
    grids = gridded([example("C", counting(35), wan=WAN)])
    found = even(grids, 10.0)
    assert found.windows.rtt_s.shape == (3, 100) and found.paper_ms.shape == (3, 10)
    assert np.concatenate(found.windows.rtt_s) == pytest.approx([0.06 + i / 1e6 for i in range(300)])
    assert found.windows.base_s == pytest.approx(found.windows.rtt_s.min(axis=1))
    assert found.paper_ms[1] == pytest.approx([60 + i / 1e3 for i in range(100, 200, 10)])
    assert even(grids, 10.0, base_known=True).windows.base_s.tolist() == [0.05] * 3
    seen = [replace(grid, example=replace(grid.example, base_s=0.055)) for grid in grids]
    assert even(seen, 10.0, base_known=True).windows.base_s.tolist() == [0.055] * 3
    assert (set(found.mix), set(found.link), found.is_clean.all()) == ({"C"}, {"link"}, True)


def test_windows_of_each_second_end_with_the_series_and_know_the_least_until_then() -> None:
    falling = [Probe(i / 10, 0.06 - i / 1e6) for i in range(125)]
    for series in counting(12.5), falling:
        (grid,) = gridded([example("C", series, wan=WAN)])
        found = each_second(grid, 10.0).windows
        assert found.rtt_s[:, -1] == pytest.approx([series[i].rtt_s for i in (104, 114, 124)])
        least = [min(p.rtt_s or 1 for p in series[5 : i + 1]) for i in (104, 114, 124)]
        assert found.base_s == pytest.approx(least)


def test_a_run_that_is_too_short_or_silent_has_no_windows() -> None:
    short, silent = example("C", counting(9.9)), example("C", [])
    lost = example("C", [Probe(i / 10, None) for i in range(200)])
    whole = example("B", counting(10))
    found = even(gridded([short, silent, lost, whole]), 10.0)
    assert found.mix.tolist() == ["B"]


def test_drawn_windows_are_disturbed_within_limits_and_stay_in_their_run() -> None:
    runs = [example(mix, counting(30), run=mix, wan=WAN) for mix in ("C", "B")]
    grids = gridded(runs)
    found = drawn(grids, 10.0, 20, np.random.default_rng(1))
    assert len(found) == 2 * 3 * 20 and (found.run == found.mix).all()
    rtt, lost = found.windows.rtt_s, found.windows.lost
    assert ((rtt >= 0.06) & (rtt < 0.06 + 3e-4 + 0.02)).all()
    assert len({round(row.min(), 6) for row in rtt}) > 30  # from all over the run
    assert 0.3 < (lost.sum(axis=1) > 0).mean() < 0.7 and lost.mean(axis=1).max() < 0.3
    base, least = found.windows.base_s, rtt.min(axis=1)
    assert (base <= least + 1e-12).all() and (base <= 0.05 * (1 + BASE_TOO_HIGH) + 1e-12).any()
    assert (base >= 0.05 - 1e-12).all() and len(np.unique(base.round(4))) > 5
    assert 0.2 < (base == 0.05).mean() < 0.5 and (base == least).any()


def test_the_same_dice_draw_the_same_windows() -> None:
    grids = gridded([example("C", counting(30))])
    first, again = (drawn(grids, 10.0, 5, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.windows.rtt_s, again.windows.rtt_s)


@pytest.mark.parametrize(
    ("kind", "profile", "window_s", "begins_s"),
    [(ACTIVE, "paper", 20.0, (0, 20)), (ACTIVE_SHORT, "short", 10.0, (0, 5, 10, 15, 20, 25, 30, 35, 40))],
)
def test_windows_of_bursts_begin_with_them(
    kind: str, profile: str, window_s: float, begins_s: tuple[int, ...]
) -> None:
    goodput = [(i / 10, float(i)) for i in range(500)]
    grids = gridded([example("C", counting(50), part="active", profile=profile, goodput=goodput)], kind)
    own = drawn(grids, window_s, 300, np.random.default_rng(1), kind).windows.goodput_bps
    assert own is not None
    near = {begin * 10 + off for begin in begins_s for off in range(-MISALIGNED, MISALIGNED + 1)}
    last = 500 - round(window_s * 10)
    assert set(own[:, 0].tolist()) == {step for step in near if 0 <= step <= last}


def test_goodput_goes_with_its_window() -> None:
    goodput = [(i / 10, float(i)) for i in range(300)]
    run = example("C", counting(30), part="transfer", own=("bbr", 16), goodput=goodput)
    grids = gridded([run], TRANSFER_BBR)
    streams = even(grids, 10.0).windows.streams
    assert streams is not None and streams.tolist() == [16.0] * 3
    own = even(grids, 10.0).windows.goodput_bps
    assert own is not None and np.concatenate(own).tolist() == [float(i) for i in range(300)]


def test_windows_of_several_runs_together() -> None:
    parts = [even(gridded([example(mix, counting(10))]), 5.0) for mix in ("C", "BB")]
    assert joined(parts).mix.tolist() == ["C", "C", "BB", "BB"]
    assert joined(parts).where(np.array([3, 0])).mix.tolist() == ["BB", "C"]
