"""Path sets in simulated switches: which way streams go, and what others may not do."""

import pytest
from graphs import THESIS_A, THESIS_B, M, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st
from mpx_controller.cookies import Kind, kind_of
from mpx_controller.errors import NoPath, NotThere, NotYours, Taken, TooMany
from mpx_controller.network.forwarding import Bands
from mpx_controller.network.network import SETTLED_S, Network
from mpx_controller.path_sets.path_set import StreamKey
from mpx_controller.path_sets.sets import Limits, PathSets
from stream_wans import DST, SRC, current_paths, put, steered
from switches import Wan, tcp_frame
from wans import network


def test_each_stream_has_its_path_both_ways_and_others_the_shortest() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    assert (len(made.paths), made.streams, made.max_flow_bps) == (4, 4, 400 * M)
    assert put(wan, sets, made.number, 4001, 4002, 4003, 4004) == [0, 1, 2, 3]
    passed = [current_paths(wan, port) for port in range(4001, 4005)]
    assert [there for there, _ in passed] == [[1, between, 6] for between in (2, 3, 4, 5)]
    assert [back for _, back in passed] == [[6, between, 1] for between in (2, 3, 4, 5)]
    assert current_paths(wan, 4999) == ([1, 2, 6], [6, 2, 1])
    assert [host for host, _ in wan.received] == ["dst", "src"] * 5


def test_a_listening_port_of_the_sink_is_steered_as_well() -> None:
    """A download's session: the server connects from any port to one of ours."""
    wan, sets = steered(THESIS_A)
    made = sets.assign(DST, SRC, 4, "me", wan.now_s)
    keys = [StreamKey(5000, "sink"), StreamKey(5001, "sink")]
    wan.do(sets.place(made.number, keys, "me", wan.now_s)[1])
    for port, between in ((5000, 2), (5001, 3)):
        assert wan.switches_passed("dst", tcp_frame("dst", "src", (40_000, port))) == [6, between, 1]
        assert wan.switches_passed("src", tcp_frame("src", "dst", (port, 40_000))) == [1, between, 6]


def test_streams_go_in_the_ratio_of_the_predictions() -> None:
    graph = graph_of((1, 2, 100 * M, 0.4), (2, 6, 1e9, 0), (1, 3, 50 * M, 0.2), (3, 6, 1e9, 0))
    wan, sets = steered(graph)
    made = sets.assign(SRC, DST, 0, "me", wan.now_s)
    assert [(path.streams, path.rate_bps, path.rtt_s) for path in made.paths] == [
        (5, 100 * M, 0.8),
        (1, 50 * M, 0.4),
    ]
    assert put(wan, sets, made.number, *range(4000, 4012)).count(0) == 10


def test_a_path_that_dies_gives_its_streams_to_the_others_and_has_them_again() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, *range(4000, 4008))
    third = next(ln.start for ln in THESIS_A.links if (ln.start.switch, ln.end.switch) == (4, 6))
    wan.carrier(third, up=False)
    wan.wait(0)
    wan.do(sets.reroute(wan.now_s))
    passed = [current_paths(wan, port)[0] for port in range(4000, 4008)]
    assert sorted(there[1] for there in passed) == [2, 2, 2, 3, 3, 3, 5, 5]
    wan.carrier(third, up=True)
    wan.wait(1)
    wan.do(sets.reroute(wan.now_s))
    assert [current_paths(wan, port)[0][1] for port in range(4000, 4008)] == [2, 3, 4, 5] * 2


def test_without_any_path_of_the_set_streams_go_as_all_else() -> None:
    wan, sets = steered(THESIS_B)
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    wan.carrier(made.paths[0].path[0].start, up=False)
    wan.wait(0)
    wan.do(sets.reroute(wan.now_s))
    assert len(current_paths(wan, 4000)[0]) == 4


def test_what_is_released_or_not_used_leaves_nothing() -> None:
    wan, sets = steered(THESIS_A, Limits(lease_s=60))
    before = {switch: dict(state.entries) for switch, state in wan.switches.items()}
    one, other = (sets.assign(SRC, DST, 4, "me", wan.now_s) for _ in range(2))
    put(wan, sets, one.number, 4000, 4001)
    put(wan, sets, other.number, 4002)
    wan.do(sets.remove_streams(one.number, [StreamKey(4000, "source")], "me"))
    put(wan, sets, other.number, 4000)  # may be had by another now
    wan.do(sets.release(one.number, "me"))
    wan.now_s += 59
    assert sets.expire(wan.now_s) == ([], [])
    sets.renew(other.number, "me", wan.now_s)
    wan.now_s += 59
    assert sets.expire(wan.now_s) == ([], [])
    wan.now_s += 2
    ended, messages = sets.expire(wan.now_s)
    wan.do(messages)
    assert ended == [other.number] and sets.all == {} and sets.next_s() == float("inf")
    assert {switch: dict(state.entries) for switch, state in wan.switches.items()} == before


def restarted() -> tuple[Wan, PathSets, Network]:
    """Return a network with four streams, the controller that comes after another, and its network.

    No switch has come to it yet.
    """
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002, 4003)
    assert wan.network is not None
    again = network(wan.now_s)
    again.hosts.restore(wan.network.hosts.all, wan.now_s)
    anew = PathSets(again, Bands(), Limits())
    assert anew.restore(sets.all.values(), sets.last) == []
    return wan, anew, again


def test_a_restart_keeps_streams_on_their_paths() -> None:
    wan, anew, again = restarted()
    (number,) = anew.all
    wan.connect(again)
    for _ in range(20):
        assert [current_paths(wan, port)[0][1] for port in range(4000, 4004)] == [2, 3, 4, 5]
        wan.wait(0.5)
        wan.do(anew.reroute(wan.now_s))
    assert anew.assign(SRC, DST, 1, "me", wan.now_s).number == number + 1


def test_after_a_restart_streams_stay_while_switches_come_back_one_by_one() -> None:
    wan, anew, again = restarted()
    for switches in ((1, 6), (2,), (3,), (4,), (5,)):
        wan.connect(again, switches)
        for _ in range(3):
            wan.wait(0.25)
            wan.do(anew.reroute(wan.now_s))
            assert [current_paths(wan, port)[0][1] for port in range(4000, 4004)] == [2, 3, 4, 5]
    wan.wait(SETTLED_S)
    wan.do(anew.reroute(wan.now_s))
    assert [current_paths(wan, port)[0][1] for port in range(4000, 4004)] == [2, 3, 4, 5]
    link = next(link for link in THESIS_A.links if link.start.switch == 3 and link.end.switch == 6)
    wan.carrier(link.start, up=False)
    wan.wait(0)
    wan.do(anew.reroute(wan.now_s))
    assert [current_paths(wan, port)[0][1] for port in range(4000, 4004)] == [2, 2, 4, 5]


def test_what_is_refused() -> None:
    wan, sets = steered(THESIS_A, Limits(streams=3, sets=2))
    with pytest.raises(NotThere, match=r"no host with the address 10\.9\.9\.9"):
        sets.assign(SRC, "10.9.9.9", 1, "me", wan.now_s)
    one, other = (sets.assign(SRC, DST, 2, "me", wan.now_s) for _ in range(2))
    with pytest.raises(TooMany, match="me has 2 path sets, the maximum"):
        sets.assign(SRC, DST, 1, "me", wan.now_s)
    with pytest.raises(NotYours):
        sets.place(one.number, [StreamKey(1, "source")], "you", wan.now_s)
    with pytest.raises(NotYours):
        sets.release(one.number, "you")
    with pytest.raises(NotThere, match="there is no path set 99"):
        sets.renew(99, "me", wan.now_s)
    with pytest.raises(NotThere, match="paths 0 to 1, and no path 7"):
        put(wan, sets, one.number, 4000, path=7)
    put(wan, sets, one.number, 4000, 4001, 4002)
    with pytest.raises(TooMany, match="may have at most 3 streams"):
        put(wan, sets, one.number, 4003)
    with pytest.raises(Taken, match="port 4000 of the source"):
        put(wan, sets, other.number, 4000)
    for link in THESIS_A.links:
        if link.start.switch == 6:
            wan.carrier(link.start, up=False)
    wan.wait(0)
    sets.release(one.number)
    with pytest.raises(NoPath, match="there is no path"):
        sets.assign(SRC, DST, 2, "me", wan.now_s)


def test_a_stream_is_moved_where_its_transfer_asks_for_it() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    assert put(wan, sets, made.number, 4000, path=2) == [2]
    assert current_paths(wan, 4000)[0] == [1, 4, 6]
    assert put(wan, sets, made.number, 4000) == [2]
    assert put(wan, sets, made.number, 4000, path=3) == [3]
    assert current_paths(wan, 4000) == ([1, 5, 6], [6, 5, 1])
    every = [entry for switch in wan.switches.values() for entry in switch.entries.values()]
    held = [entry for entry in every if kind_of(entry.cookie) == Kind.PATH_SET]
    assert len(held) == 6


def test_transfers_teach() -> None:
    graph = graph_of((1, 2, 100 * M, 0.05), (2, 6, 1e9, 0))
    wan, sets = steered(graph)
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    assert made.paths[0].streams == 1
    for _ in range(20):
        sets.feedback(made.number, "me", 0, 8, 100 * M, 0.1)
    assert sets.assign(SRC, DST, 1, "me", wan.now_s).paths[0].streams == 8
    with pytest.raises(NotThere):
        sets.feedback(made.number, "me", 1, 8, 100 * M, 0.1)


WHAT = st.sampled_from(["place", "remove", "cut", "mend", "release", "assign"])


@given(st.lists(st.tuples(WHAT, st.integers(0, 7)), max_size=25))
@settings(max_examples=30)
def test_whatever_happens_streams_arrive_and_nothing_is_left(steps: list[tuple[str, int]]) -> None:
    wan, sets = steered(THESIS_A)
    before = {switch: dict(state.entries) for switch, state in wan.switches.items()}
    last = sets.assign(SRC, DST, 4, "me", wan.now_s).number
    middle = [ln.start for ln in THESIS_A.links if ln.end.switch == 6]
    for what, which in steps:
        port = middle[which % 4]
        if what == "place" and last in sets.all:
            put(wan, sets, last, 4000 + which)
        elif what == "remove" and last in sets.all:
            wan.do(sets.remove_streams(last, [StreamKey(4000 + which, "source")], "me"))
        elif what == "release" and last in sets.all:
            wan.do(sets.release(last))
        elif what == "assign" and not sets.all:
            last = sets.assign(SRC, DST, 4, "me", wan.now_s).number
        elif what == "cut" and port != middle[0] and port not in wan.cut:
            wan.carrier(port, up=False)
        elif what == "mend" and port in wan.cut:
            wan.carrier(port, up=True)
        wan.wait(1)
        wan.do(sets.reroute(wan.now_s))
        for number in range(8):
            wan.received.clear()
            current_paths(wan, 4000 + number)
            assert [host for host, _ in wan.received] == ["dst", "src"]
    for port in list(wan.cut & set(middle)):
        wan.carrier(port, up=True)
    for number in sets.all:
        wan.do(sets.release(number))
    wan.wait(2)
    assert {switch: dict(state.entries) for switch, state in wan.switches.items()} == before
