"""How patient a copy is with a server that is gone."""

import threading

import pytest

from mpx.engine.retry import LONGEST_WAIT_S, Retry, wait_s
from mpx.errors import ConnectionLost, DestinationError
from mpx.options import CopyOptions


def test_the_default_outlasts_a_server_that_is_started_anew() -> None:
    waits = [wait_s(failures) for failures in range(CopyOptions().retries)]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT_S
    assert 110 < sum(waits) < 130


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
