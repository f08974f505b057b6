"""A copy expects what the last one on its path found, or begins as its bandwidth asks for."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.long_path import LongPath

import mpx
from mpx.history import prediction, settled, store
from mpx.history.outcome import Outcome, Route
from mpx.history.prediction import MOST, as_before
from mpx.options import CopyOptions

pytestmark = pytest.mark.peers

SIZE = 24_000_003


@pytest.fixture(params=["up", "down"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LongPath]:
    made = LongPath(tmp_path, request.param, SIZE)
    yield made
    made.close()


@pytest.fixture
def route(way: LongPath) -> Route:
    return Route("127.0.0.1", "127.0.0.1", way.proxy.port, way.direction == "up", "fair")


def began_with(report: mpx.Report) -> int:
    return next(event.streams for event in report.timeline)


def notes(report: mpx.Report) -> list[str]:
    return [note for note in report.notes if note.startswith(("begins with", "expects to need"))]


@pytest.fixture
def copied(way: LongPath, monkeypatch: pytest.MonkeyPatch) -> Callable[..., mpx.Report]:
    monkeypatch.setenv("MPX_STATE_DIR", str(way.folder / "state"))
    # A busy machine lengthens the round trip so that the path would be taken for another one.
    monkeypatch.setattr(prediction, "SAME_PATH", 1000.0)

    def copied(**options: object) -> mpx.Report:
        way.target.unlink(missing_ok=True)
        report = mpx.copy(*way.names, CopyOptions(**options))
        assert way.target.read_bytes() == way.content
        return report

    return copied


def test_what_a_copy_settles_on_is_remembered(
    copied: Callable[..., mpx.Report], route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled, "OPENING_S", 0.05)
    monkeypatch.setattr(settled, "ENOUGH_S", 0.2)
    copied(history=False)
    assert store.everything() == []
    report = copied()
    (outcome,) = store.outcomes(route)
    assert 0 <= time.time() - outcome.when_s < 3600
    assert outcome.rtt_s == report.decisions["rtt_s"]
    assert outcome.goodput_bps < 1.2 * 200e6
    copied(streams=3)  # nobody looked for it
    for options in ({"rate_bps": 100e6}, {"share": 8}, {"max_streams": 2}):
        copied(**options)
    assert store.outcomes(route) == [outcome]


def test_the_next_copy_expects_it(copied: Callable[..., mpx.Report], route: Route) -> None:
    before = Outcome(time.time() - 10, 0.03, 12, 150e6, None)
    store.record(route, before)
    report = copied()
    expected = as_before([before], report.decisions["rtt_s"], before.when_s + 10)
    assert expected is not None
    (note,) = notes(report)
    assert note.startswith(f"expects to need {expected.streams} streams if the path has room: as a copy ")
    assert note.endswith("settled on 12 streams with 150 Mbit/s")
    assert began_with(report) == 4  # others may be there by now
    for options in ({"history": False}, {"policy": "fast"}, {"initial_streams": 4}, {"streams": 4}):
        assert notes(copied(**options)) == []


def test_a_bandwidth_by_hand_says_how_many(copied: Callable[..., mpx.Report], route: Route) -> None:
    store.record(route, Outcome(time.time() - 10, 0.03, 12, 150e6, 65536.0))
    report = copied(bandwidth_bps=200e6)
    (note,) = notes(report)
    assert "for 200 Mbit/s" in note and "64 KiB that a stream had before" in note
    expected = math.ceil(200e6 / 8 * report.decisions["rtt_s"] / 65536)
    assert began_with(report) == min(MOST, expected)
    (other,) = notes(copied(bandwidth_bps=200e6, history=False))
    assert "begins with 4 streams: fewer would do for 200 Mbit/s" in other
    assert "may have in its socket buffer" in other
