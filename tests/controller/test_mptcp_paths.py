"""On which paths the subflows of connections go, in simulated switches."""

import pytest
from graphs import THESIS_A, THESIS_B
from mptcp_frames import JOINED, capable, join, segment, token
from mptcp_wans import BETWEEN, KEY_A, KEY_B, MORE, add, connect, end, of, spread, steering, way
from mpx_controller.flows import Gone
from mpx_controller.mptcp.connections import EMPTY_S
from mpx_controller.mptcp.multipath_tcp import LOST_S
from mpx_controller.mptcp.segment import ACK, FIN, RST, SYN, FourTuple
from mpx_controller.mptcp.subflow import IDLE_S
from mpx_controller.network.forwarding import Bands
from switches import address, arp_from, tcp_frame
from wans import ENDS


@pytest.mark.parametrize("version", [0, 1])
def test_each_subflow_has_its_path_both_ways_until_it_ends(version: int) -> None:
    wan = spread(THESIS_A)
    connect(wan, version=version)
    for source in MORE[:3]:
        add(wan, source, named=token(KEY_B, version))
    wan.received.clear()
    assert [way(wan, source) for source in (None, *MORE[:3])] == BETWEEN
    assert [host for host, _ in wan.received] == ["dst", "src"] * 4
    for source in (None, *MORE[:3]):
        end(wan, source)
    assert steering(wan) == [] and not of(wan).subflows
    assert [way(wan, source) for source in (None, *MORE[:3])] == [BETWEEN[0]] * 4


def test_copies_of_answers_may_come_first() -> None:
    wan = spread(THESIS_A)
    first = segment("src", "dst", (4000, 5001), SYN, capable(1))
    answer = segment("dst", "src", (5001, 4000), SYN | ACK, capable(1, KEY_B))
    wan.send("dst", answer)
    wan.send("src", first)
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK, JOINED, (None, MORE[0])))
    wan.send("src", segment("src", "dst", (4000, 5001), SYN, join(token(KEY_B, 1)), (MORE[0], None)))
    assert [way(wan, source) for source in (None, MORE[0])] == BETWEEN[:2]


def test_more_subflows_than_paths_go_round() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    for source in MORE:
        add(wan, source)
    assert [way(wan, source) for source in (None, *MORE)] == [*BETWEEN, *BETWEEN, BETWEEN[0]]
    end(wan, MORE[2])
    add(wan, MORE[2], port=4001)
    assert way(wan, MORE[2], 4001) == BETWEEN[3]


def test_each_connection_begins_with_the_first_path() -> None:
    wan = spread(THESIS_B, selection="least-shared")
    for port, key in ((4000, 5), (4001, 6)):
        connect(wan, port, keys=(1, key))
        for n in (0, 1, 2):
            add(wan, MORE[n], port, token(key, 1))
        assert [way(wan, source, port)[0] for source in (None, *MORE[:3])] == [
            [1, 5, 6],
            [1, 2, 3, 6],
            [1, 2, 4, 6],
            [1, 5, 6],
        ]


def test_who_was_connected_to_may_add_subflows_in_version_0() -> None:
    wan = spread(THESIS_A)
    connect(wan, version=0)
    add(wan, MORE[0], named=token(KEY_A, 0), opener="dst")
    (connection,) = of(wan).connections.all
    assert connection.subflows == {
        FourTuple(address("src"), 4000, address("dst"), 5001),
        FourTuple(MORE[0], 4000, address("src"), 5001),
    }


def test_others_are_left_alone_and_counted_if_they_join() -> None:
    wan = spread(THESIS_A)
    before = [dict(switch.entries) for switch in wan.switches.values()]
    wan.send("src", segment("src", "dst", (4000, 5001), SYN))
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK))
    wan.send("src", segment("src", "dst", (4001, 5001), SYN, capable(1)))  # the peer does not speak it
    wan.send("dst", segment("dst", "src", (5001, 4001), SYN | ACK))
    wan.send("dst", segment("dst", "src", (5001, 4002), SYN | ACK, capable(1, KEY_B)))  # nobody has asked
    add(wan, MORE[0], named=77)
    assert [dict(switch.entries) for switch in wan.switches.values()] == before
    assert not of(wan).connections.all and of(wan).connections.joins_unknown == 1
    assert way(wan, MORE[0]) == BETWEEN[0]


def test_plain_frames_do_not_come_to_us() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    wan.send("src", tcp_frame("src", "dst", (1, 2)))
    before = wan.frames_in
    for _ in range(5):
        way(wan)
        wan.send("src", tcp_frame("src", "dst", (1, 2)))
        wan.send("src", tcp_frame("src", "dst", (1, 2), FIN | ACK))
    assert wan.frames_in == before
    wan.send("src", segment("src", "dst", (4001, 5001), SYN))
    assert wan.frames_in == before + 1, "a copy where the host is, none on the way"


def test_a_subflow_that_is_reset_is_over_at_once() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    wan.received.clear()
    wan.send("dst", segment("dst", "src", (5001, 4000), RST))
    assert not steering(wan) and [host for host, _ in wan.received] == ["src"]


def test_nobody_else_ends_it() -> None:
    wan = spread(THESIS_A, {**ENDS, "other": 1})
    connect(wan)
    there = steering(wan)
    for bits in (RST, FIN | ACK):
        wan.send("other", segment("other", "dst", (4000, 5001), bits, b"", (address("src"), None)))
        wan.send("other", segment("other", "src", (5001, 4000), bits, b"", (address("dst"), None)))
        wan.send("other", segment("src", "dst", (4000, 5001), bits))  # with another's hardware address, too
    assert steering(wan) == there


def test_nobody_opens_one_for_others() -> None:
    wan = spread(THESIS_A, {**ENDS, "other": 1})
    asks, answer = capable(1), capable(1, KEY_B)
    wan.send("other", segment("other", "dst", (4000, 5001), SYN, asks, (address("src"), None)))
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK, answer))
    mine = segment("src", "dst", (4001, 5001), SYN, asks)
    wan.send("other", mine)  # with the hardware address of another, too
    wan.send("dst", segment("dst", "src", (5001, 4001), SYN | ACK, answer))
    assert not steering(wan)


def test_nobody_opens_one_for_a_neighbour_at_the_same_port() -> None:
    wan = spread(THESIS_A)
    port = next(port for port, name in wan.hosts.items() if name == "src")
    assert wan.network is not None
    wan.do(wan.network.frame_in(port, arp_from("other"), wan.now_s))
    asks = segment("other", "dst", (4000, 5001), SYN, capable(1), (address("src"), None))
    wan.do(of(wan).frame_in(port, asks, wan.now_s))
    wan.send("dst", segment("dst", "src", (5001, 4000), SYN | ACK, capable(1, KEY_B)))
    assert not steering(wan)


def test_the_same_ports_again() -> None:
    """The end of the first was not seen."""
    wan = spread(THESIS_A)
    connect(wan)
    add(wan, MORE[0])
    connect(wan, keys=(1, 99))
    assert len(of(wan).connections.all) == 2 and way(wan) == BETWEEN[0]
    add(wan, MORE[0], named=token(99, 1))
    assert way(wan, MORE[0]) == BETWEEN[1]
    assert [len(each.subflows) for each in of(wan).connections.all] == [0, 2]


def test_repeated_packets_change_nothing() -> None:
    wan = spread(THESIS_A)
    for _ in range(2):
        connect(wan)
        add(wan, MORE[0])
        add(wan, MORE[1])
    assert [way(wan, source) for source in (None, *MORE[:2])] == BETWEEN[:3]
    assert len(of(wan).connections.all) == 1


def test_links_that_go_and_come() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    for source in MORE[:3]:
        add(wan, source)
    for cut, others in ((3, {2, 4, 5}), (2, {4, 5})):
        link = next(ln for ln in THESIS_A.links if (ln.start.switch, ln.end.switch) == (1, cut))
        wan.carrier(link.start, up=False)
        wan.wait(0)
        ways = [way(wan, source) for source in (None, *MORE[:3])]
        assert all(back == there[::-1] for there, back in ways)
        assert {there[1] for there, _ in ways} == others
    assert sorted(there[1] for there, _ in ways) == [4, 4, 5, 5]
    for link in THESIS_A.links:
        if (link.start.switch, link.end.switch) in ((1, 3), (1, 2)):
            wan.carrier(link.start, up=True)
    wan.wait(1)
    assert [way(wan, source) for source in (None, *MORE[:3])] == BETWEEN


def test_where_nothing_leads_it_is_forgotten_later() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    for link in THESIS_A.links:
        if link.start.switch == 1:
            wan.carrier(link.start, up=False)
    wan.wait(LOST_S / 2)
    wan.do(of(wan).expire(wan.now_s))
    assert of(wan).subflows
    wan.wait(LOST_S)
    wan.do(of(wan).expire(wan.now_s))
    assert not of(wan).subflows and not steering(wan)


def test_a_switch_that_is_back_has_its_entries_again() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    assert wan.network is not None
    there = {entry.key for entry in steering(wan)}
    wan.network.switch_down(2, wan.now_s)
    wan.wait(60)
    assert way(wan)[0][1] != 2
    wan.switches[2].entries.clear()
    wan.connect(wan.network, [2])
    wan.wait(2)
    assert way(wan) == BETWEEN[0] and {entry.key for entry in steering(wan)} == there


def test_a_switch_that_is_away_keeps_its_subflows_and_gets_none() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    add(wan, MORE[0])
    assert wan.network is not None
    wan.network.switch_down(3, wan.now_s)
    wan.do(of(wan).network_changed(wan.now_s))
    for source in MORE[1:4]:
        add(wan, source)
    assert [way(wan, source) for source in (None, *MORE[:4])] == [BETWEEN[n] for n in (0, 1, 2, 3, 0)]
    cut = next(link for link in THESIS_A.links if (link.start.switch, link.end.switch) == (1, 4))
    wan.carrier(cut.start, up=False)
    wan.wait(0)
    assert [way(wan, source) for source in MORE[:2]] == [BETWEEN[1], BETWEEN[3]]
    for switch in (2, 5):
        wan.network.switch_down(switch, wan.now_s)
    add(wan, MORE[4])
    assert len(of(wan).subflows) == 5, "there is no path on which it could be put"
    wan.carrier(cut.start, up=True)
    wan.wait(0.1)
    assert [way(wan, source) for source in (None, *MORE[:4])] == [BETWEEN[n] for n in (0, 1, 2, 3, 0)]


def test_a_host_that_moves() -> None:
    wan = spread(THESIS_A, {**ENDS, "third": 3})
    connect(wan)
    there, third = (next(at for at, name in wan.hosts.items() if name == host) for host in ("dst", "third"))
    wan.hosts[there], wan.hosts[third] = "third", "dst"
    wan.send("dst", arp_from("dst"))
    wan.wait(1)
    assert way(wan) == ([1, 3], [3, 1])


def test_entries_that_time_out_end_it() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    add(wan, MORE[0])
    by_port = {entry.priority: entry for entry in steering(wan) if ("ipv4_src", MORE[0]) in entry.match}
    waits, steers = by_port[Bands().mptcp + 1], by_port[Bands().mptcp]
    wan.do(of(wan).entry_gone(Gone(waits.key, waits.cookie, waits.idle_s, 0), wan.now_s))
    assert len(of(wan).subflows) == 2, "what waits for its end does not tell that it has ended"
    wan.do(of(wan).entry_gone(Gone(steers.key, steers.cookie, steers.idle_s, 9), wan.now_s))
    assert [four.source for four in of(wan).subflows] == [address("src")]
    assert all(entry.idle_s > 0 for entry in steering(wan)), "nothing is there for ever when we are gone"


def test_a_subflow_that_pauses_is_kept_for_longer() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    there, back, *_ = (entry for entry in steering(wan) if entry.priority == Bands().mptcp)
    for entry in (there, back):
        for switch in wan.switches.values():
            if switch.entries.get(entry.key) == entry:
                del switch.entries[entry.key]
        wan.do(of(wan).entry_gone(Gone(entry.key, entry.cookie, entry.idle_s, 1000), wan.now_s))
    assert way(wan) == BETWEEN[0] and len(steering(wan)) == 10
    there = next(entry for entry in steering(wan) if entry.priority == Bands().mptcp)
    assert there.idle_s == IDLE_S
    wan.do(of(wan).entry_gone(Gone(there.key, there.cookie, there.idle_s, 1000), wan.now_s))
    assert not steering(wan)


def test_a_subflow_that_one_side_has_finished_is_not() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    there = next(entry for entry in steering(wan) if entry.priority == Bands().mptcp)
    wan.send("src", segment("src", "dst", (4000, 5001), FIN | ACK))
    wan.do(of(wan).entry_gone(Gone(there.key, there.cookie, there.idle_s, 1000), wan.now_s))
    assert not steering(wan)


def test_connections_without_subflows_are_forgotten_later() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    end(wan)
    wan.now_s += EMPTY_S / 2
    of(wan).expire(wan.now_s)
    add(wan, MORE[0])
    assert len(of(wan).subflows) == 1
    end(wan, MORE[0])
    wan.now_s += EMPTY_S + 1
    of(wan).expire(wan.now_s)
    assert not of(wan).connections.all
    add(wan, MORE[1])
    assert of(wan).connections.joins_unknown == 1
