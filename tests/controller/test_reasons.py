"""The reasons that are logged are those of what was decided."""

from graphs import THESIS_A, M, graph_of
from mpx_controller.path_sets.prediction import BYTES_PER_STREAM
from mpx_controller.path_sets.reasons import changes, where_they_are, why_moved, why_so_many, why_these
from test_path_sets import DST, SRC, put, steered

THIRD = next(ln for ln in THESIS_A.links if (ln.start.switch, ln.end.switch) == (4, 6))


def test_why_so_many_paths() -> None:
    wan, sets = steered(THESIS_A)
    every = sets.assign(SRC, DST, 0, "me", wan.now_s)
    assert why_these(every, "widest-apart", 0) == (
        "widest-apart chose 4 paths for 400 Mbit/s (max-flow 400 Mbit/s); more would add at most 0%"
    )
    two = sets.assign(SRC, DST, 2, "me", wan.now_s)
    assert why_these(two, "widest-apart", 2) == (
        "widest-apart chose 2 paths for 200 Mbit/s (max-flow 400 Mbit/s), as many as were asked for; "
        "more would add at most 100%"
    )


def test_why_so_many_streams() -> None:
    wan, sets = steered(graph_of((1, 2, 100 * M, 0.4), (2, 6, 1e9, 0)))
    made = sets.assign(SRC, DST, 0, "me", wan.now_s)
    assert why_so_many(made, 0, BYTES_PER_STREAM) == (
        "path 0 (1-2-6): n = max(1, a B R) = 5 with a = 6.58e-05 for each Mbit/s and ms, "
        "B = 100 Mbit/s, R = 800 ms; bottleneck group 0"
    )


def test_where_streams_are_and_why_they_move() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002, 4003, 4004)
    known, was, before = sets.get(made.number), sets.current_paths(made.number), wan.network.graph
    assert where_they_are(known, was) == (
        "source:4000 source:4004 on path 0 (1-2-6); source:4001 on path 1 (1-3-6); "
        "source:4002 on path 2 (1-4-6); source:4003 on path 3 (1-5-6)"
    )
    assert why_moved(known, was, was, [], []) == ""
    wan.carrier(THIRD.start, up=False)
    wan.wait(0)
    wan.do(sets.reroute(wan.now_s))
    lost, found = changes(before, wan.network.graph)
    now = sets.current_paths(made.number)
    assert why_moved(known, was, now, lost, found) == (
        f"source:4002 on path 1 (1-3-6), as {THIRD}, {THIRD.end}-{THIRD.start} are gone"
    )
    before = wan.network.graph
    wan.carrier(THIRD.start, up=True)
    wan.wait(1)
    wan.do(sets.reroute(wan.now_s))
    lost, found = changes(before, wan.network.graph)
    assert why_moved(known, now, sets.current_paths(made.number), lost, found) == (
        f"source:4002 on path 2 (1-4-6), as {THIRD}, {THIRD.end}-{THIRD.start} are there again"
    )
    wan.do(sets.release(made.number))
    assert sets.current_paths(made.number) == {}
