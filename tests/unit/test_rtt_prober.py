"""The prober of one path: when it asks, and what it knows meanwhile."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, cast

import pytest

from mpx.engine.endpoint import Rtt
from mpx.errors import ConnectionLost
from mpx.rtt import prober
from mpx.rtt.prober import Prober, beside_listing

Eventually = Callable[..., None]


class Far:
    """A server that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.closed = 0, 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_lost = False

    def measure_rtt(self) -> Rtt:
        self.asked += 1
        self.may_answer.wait()
        if self.is_lost:
            raise ConnectionLost("nothing comes")
        return Rtt(0.01, 0.01, "cubic", congestion_is_fixed=False, address=("h", 1), local_host="me")

    def pause(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def far() -> Far:
    return Far()


@pytest.fixture
def mute(far: Far) -> None:
    far.may_answer.clear()


@pytest.fixture
def probe(far: Far, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prober]:
    monkeypatch.setattr(prober, "INTERVAL_S", 1000.0)
    made = Prober("path", (contextlib.closing(cast("Any", far)) for _ in count()))
    made.start()
    yield made
    far.may_answer.set()
    made.end()
    made.join(30)
    assert not made.is_alive() and far.closed


def test_it_asks_at_once_when_it_is_told_to(far: Far, probe: Prober, eventually: Eventually) -> None:
    eventually(lambda: probe.measured.rtt is not None and probe.measured.asked_at_s is None)
    before_s = probe.measured.answered_at_s
    probe.ask()
    eventually(lambda: probe.measured.answered_at_s > before_s)
    assert far.asked == 2


def test_a_question_that_waits_is_known(far: Far, probe: Prober, eventually: Eventually) -> None:
    eventually(lambda: probe.measured.rtt is not None and probe.measured.asked_at_s is None)
    far.may_answer.clear()
    probe.ask()
    eventually(lambda: far.asked == 2)
    asked_s = probe.measured.asked_at_s
    probe.ask()  # changes nothing
    assert asked_s is not None and probe.measured.asked_at_s == asked_s > probe.measured.answered_at_s
    far.may_answer.set()
    eventually(lambda: probe.measured.asked_at_s is None and probe.measured.answered_at_s > asked_s)
    answered_s = probe.measured.answered_at_s
    probe.ask()
    eventually(lambda: probe.measured.answered_at_s > answered_s)
    assert far.asked == 3


@pytest.mark.usefixtures("mute", "probe")
def test_a_session_that_is_being_opened_leaves_no_question(
    far: Far, probe: Prober, eventually: Eventually
) -> None:
    """It takes several answers, and some of the controller and the server's login."""
    eventually(lambda: far.asked == 1)
    assert probe.measured.asked_at_s is None
    far.may_answer.set()
    eventually(lambda: probe.measured.rtt is not None)


def test_a_session_that_is_lost_leaves_no_question(far: Far, probe: Prober, eventually: Eventually) -> None:
    eventually(lambda: probe.measured.rtt is not None and probe.measured.asked_at_s is None)
    far.is_lost = True
    probe.ask()
    eventually(lambda: far.asked == 2 and probe.measured.asked_at_s is None)


@pytest.mark.parametrize("has_let_go", [False, True])
def test_a_session_that_was_let_go_is_left_to_who_has_it(has_let_go: bool) -> None:
    listed = threading.Thread()
    listed.start()
    lists, another = Far(), Far()
    (session,) = beside_listing(
        cast("Any", lists), listed, lambda: cast("Any", another), has_let_go=lambda: has_let_go
    )
    with session as endpoint:
        endpoint.measure_rtt()
    assert (lists.asked, another.asked) == ((0, 1) if has_let_go else (1, 0))
