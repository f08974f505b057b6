"""What a carrier tells the tuner, from what the kernel tells of its streams."""

from collections.abc import Callable

import pytest
from unit.made_up_context import a_context

from mpx.engine import worker_carrier
from mpx.engine.chunk_gate import ChunkGate
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.session_worker import SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.engine.worker_carrier import LOST_S, WorkerCarrier


class Worker(SessionWorker):
    def __init__(self) -> None:
        super().__init__("made-up", 0, "host", a_context())
        self.now = StreamTotals()

    def live_totals(self) -> dict[str, StreamTotals]:
        return {DEFAULT_PATH: self.now}


class Carrier(WorkerCarrier):
    def __init__(self, *workers: Worker) -> None:
        super().__init__(a_context())
        self._workers = workers

    def _share(self) -> None: ...


def test_a_sample_adds_up_what_the_kernel_tells() -> None:
    near, far = Worker(), Worker()
    carrier = Carrier(near, far)
    carrier.samples()
    near.now = StreamTotals(2, 100, 1, 4.0, 1.0, 0.5, rtts_s=(0.15, 0.15), least_rtt_s=0.1, window_bytes=1000)
    far.now = StreamTotals(1, 50, 2, 1.0, 1.0, 0.0, rtts_s=(0.3,), least_rtt_s=0.2, window_bytes=2000)
    told = carrier.samples()[DEFAULT_PATH]
    assert (told.streams, told.arrived_bytes, told.retransmits) == (3, 150, 3)
    assert (told.limited_by_receiver, told.limited_by_sender) == (0.4, 0.1)
    assert told.queue_s is not None and abs(told.queue_s - 0.05) < 1e-9
    assert told.window_bps == 2000 * 8 / 0.1


def gate_and_carrier(monkeypatch: pytest.MonkeyPatch) -> tuple[ChunkGate, Callable[[float, int], bool]]:
    """Return a gate, and a function of a time and bytes moved: whether the carrier stands still then."""

    class Clock:
        now_s = 0.0

        @classmethod
        def monotonic(cls) -> float:
            return cls.now_s

    monkeypatch.setattr(worker_carrier, "time", Clock)
    worker = Worker()
    carrier = Carrier(worker)

    def is_still(at_s: float, moved_bytes: int) -> bool:
        Clock.now_s, worker.now = at_s, StreamTotals(1, moved_bytes)
        return carrier.samples()[DEFAULT_PATH].still

    return carrier._context.controls[DEFAULT_PATH].gate, is_still


def test_it_is_still_once_what_went_out_has_arrived_or_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuner lets 100 bytes through and waits for them."""
    gate, is_still = gate_and_carrier(monkeypatch)
    gate.open(100)
    assert gate.take(60) == 60
    assert not is_still(10.0, 60)  # there is more to let through
    assert gate.take(60) == 40
    assert not is_still(11.0, 60)
    assert not is_still(12.0, 80)
    assert not is_still(12.0 + LOST_S, 80)
    assert is_still(12.1 + LOST_S, 80)  # the rest is lost
    assert is_still(14.0, 100)
    gate.open(100)
    assert gate.take(100) == 100
    assert not is_still(15.0, 150)


def test_what_is_lost_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let through once more with a later chunk, so more goes through than arrives from then on."""
    gate, is_still = gate_and_carrier(monkeypatch)
    gate.open(100)
    gate.take(100)
    assert not is_still(1.0, 80)
    assert is_still(1.1 + LOST_S, 80)
    gate.open(50)
    gate.take(50)
    assert not is_still(3.0, 129)
    assert is_still(3.1, 130)
    assert is_still(3.2, 150)  # it has come after all
    gate.open(50)
    gate.take(50)
    assert not is_still(3.3, 199)
    assert is_still(3.4, 200)
