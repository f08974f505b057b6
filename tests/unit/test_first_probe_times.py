"""How long `--probe-first` probes, and what it reads of that: with a clock and probes made up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mpx import ops_classifier
from mpx.options import CopyOptions
from mpx.rtt.series import Probe
from mpx.transfer import first_probe
from mpx.transfer.first_probe import probe_first, why_no_choice


class Clock:
    """A clock that goes on where somebody waits."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.is_stopped = False

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return self.is_stopped

    def is_set(self) -> bool:
        return self.is_stopped


@dataclass(eq=False)
class Watch:
    """Ten probes a second, those of the last `keep_s`."""

    clock: Clock
    keep_s: float
    trouble: str = ""
    base_s: float = 0.05
    began_s: float = 0.0

    def begin(self) -> None:
        self.began_s = self.clock.now_s

    def end(self) -> None:
        pass

    def series(self, from_s: float) -> list[Probe]:
        from_s = max(from_s, self.began_s, self.clock.now_s - self.keep_s)
        first, last = (round((t_s - self.began_s) * 10) for t_s in (from_s, self.clock.now_s))
        return [Probe(self.began_s + i / 10, 0.05) for i in range(first, last)]


@dataclass
class Decided:
    """What is used of a transport."""

    options: Any
    plan: Any = field(default_factory=lambda: SimpleNamespace(selects=True))
    found: Any = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(first_probe, "time", made)
    yield made


def probed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, probe_first_s: float, least_s: float
) -> tuple[list[list[Probe]], list[str]]:
    """Return what was read of each path, and the notes."""
    read, notes = list[list[Probe]](), list[str]()
    model = SimpleNamespace(name="knn-dtw", window_s=lambda *_: least_s)
    monkeypatch.setattr(ops_classifier, "load", lambda **_: model)
    monkeypatch.setattr(first_probe, "_found", lambda _p, _m, watch, _n: read.append(watch.series(0.0)))
    options = SimpleNamespace(probe_first_s=probe_first_s, probe_mode="passive", classifier="knn-dtw")
    place: Any = SimpleNamespace(watch=lambda *, keep_s: Watch(clock, keep_s))
    cancel: Any = clock
    transport: Any = Decided(options)
    ends: Any = None

    def note(text: str, *_: object) -> None:
        notes.append(text)

    probe_first(transport, ends, {"default": place}, note, cancel)
    return read, notes


@pytest.mark.parametrize("probe_first_s", [10.0, 60.0, 100.0, 300.0])
def test_it_probes_as_long_as_was_asked_and_reads_two_minutes_of_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, probe_first_s: float
) -> None:
    began_s = clock.now_s
    (read,), notes = probed(clock, monkeypatch, probe_first_s, 5.0)
    assert probe_first_s <= clock.now_s - began_s < probe_first_s + 1
    assert read[-1].t_s - read[0].t_s >= min(probe_first_s, 120.0)
    assert not notes


def test_what_a_classifier_cannot_read_is_not_probed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    began_s = clock.now_s
    read, notes = probed(clock, monkeypatch, 5.0, 10.0)
    assert not read and clock.now_s == began_s
    (said,) = notes
    assert said.endswith("knn-dtw reads 10 s of probes at least; give --probe-first 10s")


def test_what_was_probed_until_a_stop_is_not_read(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.is_stopped = True
    read, notes = probed(clock, monkeypatch, 10.0, 5.0)
    assert not read and not notes


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"congestion": "reno"}, "--congestion reno leaves"),
        ({"policy": "fast"}, "--policy fast leaves"),
        ({"transport": "mptcp"}, "over Multipath TCP"),
        ({}, "there is no congestion control to choose here"),  # as in downloads from servers that choose it
    ],
)
def test_what_leaves_no_choice_is_named(options: dict[str, Any], why: str) -> None:
    assert why in why_no_choice(CopyOptions(**options))
