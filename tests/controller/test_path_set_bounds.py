"""How many paths and streams a path set gets, whoever has reported what."""

import pytest
from graphs import THESIS_A, graph_of, plain
from mpx_controller.network.forwarding import Bands
from mpx_controller.path_sets.selection import SELECTORS, least_shared
from mpx_controller.path_sets.sets import MOST_PATHS, Limits, PathSets
from test_path_sets import DST, SRC, put, steered

LIMITS = Limits()


@pytest.mark.parametrize("selection", SELECTORS)
def test_as_many_as_help_are_not_more_than_can_be_asked_for(selection: str) -> None:
    mesh = plain(*((a, b) for a in range(1, 9) for b in range(a + 1, 9)))
    assert len(least_shared(mesh, 1, 6)) > MOST_PATHS
    wan, _ = steered(mesh)
    assert wan.network is not None
    sets = PathSets(wan.network, Bands(), LIMITS, SELECTORS[selection])
    every, most = (sets.assign(SRC, DST, count, "me", wan.now_s) for count in (0, MOST_PATHS))
    assert every.paths == most.paths and len(every.paths) <= MOST_PATHS


def test_what_cannot_be_teaches_nothing() -> None:
    wan, sets = steered(graph_of((1, 6, 1e9, 0.05)))
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    on = made.paths[0].path
    believed = sets.bytes_per_stream(on)
    sets.feedback(made.number, "me", 0, 4, 9e6, 0.1)  # less than 1 % of what the path carries
    sets.feedback(made.number, "me", 0, LIMITS.streams + 1, 1e9, 0.1)  # more than it may have
    assert sets.bytes_per_stream(on) == believed
    sets.feedback(made.number, "me", 0, 4, 11e6, 0.1)
    assert sets.bytes_per_stream(on) == believed / 2, "no more than that at once"


def test_no_more_is_predicted_than_a_set_may_have() -> None:
    wan, sets = steered(graph_of((1, 2, 1e9, 0.4), (2, 6, 1e9, 0), (1, 3, 1e8, 0.4), (3, 6, 1e9, 0)))
    made = sets.assign(SRC, DST, 2, "me", wan.now_s)
    assert [path.streams for path in made.paths] == [53, 5]
    for _ in range(40):
        sets.feedback(made.number, "me", 0, LIMITS.streams, 1e9, 0.001)
    other = sets.assign(SRC, DST, 2, "me", wan.now_s)
    assert [path.streams for path in other.paths] == [LIMITS.streams - 1, 1]
    put(wan, sets, other.number, *range(4000, 4000 + other.streams))


def test_a_set_has_no_more_paths_than_streams() -> None:
    wan, sets = steered(THESIS_A, Limits(streams=3))
    made = sets.assign(SRC, DST, 0, "me", wan.now_s)
    assert [path.streams for path in made.paths] == [1, 1, 1]
    assert put(wan, sets, made.number, 4000, 4001, 4002) == [0, 1, 2]
