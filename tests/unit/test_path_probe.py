"""Questions over one path of a copy."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from mpx.engine.endpoint import Endpoint, Rtt
from mpx.errors import ConnectionLost
from mpx.multipath import prober
from mpx.multipath.prober import PathProber

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

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def far() -> Far:
    return Far()


@pytest.fixture
def mute(far: Far) -> None:
    far.may_answer.clear()


@pytest.fixture
def probe(far: Far, monkeypatch: pytest.MonkeyPatch) -> Iterator[PathProber]:
    monkeypatch.setattr(prober, "INTERVAL_S", 1000.0)
    may_begin = threading.Event()
    may_begin.set()

    def open_session(_: Callable[[int], None]) -> Endpoint:
        return cast("Any", far)

    made = PathProber("0", open_session, steer=lambda _: None, ended=lambda _: None, may_begin=may_begin)
    made.start()
    yield made
    far.may_answer.set()
    made.end()
    made.join(30)
    assert not made.is_alive() and far.closed


def test_it_asks_at_once_when_it_is_told_to(far: Far, probe: PathProber, eventually: Eventually) -> None:
    eventually(lambda: probe.latest is not None and probe.asked_at_s is None)
    before_s = probe.answered_at_s
    probe.ask()
    eventually(lambda: probe.answered_at_s > before_s)
    assert far.asked == 2


def test_a_question_that_waits_is_known(far: Far, probe: PathProber, eventually: Eventually) -> None:
    eventually(lambda: probe.latest is not None and probe.asked_at_s is None)
    far.may_answer.clear()
    probe.ask()
    eventually(lambda: far.asked == 2)
    asked_s = probe.asked_at_s
    probe.ask()  # changes nothing
    assert asked_s is not None and probe.asked_at_s == asked_s > probe.answered_at_s
    far.may_answer.set()
    eventually(lambda: probe.asked_at_s is None and probe.answered_at_s > asked_s)
    answered_s = probe.answered_at_s
    probe.ask()
    eventually(lambda: probe.answered_at_s > answered_s)
    assert far.asked == 3


@pytest.mark.usefixtures("mute", "probe")
def test_a_session_that_is_being_opened_leaves_no_question(
    far: Far, probe: PathProber, eventually: Eventually
) -> None:
    """It takes several answers, and some of the controller and the server's login."""
    eventually(lambda: far.asked == 1)
    assert probe.asked_at_s is None
    far.may_answer.set()
    eventually(lambda: probe.latest is not None)


def test_a_session_that_is_lost_leaves_no_question(
    far: Far, probe: PathProber, eventually: Eventually
) -> None:
    eventually(lambda: probe.latest is not None and probe.asked_at_s is None)
    far.is_lost = True
    probe.ask()
    eventually(lambda: far.asked == 2 and probe.asked_at_s is None)
