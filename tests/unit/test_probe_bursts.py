"""Which bursts go out while a path is probed, and that they go out in time, one connection each."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.errors import ConnectionLost, UsageError
from mpx.net import congestion_control, tcp
from mpx.probing.bursts import PROFILE_KINDS, Burst, Sender, bursts, permitted_bursts
from mpx.recognition.observation import period_s


def test_the_profiles() -> None:
    short = [(0.0, 2.0, "cubic"), (2.0, 4.0, "bbr"), (5.0, 7.0, "cubic"), (7.0, 9.0, "bbr")]
    assert bursts("active short", 10.0) == [Burst(*each) for each in short]
    paper = [(0.0, 5.0, "cubic"), (5.0, 10.0, "bbr"), (10.0, 15.0, "cubic")]
    assert bursts("active", 20.0) == [Burst(*each) for each in paper]


@given(st.sampled_from(sorted(PROFILE_KINDS.values())), st.integers(1, 50))
def test_they_follow_one_another_and_each_period_ends_with_nothing(kind: str, periods: int) -> None:
    found = bursts(kind, periods * period_s(kind))
    assert all(earlier.until_s <= later.from_s for earlier, later in pairwise(found))
    for turn in range(1, periods + 1):
        end_s = turn * period_s(kind)
        assert not any(each.from_s < end_s <= each.until_s for each in found)
        assert any(each.from_s == end_s for each in found) == (turn < periods)


@given(st.sets(st.sampled_from(["cubic", "bbr", "reno"])))
def test_what_may_be_used_stands_for_what_may_not(usable: set[str]) -> None:
    def why_not(name: str) -> str:
        return "" if name in usable else f"{name} is locked"

    planned = bursts("active", 40.0)
    if not usable or usable == {"bbr"}:  # bbr never stands for what is gentler
        with pytest.raises(UsageError, match="locked"):
            permitted_bursts(planned, why_not)
        return
    found, refused = permitted_bursts(planned, why_not)
    assert [(each.from_s, each.until_s) for each in found] == [
        (each.from_s, each.until_s) for each in planned
    ]
    assert {each.congestion for each in found} <= usable
    assert all(name in usable or f"{name} is locked" in refused for name in ("cubic", "bbr"))
    assert (refused == "") == ({"cubic", "bbr"} <= usable) == (found == planned)


class Drain:
    """A sink that swallows, over loopback."""

    def __init__(self, *, broken: bool = False) -> None:
        self.opened: list[str] = []
        self.made_ready = 0
        self.received = 0
        self._broken = broken
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []

    def open(self, congestion: str) -> socket.socket:
        if self._broken:
            raise ConnectionLost("the sink is gone")
        connection = tcp.connect(self._listener.getsockname(), 10, congestion=congestion)
        self.opened.append(congestion_control.congestion_of(connection))
        self._threads.append(threading.Thread(target=self._swallow, args=(self._listener.accept()[0],)))
        self._threads[-1].start()
        return connection

    def closed(self) -> None:
        self.made_ready += 1

    def close(self) -> None:
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _swallow(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 20):
                self.received += len(data)


@contextmanager
def drains(count: int, *, broken: bool = False) -> Iterator[list[Drain]]:
    made = [Drain(broken=broken) for _ in range(count)]
    try:
        yield made
    finally:
        for each in made:
            each.close()


def sent(sinks: list[Drain], planned: list[Burst]) -> Sender:
    sender = Sender(sinks, planned, lambda: False)
    sender.begin()
    for thread in sender._threads[:-1]:
        thread.join()
    sender.end()
    return sender


def test_sinks_take_turns_and_are_made_ready_again() -> None:
    planned = [Burst(i / 10, (i + 1) / 10, ("cubic", "bbr", "reno")[i % 3]) for i in range(4)]
    with drains(2) as sinks:
        sender = sent(sinks, planned)
    assert [sink.opened for sink in sinks] == [["cubic", "reno"], ["bbr", "cubic"]]
    assert [sink.made_ready for sink in sinks] == [2, 2]
    assert sender.trouble == "" and min(sink.received for sink in sinks) > 0
    assert sender.goodput and max(bps for _, bps in sender.goodput) > 0
    assert all(earlier < later for (earlier, _), (later, _) in pairwise(sender.goodput))


def test_a_sink_that_is_lost_ends_the_bursts() -> None:
    with drains(2, broken=True) as sinks:
        sender = sent(sinks, [Burst(0.0, 60.0, "cubic"), Burst(60.0, 120.0, "bbr")])
    assert sender.trouble == "the sink is gone" and not any(sink.opened for sink in sinks)


@pytest.mark.parametrize("count", [1, 2])
def test_told_to_end_it_ends_in_the_middle_of_a_burst(count: int, eventually: Callable[..., None]) -> None:
    with drains(count) as sinks:
        sender = Sender(sinks, [Burst(0.0, 3600.0, "cubic")], lambda: False)
        sender.begin()
        eventually(lambda: sinks[0].received > 0)
        sender.end()
        assert not any(thread.is_alive() for thread in sender._threads)
