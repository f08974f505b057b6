"""Workers for which there is no session: they ask again later, and end the copy where nobody has one."""

import threading
from collections.abc import Callable, Mapping

import pytest
from unit.made_up_context import a_context, a_file

from mpx.engine.carrier import CarrierContext
from mpx.engine.retry import SessionsFull
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import ConnectionLost, Interrupted, MpxError


class TurnedAway(SessionWorker):
    """Settles one file as soon as it has a session; `refusals`: how often it gets none before."""

    def __init__(self, number: int, context: CarrierContext, refusals: int) -> None:
        super().__init__("test", number, "host", context)
        self.refusals = refusals
        self.is_open = False
        self.is_idle = threading.Event()

    def step(self) -> bool:
        if not self.is_open:
            raise SessionsFull("the server is full")
        file = self.context.queue.take_more(lambda _: True)
        if file is not None:
            self.context.queue.settle(file)
        return file is not None

    def open_session(self) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise ConnectionLost("the server is gone")
        self.is_open = True
        self.opened()

    def lost(self, _error: MpxError, /) -> Lost:
        return Lost((), progressed=False)

    def pause(self) -> None:
        self.is_idle.set()

    def drop(self) -> None:
        self.is_open = False

    def live_totals(self) -> Mapping[str, StreamTotals]:
        return {}


class Carrier(WorkerCarrier):
    def __init__(self, context: CarrierContext, refusals: list[int]) -> None:
        super().__init__(context)
        self._workers = [TurnedAway(number, context, count) for number, count in enumerate(refusals)]

    def _share(self) -> None: ...


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.session_worker.FIRST_ASIDE_S", 0.01)
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 0.001)


@pytest.mark.parametrize(("refusals", "error"), [([1, 1000], ""), ([1000, 1000], "the server is gone")])
def test_workers_without_a_session(refusals: list[int], error: str, eventually: Callable[..., None]) -> None:
    context = a_context(retries=2)
    context.queue.put(a_file(1))
    context.queue.end_listing()
    carrier = Carrier(context, refusals)

    def is_over() -> bool:
        carrier.samples()  # as the control loop does
        return context.queue.is_settled or context.failure.cancel.is_set()

    carrier.start()
    carrier.spread()
    eventually(is_over)
    carrier.join()
    assert str(context.failure.error or "") == error


def test_one_worker_begins_and_the_others_follow_at_once() -> None:
    context = a_context()
    context.queue.put(a_file(1))
    carrier = Carrier(context, [0, 0, 0])
    carrier.start()
    assert [worker.is_alive() for worker in carrier._workers] == [True, False, False]
    carrier.spread()
    assert all(worker.is_alive() for worker in carrier._workers)
    context.failure.set(Interrupted())
    carrier.join()


def test_nobody_is_started_once_the_copy_is_over() -> None:
    context = a_context()
    carrier = Carrier(context, [0, 0])
    carrier.start()
    context.failure.set(Interrupted())
    carrier.join()
    carrier.spread()
    assert carrier._workers[1].ident is None


def test_who_is_idle_ends_with_the_last_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.session_worker.IDLE_S", 600.0)
    context = a_context()
    first, last = files = [a_file(1), a_file(1)]
    for file in files:
        context.queue.put(file)
        context.queue.take()
    context.queue.end_listing()
    worker = TurnedAway(0, context, 0)
    worker.is_open = True
    worker.start()
    assert worker.is_idle.wait(30)
    context.queue.settle(first)
    context.queue.settle(last)
    worker.join(30)
    assert not worker.is_alive()
