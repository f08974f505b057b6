"""What a carrier tells the tuner, from what the kernel tells of its streams."""

from unit.made_up_context import a_context

from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.session_worker import SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.engine.worker_carrier import WorkerCarrier


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
