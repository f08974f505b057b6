"""An endpoint whose connection is lost at any moment: asked again, a listing tells every name once."""

import random
import threading
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost
from mpx.location import Location
from mpx.transfer.retrying import RetryingEndpoint

NAMES = [f"name {i}" for i in range(50)]


class Fragile(LocalEndpoint):
    """Lists NAMES and loses its connection after so many of them, each time it is asked."""

    def __init__(self, losses: list[int], orders: list[list[str]] | None = None) -> None:
        super().__init__(Location("file", "/"), writing=False)
        self.losses = losses
        self.orders = orders or []
        self.closed = 0

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo]]:
        loss = self.losses.pop(0) if self.losses else None
        names = self.orders.pop(0) if self.orders else NAMES
        for number, each in enumerate(names):
            if number == loss:
                raise ConnectionLost("lost")
            yield each, FileInfo(Kind.FILE, number)
        if loss == len(names):
            raise ConnectionLost("lost at the end")

    def close(self) -> None:
        self.closed += 1


@settings(max_examples=8)
@given(st.lists(st.integers(0, 50), max_size=2))
def test_every_name_is_told_once(losses: list[int]) -> None:
    end = Fragile(list(losses))
    told = [name for name, _ in RetryingEndpoint(end, 5, threading.Event()).entries("folder")]
    assert told == NAMES
    assert end.closed == len(losses)


def test_a_folder_that_changed_meanwhile_is_not_told_wrongly() -> None:
    others = [NAMES[:], random.Random(1).sample(NAMES, 50), NAMES[:5]]
    for changed in others[1:]:
        end = Fragile([20], [NAMES, changed, changed, changed])
        told = RetryingEndpoint(end, 1, threading.Event()).entries("folder")
        with pytest.raises(ConnectionLost, match="has changed since"):
            list(told)


def test_retries_have_an_end() -> None:
    end = Fragile([3, 3, 3, 3])
    with pytest.raises(ConnectionLost, match="lost"):
        list(RetryingEndpoint(end, 1, threading.Event()).entries("folder"))
    assert RetryingEndpoint(end, 0, threading.Event()).ask(lambda: 5) == 5
