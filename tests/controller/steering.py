"""The paths of one copy, against a controller: what the tests of steering have in common."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from pretended import PATHS, Book, kept
from switches import address

from mpx.engine.path_set import PathSet, Side
from mpx.multipath.server_address import ServerAddress
from mpx.multipath.steering import SteeredPaths
from mpx.report import Severity
from mpx.sdn_client import ControllerClient

SRC, DST = address("src"), address("dst")


class Steering:
    """The paths of a set of four, with what was noted."""

    def __init__(self, url: str) -> None:
        self.client = ControllerClient(url)
        self.known = self.client.assign(SRC, DST, PATHS)
        self.notes: list[str] = []
        self.sets: list[PathSet] = []
        self.far = ServerAddress(DST, required=False, note=self.note)
        self.paths = SteeredPaths(
            self.client, self.known, far=self.far, note=self.note, changed=self.sets.append
        )
        self.paths.start()

    def note(self, text: str, _severity: Severity = Severity.INFO, /) -> None:
        self.notes.append(text)

    def begin(self, path: str, *ports: int, stays: bool = False) -> None:
        told = self.paths.register(path, "source", stays=stays)
        for port in ports:
            told(port)


@contextmanager
def steered(**known: Any) -> Iterator[tuple[Book, Steering]]:
    """A controller that only keeps a book, which has these attributes, and paths of a set of it."""
    book = Book()
    vars(book).update(known)
    with kept(book) as url:
        steering = Steering(url)
        try:
            yield book, steering
        finally:
            steering.paths.close()


def placing(
    monkeypatch: pytest.MonkeyPatch, steering: Steering, before: Callable[[Sequence[int]], None]
) -> None:
    """Have `before` called with the ports of each question for a path when that is under way."""
    place = steering.client.place

    def placed(number: int, ports: Sequence[int], side: Side, path: str) -> None:
        before(ports)
        place(number, ports, side, path)

    monkeypatch.setattr(steering.client, "place", placed)
