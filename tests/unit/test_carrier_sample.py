"""What a carrier tells the tuner, from what the kernel tells of its streams."""

from unit.made_up_context import a_context

from mpx.endpoints.ftp.mode_e.carriers import _WorkerCarrier
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import StreamTotals


class Lane:
    gone = False

    def __init__(self) -> None:
        self.now = StreamTotals()

    def totals(self) -> dict[str, StreamTotals]:
        return {DEFAULT_PATH: self.now}

    def silent_s(self, path: str) -> None: ...

    def renew(self) -> None: ...
    def cut(self) -> None: ...
    def start(self) -> None: ...
    def join(self) -> None: ...


class Carrier(_WorkerCarrier):
    def __init__(self, *workers: Lane) -> None:
        super().__init__(a_context())
        self._workers = workers

    def _share(self) -> None: ...


def test_a_sample_adds_up_what_the_kernel_tells() -> None:
    near, far = Lane(), Lane()
    carrier = Carrier(near, far)
    carrier.samples()
    near.now = StreamTotals(2, 100, 1, 4.0, 1.0, 0.5, timed=2, rtts_s=0.3, least_rtt_s=0.1, window_bytes=1000)
    far.now = StreamTotals(1, 50, 2, 1.0, 1.0, 0.0, timed=1, rtts_s=0.3, least_rtt_s=0.2, window_bytes=2000)
    told = carrier.samples()[DEFAULT_PATH]
    assert (told.streams, told.arrived_bytes, told.retransmits) == (3, 150, 3)
    assert (told.limited_by_receiver, told.limited_by_sender) == (0.4, 0.1)
    assert told.queue_s is not None and abs(told.queue_s - 0.1) < 1e-9
    assert told.window_bps == 2000 * 8 / 0.1
