"""A copy's side of its path set, against a controller as a process of its own: what it is told, and when."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from graphs import THESIS_A, capacities
from pretended import PATHS, Book, kept
from running_controller import Running, controller
from switches import address
from wans import ENDS
from wire_switches import WireSwitch, wire_wan

from mpx import sdn_client
from mpx.engine.endpoint import Rtt
from mpx.engine.path_set import PathSet, Side
from mpx.engine.tuner import Sample
from mpx.multipath import steering as steered_paths
from mpx.multipath.paths_in_use import MEASURED_S, Multipath
from mpx.multipath.server_address import ServerAddress
from mpx.multipath.steering import SteeredPaths
from mpx.report import Severity, no_note
from mpx.sdn_client import ControllerClient

SRC, DST = address("src"), address("dst")
RTT_S = 0.1
Network = tuple[Running, dict[int, WireSwitch]]
Eventually = Callable[..., None]


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


@pytest.fixture
def steering(network: Network) -> Iterator[Steering]:
    steering = Steering(network[0].urls["rest"])
    yield steering
    steering.paths.close()
    assert str(steering.known.number) not in [str(each["id"]) for each in network[0].get("path-sets")]


def placed(running: Running, steering: Steering) -> dict[str, int]:
    """Return the path of each stream, as the controller has it."""
    found: dict[str, int] = running.get(f"path-sets/{steering.known.number}")["ports"]
    return {name.rpartition(":")[2]: path for name, path in found.items()}


def test_a_stream_is_on_its_path_when_it_may_connect(network: Network, steering: Steering) -> None:
    steering.begin("1", 40_001)
    assert list(placed(network[0], steering).values()) == [1]


def test_the_controller_says_how_many_streams_there_may_be(steering: Steering) -> None:
    assert steering.known.most_streams == 256


def test_streams_take_another_path_and_their_own_again(
    network: Network, steering: Steering, eventually: Eventually
) -> None:
    steering.begin("1", 40_001, 40_002)
    steering.begin("1", 40_003, stays=True)
    steering.paths.move("1", "3")
    eventually(lambda: sorted(placed(network[0], steering).values()) == [1, 3, 3])
    steering.begin("1", 40_004)  # what begins now takes the other at once
    assert sorted(placed(network[0], steering).values()) == [1, 3, 3, 3]
    steering.paths.move("1", "1")
    eventually(lambda: set(placed(network[0], steering).values()) == {1})
    assert steering.notes == []


def test_the_controller_hears_which_streams_have_ended(
    network: Network, steering: Steering, eventually: Eventually
) -> None:
    steering.begin("0", *range(40_000, 40_010))
    for port in range(40_000, 40_009):
        steering.paths.ended(port, "source")
    eventually(lambda: len(placed(network[0], steering)) == 1)


def test_a_set_that_the_controller_has_forgotten_is_said_once_and_not_asked_for(
    network: Network, steering: Steering
) -> None:
    network[0].ask("DELETE", f"path-sets/{steering.known.number}")
    for port in (40_001, 40_002, 40_003):
        steering.begin("0", port)
    (note,) = steering.notes
    assert "no path set" in note


def test_a_controller_that_was_away_has_all_streams_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    monkeypatch.setattr(steered_paths, "LOOKED_S", 1000.0)
    monkeypatch.setattr(steered_paths, "RENEWALS", 0.1)  # none comes in time to help
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        steering.begin("0", 40_001)
        book.away = True
        for port in range(40_002, 40_006):
            steering.begin("2", port)
        assert book.sets == {1: {40_001: 0}} and "later" in steering.notes[0]
        book.away = False
        eventually(lambda: book.sets == {1: {40_001: 0, **dict.fromkeys(range(40_002, 40_006), 2)}})
        steering.paths.close()
        assert book.sets == {}


def test_a_stream_that_was_placed_too_late_is_taken_off_at_its_end(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 1000.0)  # nobody tells it anew meanwhile
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        monkeypatch.setattr(sdn_client, "ANSWER_S", 0.1)
        book.answers.clear()
        steering.begin("1", 40_001)
        assert "does not answer" in steering.notes[0]
        monkeypatch.setattr(sdn_client, "ANSWER_S", 30.0)
        book.answers.set()
        eventually(lambda: book.sets == {1: {40_001: 1}})
        steering.paths._away_until_s = 0.0
        steering.paths.ended(40_001, "source")
        eventually(lambda: book.sets == {1: {}})
        steering.paths.close()


@pytest.mark.parametrize("tells_most", [True, False])
def test_a_full_quota_gets_room_from_those_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually, tells_most: bool
) -> None:
    """All streams are replaced, each before its predecessor has ended."""
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    monkeypatch.setattr(steered_paths, "LOOKED_S", 0.05)
    monkeypatch.setattr(steered_paths, "WATCHED_S", 0.05)
    book = Book()
    book.most, book.tells_most = 12, tells_most
    with kept(book) as url:
        steering = Steering(url)
        before, after = range(40_000, 40_010), range(41_000, 41_010)
        steering.begin("0", *before)
        steering.begin("1", *after)
        assert len(book.sets[1]) == 12
        renewed = book.renewed
        eventually(lambda: book.renewed > renewed + 2)  # whoever waits
        assert len(steering.notes) == 1 and "may have" in steering.notes[0], steering.notes
        for port in before:
            steering.paths.ended(port, "source")
        eventually(lambda: book.sets[1] == dict.fromkeys(after, 1))
        assert len(steering.notes) == 1
        steering.paths.close()


def test_who_begins_when_others_have_ended_waits_for_nothing() -> None:
    book = Book()
    book.most = 4
    with kept(book) as url:
        steering = Steering(url)
        for port in range(40_000, 40_020):
            steering.begin("0", port)
            assert port in book.sets[1]
            steering.paths.ended(port, "source")
        assert not steering.notes and not book.refused
        steering.paths.close()


def test_a_port_of_others_keeps_no_other_stream_from_its_path(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        book.away = True
        ports = range(40_000, 40_020)
        steering.begin("0", *ports)
        steering.notes.clear()
        book.taken = {40_007, 40_013}
        book.away = False
        others = dict.fromkeys(set(ports) - book.taken, 0)
        eventually(lambda: book.sets[1] == others)
        steering.begin("0", 40_007)
        steering.paths.move("0", "3")
        eventually(lambda: book.sets[1] == dict.fromkeys(others, 3))
        assert len(steering.notes) == 1 and "steers that" in steering.notes[0]
        steering.paths.ended(40_001, "source")
        eventually(lambda: 40_001 not in book.sets[1])
        book.taken.clear()
        eventually(lambda: book.sets[1].get(40_007) == 3)
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


def test_a_port_that_two_ask_for_and_both_are_refused_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    book = Book()
    book.taken = {40_001}
    with kept(book) as url:
        steering = Steering(url)
        asked: list[int] = []

        def before(ports: Sequence[int]) -> None:
            asked.extend(ports)
            if len(asked) == 1:  # the thread has listed it before
                steering.paths._put([40_001], "source", "0")
                assert asked == [40_001]

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        book.taken.clear()
        eventually(lambda: book.sets == {1: {40_001: 0}})
        steering.paths.close()


@pytest.mark.parametrize("is_refused", [True, False], ids=["other half", "other path"])
def test_a_stream_that_ends_before_it_is_asked_for_is_never_placed(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually, is_refused: bool
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        steering.paths._away_until_s = math.inf
        steering.begin("0", 40_001)
        steering.begin("0" if is_refused else "1", 40_002, 40_003)
        asked: list[int] = []

        def before(ports: Sequence[int]) -> None:
            asked.extend(ports)
            if list(ports) == [40_001]:
                steering.paths.ended(40_002, "source")

        placing(monkeypatch, steering, before)
        book.taken = {40_001} if is_refused else set()
        steering.paths._away_until_s = 0.0
        steering.paths.move("2", "2")  # have the thread look
        eventually(lambda: 40_003 in book.sets[1])
        book.taken.clear()
        eventually(lambda: book.sets[1].keys() == {40_001, 40_003})
        assert asked.count(40_002) == is_refused  # with all others, before it had ended
        steering.paths.close()


def test_a_stream_that_ends_while_it_is_asked_for_is_taken_off_after_the_answer(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    book = Book()
    with kept(book) as url:
        steering = Steering(url)

        def before(ports: Sequence[int]) -> None:
            steering.paths.ended(ports[0], "source")
            steering.paths._tell_ended()

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        assert book.sets == {1: {40_001: 0}}
        eventually(lambda: book.sets == {1: {}})
        steering.paths.close()


def test_a_port_that_is_used_anew_while_it_is_asked_for_is_on_its_new_path_when_it_may_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        anew = threading.Thread(target=steering.begin, args=("2", 40_001))

        def before(_: Sequence[int]) -> None:
            if not book.sets[1] and not anew.ident:
                steering.paths.ended(40_001, "source")
                anew.start()
                anew.join(0.5)  # it waits for the answer
                assert not book.sets[1]

        placing(monkeypatch, steering, before)
        steering.begin("0", 40_001)
        anew.join(60)
        assert book.sets == {1: {40_001: 2}} and not steering.notes
        steering.paths.close()


def test_streams_that_have_ended_are_told_of_when_the_controller_is_back(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.1)
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        steering.begin("0", 40_001, 40_002)
        book.away = True
        steering.paths.ended(40_001, "source")
        requests = book.requests
        eventually(lambda: book.requests > requests + 1)
        book.away = False
        eventually(lambda: book.sets == {1: {40_002: 0}})
        steering.paths.close()


def test_the_lease_is_renewed(monkeypatch: pytest.MonkeyPatch, eventually: Eventually) -> None:
    monkeypatch.setattr(steered_paths, "RENEWALS", 1000)
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        eventually(lambda: book.renewed > 2 and len(steering.sets) > 2)
        steering.paths.close()


def test_a_set_is_looked_at_often_whatever_its_lease(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "WATCHED_S", 0.02)
    monkeypatch.setattr(steered_paths, "LOOKED_S", 0.05)  # of a lease of a minute
    book = Book()
    with kept(book) as url:
        steering = Steering(url)
        eventually(lambda: book.renewed > 2)
        steering.paths.close()


def test_a_lease_of_nothing_is_not_renewed_without_a_pause(eventually: Eventually) -> None:
    book = Book()
    with kept(book) as url:
        client = ControllerClient(url)
        known = replace(client.assign(SRC, DST, PATHS), lease_s=0.0)
        paths = SteeredPaths(client, known, far=there(), note=no_note, changed=lambda _: None)
        paths.start()
        before = paths._renew_at_s
        eventually(lambda: book.renewed > 0)
        eventually(lambda: paths._renew_at_s > before)
        assert paths._renew_at_s - before >= steered_paths.WATCHED_S
        paths.close()


def there() -> ServerAddress:
    return ServerAddress(DST, required=False, note=no_note)


def copying(client: ControllerClient) -> Multipath:
    """Return the paths of a copy whose far end answers at once, with probes under way."""
    far: Any = SimpleNamespace(
        measure_rtt=lambda: Rtt(RTT_S, None, None, None), pause=lambda: None, close=lambda: None
    )
    known = client.assign(SRC, DST, PATHS)
    multipath = Multipath(client, known, near="source", far=there(), open_session=lambda _: far, note=no_note)
    may_probe = threading.Event()
    may_probe.set()
    multipath.start(may_probe)
    return multipath


def measured(multipath: Multipath) -> bool:
    return all(multipath.rtt(name) for name in multipath.known.names)


def test_a_copy_tells_what_each_path_has_carried(tmp_path: Path, eventually: Eventually) -> None:
    """So that the next begins with as many streams."""
    (tmp_path / "capacities.json").write_text(capacities(THESIS_A))
    with (
        controller(tmp_path / "state.json") as running,
        wire_wan(running.port, THESIS_A, ENDS),
    ):
        eventually(lambda: running.get("topology")["edges"] == ["1:1000", "6:1000"])
        client = ControllerClient(running.urls["rest"])
        untaught = client.assign(SRC, DST, 1)
        client.release(untaught.number)
        for _ in range(20):
            multipath = copying(client)
            names = multipath.known.names
            eventually(partial(measured, multipath))
            for now_s in range(12):
                carried = {name: Sample(40, int(now_s * 1e8 / 8), 1 << 40) for name in names}
                multipath.carried(now_s + MEASURED_S, carried)
            multipath.close()
            eventually(lambda: not running.get("path-sets"))  # on a busy host it ends after close
        assert client.assign(SRC, DST, 1).paths[0].streams > untaught.paths[0].streams


@pytest.mark.parametrize("strays", [False, True])
def test_of_data_that_goes_elsewhere_nobody_says_over_which_path(
    eventually: Eventually, strays: bool
) -> None:
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        names = multipath.known.names
        eventually(partial(measured, multipath))
        for now_s in range(12):
            sample = Sample(2, int(now_s * 1e8 / 8), 1 << 40)
            multipath.carried(now_s + MEASURED_S, dict.fromkeys(names, sample))
            if strays and now_s == 10:
                assert not multipath.paths.lead_to("192.0.2.1")
        assert multipath.paths.lead_to(DST) and multipath.paths.lead_to(f"::ffff:{DST}")
        assert [("carried_bytes" in each) for each in multipath.described] == [not strays] * PATHS
        multipath.close()
        eventually(lambda: book.sets == {})
        assert book.feedback == (0 if strays else PATHS)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_controller_that_hangs_does_not_keep_a_copy_from_ending(
    monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(sdn_client, "ANSWER_S", 1000.0)
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        book.answers.clear()
        stream = threading.Thread(target=multipath.paths.register("1", "source"), args=(40_001,))
        if stopped:
            stream.start()
            multipath.stop()
            stream.join(60)
            assert not stream.is_alive()
        ending = threading.Thread(target=multipath.close)
        ending.start()
        ending.join(60)
        assert not ending.is_alive()
        book.answers.set()


def test_what_is_stopped_gives_its_set_back(eventually: Eventually) -> None:
    book = Book()
    with kept(book) as url:
        multipath = copying(ControllerClient(url))
        multipath.stop()
        multipath.close()
        eventually(lambda: book.sets == {})


def test_a_lost_path_that_nobody_can_ask_over_is_tried_again(eventually: Eventually) -> None:
    """The server lets no further session in: its probe has given up."""
    book = Book()
    with kept(book) as url:
        client = ControllerClient(url)
        known = client.assign(SRC, DST, PATHS)
        multipath = Multipath(client, known, near="source", far=there(), open_session=refused, note=no_note)
        multipath.start(threading.Event())
        for probe in multipath._probes.values():
            probe.end()  # as one that has given up
            eventually(lambda of=probe: not of.is_alive())

        def silent_s(path: str) -> float:
            return 10.0 if path == "1" else 0.0

        multipath.observe(1000.0, silent_s)
        assert multipath.lost == {"1"}
        (change,) = multipath.observe(1010.0, lambda _: 0.0)
        assert change.path == "1" and not multipath.lost
        multipath.close()


def refused(_: Callable[[int], None]) -> Any:
    raise AssertionError("no session is opened")
