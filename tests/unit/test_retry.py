"""How patient a copy is with a server that is gone."""

import threading

import pytest

from mpx.engine.retry import LONGEST_WAIT_S, Retry, wait_s
from mpx.engine.stop import Failure
from mpx.errors import ConnectionLost, DestinationError, Interrupted
from mpx.options import CopyOptions


def test_the_default_outlasts_a_server_that_is_started_anew() -> None:
    waits = [wait_s(failures) for failures in range(CopyOptions().retries)]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT_S
    assert 110 < sum(waits) < 130


def test_the_wait_stays_the_longest_however_often_it_is_tried() -> None:
    assert wait_s(1) == 0.5
    assert wait_s(100_000) == LONGEST_WAIT_S


def test_attempts_are_counted_from_the_last_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 0.001)
    retry, lost = Retry(2, threading.Event()), ConnectionLost("lost")
    for _ in range(3):
        retry.again(lost)
        retry.again(lost)
        retry.progressed()
    retry.again(lost)
    retry.again(lost)
    with pytest.raises(ConnectionLost, match="lost"):
        retry.again(lost)


def test_what_cannot_get_better_is_not_tried_again() -> None:
    with pytest.raises(DestinationError, match="read-only"):
        Retry(2, threading.Event()).again(DestinationError("read-only"))


def test_what_is_stopped_is_interrupted_and_not_lost() -> None:
    """Else a dry run that is interrupted while its server is away would end as if that was lost for good."""
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        Retry(2, stop).again(ConnectionLost("lost"))


def test_the_user_ends_a_wait_as_an_error_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 3600.0)
    monkeypatch.setattr("mpx.engine.retry.LONGEST_WAIT_S", 3600.0)
    for by_user in (True, False):
        failure = Failure(threading.Event(), threading.Event())
        asking = threading.Timer(0.05, (failure.by_user if by_user else failure.cancel).set)
        asking.start()
        with pytest.raises(Interrupted):
            Retry(2, failure.stopping).again(ConnectionLost("lost"))
        asking.join()
