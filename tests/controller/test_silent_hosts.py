"""Hosts that say nothing for long are forgotten, and make room for those that speak."""

import pytest
from graphs import THESIS_A
from mpx_controller.graph import Port
from mpx_controller.network import hosts as bounds
from mpx_controller.network.hosts import MOST_ADDRESSES, ROOM_S, SILENT_S, Hosts
from switches import Wan, address, arp_from, hardware, tcp_frame
from wans import ENDS, known

HERE, THERE = Port(1, 1), Port(2, 1)


def placed(wan: Wan) -> set[str]:
    """Return the hosts that switches have entries for."""
    entries = [entry for switch in wan.switches.values() for entry in switch.entries.values()]
    there = {dict(entry.match).get("eth_dst") for entry in entries}
    return {host for host in wan.hosts.values() if hardware(host) in there}


def test_who_is_silent_is_forgotten_and_flooded_to_until_it_speaks() -> None:
    wan = known(THESIS_A, {**ENDS, "third": 2})
    assert wan.network is not None and placed(wan) == {"src", "dst", "third"}
    wan.now_s += SILENT_S - 1
    wan.send("src", arp_from("src"))
    wan.do(wan.network.forget_silent_hosts([], wan.now_s))
    assert placed(wan) == {"src", "dst", "third"}
    wan.now_s += 2
    used = [hardware("third"), "02:00:00:00:00:99"]
    wan.do(wan.network.forget_silent_hosts(used, wan.now_s))
    assert placed(wan) == {"src", "dst", "third"}
    wan.now_s += 60
    wan.do(wan.network.forget_silent_hosts(used, wan.now_s))
    assert placed(wan) == {"src", "third"} and wan.network.hosts.at(address("dst")) is None
    wan.received.clear()
    wan.send("src", tcp_frame("src", "dst", (1, 2)))
    assert sorted(host for host, _ in wan.received) == ["dst", "third"]
    wan.send("dst", arp_from("dst"))
    assert placed(wan) == {"src", "dst", "third"}


def test_who_answers_is_not_forgotten() -> None:
    wan = known(THESIS_A, ENDS)
    assert wan.network is not None
    wan.answering = True
    for _ in range(2):
        wan.now_s += SILENT_S
        for _ in range(3):
            wan.now_s += 60
            wan.do(wan.network.forget_silent_hosts([], wan.now_s))
            assert placed(wan) == {"src", "dst"}
        assert sorted(host for host, _ in wan.received) == ["dst", "src"]
        wan.received.clear()
    (port,) = (port for port, host in wan.hosts.items() if host == "dst")
    wan.hosts[port] = "nobody"
    wan.now_s += SILENT_S
    for left in ({"src", "dst"}, {"src"}, {"src"}):
        wan.now_s += 60
        wan.do(wan.network.forget_silent_hosts([], wan.now_s))
        assert {host.hardware for host in wan.network.hosts.all} == {hardware(host) for host in left}


def test_so_many_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ASKED_AT_ONCE", 2)
    known = Hosts()
    for n in range(5):
        known.heard(f"02:00:00:00:00:0{n}", None, (HERE, THERE)[n % 2], float(n), sure=True)
    counts = [(len(known.expire(SILENT_S + 60 * n)), len(known.all)) for n in range(1, 6)]
    assert counts == [(2, 5), (2, 3), (1, 1), (0, 0), (0, 0)]


@pytest.mark.parametrize(("bound", "elsewhere"), [("MOST_AT_A_PORT", HERE), ("MOST_HOSTS", THERE)])
def test_who_has_been_silent_for_longest_makes_room(
    monkeypatch: pytest.MonkeyPatch, bound: str, elsewhere: Port
) -> None:
    monkeypatch.setattr(bounds, bound, 3)
    known = Hosts()
    for n, port in enumerate((HERE, elsewhere, elsewhere)):
        known.heard(f"02:00:00:00:00:0{n}", f"10.0.0.{n}", port, float(n), sure=True)
    known.heard("02:00:00:00:00:00", None, HERE, 10.0, sure=True)
    assert known.heard("02:00:00:00:00:07", None, HERE, ROOM_S, sure=True) is None
    assert known.refused == 1 and known.take_forgotten() == []
    assert known.heard("02:00:00:00:00:07", None, HERE, 1 + ROOM_S, sure=True) is not None
    assert known.take_forgotten() == ["02:00:00:00:00:01"] and known.at("10.0.0.1") is None
    assert len(known.all) == 3 and known.refused == 1


def test_entries_of_who_makes_room_go(monkeypatch: pytest.MonkeyPatch) -> None:
    wan = known(THESIS_A, ENDS)
    monkeypatch.setattr(bounds, "MOST_AT_A_PORT", 1)
    (port,) = (port for port, host in wan.hosts.items() if host == "dst")
    wan.hosts[port] = "other"
    wan.now_s += ROOM_S
    wan.send("other", arp_from("other"))
    wan.hosts[Port(6, 2000)] = "dst"
    assert placed(wan) == {"src", "other"}


def test_what_is_known_of_a_host_with_many_addresses_stays_whole() -> None:
    known = Hosts()
    for n in range(2 * MOST_ADDRESSES):
        known.heard("02:00:00:00:00:01", f"10.0.0.{n}", (HERE, THERE)[n % 2], float(n), sure=True)
        newest = [f"10.0.0.{each}" for each in range(max(0, n + 1 - MOST_ADDRESSES), n + 1)]
        assert [host.addresses for host in known.all] == [tuple(newest)]
        assert all(known.at(each) is not None for each in newest)
    known.gone([HERE])
    assert len(known.all) == 1
    known.gone([THERE])
    known.expire(2 * SILENT_S)
    known.expire(2 * SILENT_S)
    assert known.all == () and known.take_forgotten() == [] and known.at("10.0.0.127") is None
