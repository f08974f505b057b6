"""A copy's side of its path set: what the controller is told of its streams, and when."""

from collections.abc import Callable, Iterator

import pytest
from running_controller import Running
from steering import Steering, steered
from wire_switches import WireSwitch

from mpx.multipath import steering as steered_paths

Network = tuple[Running, dict[int, WireSwitch]]
Eventually = Callable[..., None]


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
    monkeypatch.setattr(steered_paths, "CHECKED_S", 1000.0)
    monkeypatch.setattr(steered_paths, "RENEWALS", 0.1)  # none comes in time to help
    with steered() as (book, steering):
        steering.begin("0", 40_001)
        book.away = True
        for port in range(40_002, 40_006):
            steering.begin("2", port)
        assert book.sets == {1: {40_001: 0}} and "later" in steering.notes[0]
        book.away = False
        eventually(lambda: book.sets == {1: {40_001: 0, **dict.fromkeys(range(40_002, 40_006), 2)}})
        steering.paths.close()
        assert book.sets == {}


@pytest.mark.parametrize("tells_most", [True, False])
def test_a_full_quota_gets_room_from_those_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually, tells_most: bool
) -> None:
    """All streams are replaced, each before its predecessor has ended."""
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    monkeypatch.setattr(steered_paths, "CHECKED_S", 0.05)
    monkeypatch.setattr(steered_paths, "WATCHED_S", 0.05)
    with steered(most=12, tells_most=tells_most) as (book, steering):
        before, after = range(40_000, 40_010), range(41_000, 41_010)
        steering.begin("0", *before)
        steering.begin("1", *after)
        assert len(book.sets[1]) == 12
        renewed = book.renewed
        eventually(lambda: book.renewed > renewed + 2)  # whoever waits
        assert (
            len(steering.notes) == 1
            and ("has its maximum" if tells_most else "may have") in steering.notes[0]
        ), steering.notes
        for port in before:
            steering.paths.ended(port, "source")
        eventually(lambda: book.sets[1] == dict.fromkeys(after, 1))
        assert len(steering.notes) == 1


def test_who_begins_when_others_have_ended_waits_for_nothing() -> None:
    with steered(most=4) as (book, steering):
        for port in range(40_000, 40_020):
            steering.begin("0", port)
            assert port in book.sets[1]
            steering.paths.ended(port, "source")
        assert not steering.notes and not book.refused


def test_a_port_of_others_keeps_no_other_stream_from_its_path(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "AWAY_S", 0.2)
    with steered() as (book, steering):
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


def test_the_lease_is_renewed(monkeypatch: pytest.MonkeyPatch, eventually: Eventually) -> None:
    monkeypatch.setattr(steered_paths, "RENEWALS", 1000)
    with steered() as (book, steering):
        eventually(lambda: book.renewed > 2 and len(steering.sets) > 2)


def test_a_set_is_looked_at_often_whatever_its_lease(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(steered_paths, "WATCHED_S", 0.02)
    monkeypatch.setattr(steered_paths, "CHECKED_S", 0.05)  # of a lease of a minute
    with steered() as (book, _):
        eventually(lambda: book.renewed > 2)
