"""Switches without room for a stream: who asked for it is told, nobody else, and nothing of it stays."""

import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import Add, Entry, Remove, SwitchRules, match
from running_controller import Running
from switches import address
from wire_switches import WireSwitch, held

Eventually = Callable[..., None]
Network = tuple[Running, dict[int, WireSwitch]]


@contextmanager
def path_set(running: Running) -> Iterator[int]:
    asked = {"source": address("src"), "sink": address("dst"), "paths": 4}
    number = int(running.ask("POST", "path-sets", asked)["id"])
    try:
        yield number
    finally:
        running.ask("DELETE", f"path-sets/{number}")


def place(running: Running, number: int, port: int, path: int = 0) -> int:
    """Return the status of the answer."""
    try:
        running.ask("POST", f"path-sets/{number}/streams", {"ports": [port], "path": path})
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def passed(running: Running, number: int, path: int = 0) -> list[int]:
    """Return the switches of a path of a set."""
    told = running.get(f"path-sets/{number}")["paths"][path]["switches"]
    return [int(each, 16) for each in told]


def test_what_is_refused_is_refused_again_and_not_kept(network: Network, eventually: Eventually) -> None:
    running, switches = network
    with path_set(running) as number:
        switches[1].refused = {4000}
        for _ in range(3):
            assert place(running, number, 4000) == 503
            assert running.get(f"path-sets/{number}")["ports"] == {}
            eventually(lambda: held(switches, 4000) == [])
        switches[1].refused = set()
        assert place(running, number, 4000) == 200 and held(switches, 4000) == passed(running, number)
        assert running.get(f"path-sets/{number}")["ports"] == {"source:4000": 0}


def test_a_stream_that_cannot_move_stays_where_it_was(network: Network) -> None:
    running, switches = network
    with path_set(running) as number:
        assert place(running, number, 4000) == 200
        middle = switches[passed(running, number, 1)[1]]
        middle.refused = {4000}
        assert place(running, number, 4000, path=1) == 503
        assert running.get(f"path-sets/{number}")["ports"] == {"source:4000": 0}
        assert place(running, number, 4000) == 200 and held(switches, 4000) == passed(running, number)
        middle.refused = set()


def test_a_stream_that_is_moved_goes_round_a_switch_that_refuses_it(
    network: Network, eventually: Eventually
) -> None:
    running, switches = network
    with path_set(running) as number:
        assert place(running, number, 4000) == 200
        ways = [passed(running, number, path) for path in range(4)]
        for way in ways[1:3]:
            switches[way[1]].refused = {4000}
        switches[1].carrier(ways[0][1] - 1, up=False)
        eventually(lambda: held(switches, 4000) == ways[3])
        told = running.get(f"path-sets/{number}")
        assert (told["ports"], told["elsewhere"]) == ({"source:4000": 0}, {"source:4000": 3})
        switches[ways[3][1]].refused = {4000}
        switches[1].carrier(ways[3][1] - 1, up=False)
        switches[1].carrier(ways[3][1] - 1, up=True)
        eventually(lambda: held(switches, 4000) == [])
        assert place(running, number, 4000) == 503
        for way in ways:
            switches[way[1]].refused = set()
        assert place(running, number, 4000) == 200 and held(switches, 4000) == ways[1]
        switches[1].carrier(ways[0][1] - 1, up=True)
        eventually(lambda: held(switches, 4000) == ways[0])


def test_who_is_refused_is_told_and_nobody_else(network: Network, eventually: Eventually) -> None:
    running, switches = network
    with path_set(running) as number, ThreadPoolExecutor(3) as callers:
        bad, good = range(5000, 5060), range(6000, 6030)
        middle = switches[passed(running, number)[1]]
        middle.refused = set(bad)
        for one, other, third in zip(bad[::2], good, bad[1::2], strict=True):
            answers = [callers.submit(place, running, number, port) for port in (one, other, third)]
            assert [answer.result() for answer in answers] == [503, 200, 503]
        assert all(held(switches, port) == passed(running, number) for port in good)
        eventually(lambda: not any(held(switches, port) for port in bad))
        middle.refused = set()


def test_two_who_place_the_same_stream_are_both_refused(network: Network, eventually: Eventually) -> None:
    running, switches = network
    with path_set(running) as number, ThreadPoolExecutor(4) as callers:
        switches[6].refused = {4000}
        for _ in range(10):
            answers = [callers.submit(place, running, number, 4000, path) for path in range(4)]
            assert [answer.result() for answer in answers] == [503] * 4
            assert running.get(f"path-sets/{number}")["ports"] == {}
        switches[6].refused = set()
        eventually(lambda: held(switches, 4000) == [])


def test_a_refused_entry_is_told_anew_when_it_is_put_again() -> None:
    one, other = (Entry(0, 1, match(tcp_src=port), cookie(Kind.PATH_SET, 1), (1,)) for port in (1, 2))
    rules = SwitchRules()
    rules.put("me", [one, other])
    rules.refused(one)
    assert rules.lacks("me") and not rules.lacks("you")
    assert rules.put("me", [one, other]) == [Add(one)] and rules.lacks("me")  # until it is asked for anew
    rules.asked_anew("me")
    assert not rules.lacks("me")
    assert rules.put("me", [one, other]) == []
    rules.refused(one)
    assert rules.put("me", []) == [Remove(one.key, one.cookie), Remove(other.key, other.cookie)]
