"""Retrieves that begin before their turn, to another server: it is told for which one a connection is."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_client import CONTENT
from secure_client import SecureClient, secure_server, token_of

from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.extensions.third_party import Target, encode_target
from mpx.endpoints.ftp.openings import Openings
from mpx.serve import Server, moving, retrieves
from mpx.serve.connection import Connection
from mpx.serve.other_server import OtherServer
from mpx.serve.send import BlockSender
from mpx.serve.session import Session
from mpx.serve.token_serving import TokenServing
from mpx.serve.transfer import Transfer


class Two:
    """A session with each of two servers, the first of which sends to the other."""

    def __init__(self, sender: SecureClient, receiver: SecureClient, folder: Path) -> None:
        self.sender, self.receiver, self._folder = sender, receiver, folder

    def carry(self, count: int, streams: int) -> None:
        """Queue so many transfers, and see that all of them come whole."""
        self.receiver.send(*(f"STOR {number}" for number in range(count)))
        parallelism = f"OPTS RETR Parallelism={streams},{streams},{streams};"
        self.sender.send(parallelism, *["RETR file"] * count)
        for client, first in ((self.sender, [200]), (self.receiver, [])):
            codes = [client.reply().code for _ in range(len(first) + 2 * count)]
            assert codes == first + [codes[len(first)], 226] + [125, 226] * (count - 1)
        for number in range(count):
            stored = self._folder / f"{number}"
            assert stored.read_bytes() == CONTENT
            stored.unlink()


@pytest.fixture
def two(serving: tuple[Server, TokenServing], tmp_path: Path) -> Iterator[Two]:
    server, secure = serving
    folder = tmp_path / "to"
    folder.mkdir()
    with (
        token_of(secure),
        SecureClient(server.port) as sender,
        secure_server(folder) as (other, _),
        SecureClient(other.port) as receiver,
    ):
        for client in (sender, receiver):
            assert client.do("MODE E").code == 200
        ticket = receiver.ticket(Direction.UP)
        target = Target((("127.0.0.1", receiver.port),), secure.key_name, ticket)
        assert sender.do(f"TARGET {encode_target(target)}").code == 200
        yield Two(sender, receiver, folder)


def test_those_that_have_begun_count(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, begin, send = threading.Event(), retrieves._next, Openings.send
    held = iter([True])  # of the connections of the first transfer one waits until the next has begun
    firsts: list[int] = []

    class Held(BlockSender):
        def serve(self, connection: Connection) -> None:
            if next(held, False):
                assert has_begun.wait(30)
            super().serve(connection)

    def next_one(session: Session, number: int, streams: int) -> Transfer | None:
        begun = begin(session, number, streams)
        if begun:
            has_begun.set()
        return begun

    def say(self: Openings, *given: Any, first: int, **more: Any) -> None:
        firsts.append(first)
        send(self, *given, first=first, **more)

    monkeypatch.setattr(moving, "BlockSender", Held)
    monkeypatch.setattr(retrieves, "_next", next_one)
    monkeypatch.setattr(Openings, "send", say)
    two.carry(3, streams=2)
    two.carry(2, streams=4)  # two more connections
    assert firsts == [0, 0, 3, 3]


def test_nothing_begins_before_all_connections_are_there(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else those that are still to come would say that they are for what has begun, and not for this one."""
    has_looked, begin, wait = threading.Event(), retrieves._next, OtherServer.wait
    is_late = iter([False, True])
    there: list[bool] = []

    def late(self: OtherServer, is_over: Callable[[], bool]) -> socket.socket | None:
        if next(is_late, False):
            has_looked.wait(1.0)  # the other one is done long before
            there.append(True)
        return wait(self, is_over)

    def next_one(session: Session, number: int, streams: int) -> Transfer | None:
        if not there:
            has_looked.set()
        return begin(session, number, streams)

    monkeypatch.setattr(OtherServer, "wait", late)
    monkeypatch.setattr(retrieves, "_next", next_one)
    two.carry(2, streams=2)
    assert not has_looked.is_set()
