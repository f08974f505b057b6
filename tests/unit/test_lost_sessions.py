"""What a worker does about sessions that are lost, step by step, without threads and without waiting."""

import threading
from collections.abc import Mapping
from dataclasses import replace

import pytest
from unit.made_up_context import Onlooker, a_context, a_file

from mpx.engine import session_worker
from mpx.engine.carrier import CarrierContext
from mpx.engine.session_worker import FIRST_ASIDE_S, IDLE_S, LONGEST_ASIDE_S, Lost, SessionWorker
from mpx.engine.stop import Failure
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, MpxError
from mpx.report import Severity

RETRIES = 3


class Cancel(threading.Event):
    """Waits in no time, and keeps account of how long that would have been."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waited_s += timeout or 0.0
        return self.is_set()


class Notes(Onlooker):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, _: Severity = Severity.INFO, /) -> None:
        self.notes.append(text)


class Losing(SessionWorker):
    """Loses its session so many times, each after it has `progressed`, and then settles its file.

    Aside, it is refused a session `refusals` times.
    """

    def __init__(
        self, context: CarrierContext, *, number: int = 0, losses: int = 0, progressed: bool = False
    ) -> None:
        super().__init__("test", number, "host", context)
        self.losses, self.progressed = losses, progressed
        self.refusals = 0
        self.asked_s: list[float] = []  # when it asked for a session, aside

    def step(self) -> bool:
        if self.losses:
            self.losses -= 1
            raise ConnectionLost("lost")
        file = self.context.queue.take_more(lambda _: True)
        assert file is not None
        self.context.queue.settle(file)
        return True

    def lost(self, _error: MpxError, /) -> Lost:
        return Lost((), progressed=self.progressed)

    def open_session(self) -> None:
        cancel = self.context.failure.cancel
        assert isinstance(cancel, Cancel)
        self.asked_s.append(cancel.waited_s)
        self.refusals -= 1
        if self.refusals >= 0:
            raise ConnectionLost("refused")
        self.opened()

    def pause(self) -> None: ...

    def drop(self) -> None: ...

    def live_totals(self) -> Mapping[str, StreamTotals]:
        return {}


@pytest.fixture
def cancel(monkeypatch: pytest.MonkeyPatch) -> Cancel:
    """What the workers wait for, and whose account is their clock."""
    cancel = Cancel()

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return cancel.waited_s

    monkeypatch.setattr(session_worker, "time", Clock)
    return cancel


@pytest.fixture
def context(cancel: Cancel) -> CarrierContext:
    made = replace(a_context(retries=RETRIES), failure=Failure(cancel), supervisor=Notes())
    made.queue.put(a_file(1))
    made.queue.end_listing()
    return made


def notes(context: CarrierContext) -> list[str]:
    assert isinstance(context.supervisor, Notes)
    return context.supervisor.notes


@pytest.mark.parametrize("progressed", [True, False])
def test_retries_count_anew_once_something_has_come(context: CarrierContext, progressed: bool) -> None:
    Losing(context, losses=3 * RETRIES, progressed=progressed).run()
    assert context.queue.is_settled == progressed
    assert str(context.failure.error or "") == ("" if progressed else "lost")


@pytest.mark.parametrize(
    ("number", "is_another_admitted", "is_aside"), [(0, False, False), (0, True, True), (1, False, True)]
)
def test_who_was_never_admitted_stands_aside_where_others_do_the_work(
    context: CarrierContext, number: int, is_another_admitted: bool, is_aside: bool
) -> None:
    if is_another_admitted:
        context.events.admitted.set()
    worker = Losing(context, number=number, losses=1)
    worker.run()
    assert notes(context) == [
        "no further session with host: lost" if is_aside else "trying again after: lost"
    ]
    assert len(worker.asked_s) == is_aside and context.queue.is_settled


def test_who_was_admitted_before_tries_again(context: CarrierContext) -> None:
    worker = Losing(context, number=1, losses=1)
    worker.opened()
    worker.run()
    assert notes(context) == ["trying again after: lost"] and not worker.asked_s


def test_who_finds_no_work_after_a_loss_is_not_reconnecting(context: CarrierContext) -> None:
    attempts: list[int] = []

    class Idle(Losing):
        def step(self) -> bool:
            attempts.append(self.context.events.reconnecting.attempt)
            return len(attempts) != 2 and super().step()

    worker = Idle(context, losses=1)
    worker.opened()
    worker.run()
    assert attempts == [0, 1, 0]


def test_who_stands_aside_asks_less_often_each_time(context: CarrierContext) -> None:
    worker = Losing(context, number=1, losses=1)
    worker.refusals = 5
    worker.run()
    apart_s = [later - before for before, later in zip([0.0, *worker.asked_s], worker.asked_s, strict=False)]
    planned_s = [min(FIRST_ASIDE_S * 2**i, LONGEST_ASIDE_S) for i in range(6)]
    assert apart_s == pytest.approx(planned_s, abs=2 * IDLE_S)
    assert context.queue.is_settled and not worker.gone


def test_who_is_needed_asks_at_once(context: CarrierContext) -> None:
    worker = Losing(context, number=1, losses=1)
    worker.is_needed = True
    worker.run()
    assert worker.asked_s == [0.0] and context.queue.is_settled


def test_where_the_last_is_refused_again_and_again_the_copy_ends(context: CarrierContext) -> None:
    worker = Losing(context, number=1, losses=1)
    worker.is_needed, worker.refusals = True, 1000
    worker.run()
    assert str(context.failure.error) == "refused" and len(worker.asked_s) == RETRIES + 1
