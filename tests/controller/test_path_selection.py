"""Which paths are chosen: the papers' examples as they want them, and against brute force."""

import itertools

import pytest
from graphs import (
    T_PATHS,
    THESIS_A,
    THESIS_B,
    THESIS_T1,
    THESIS_T2,
    M,
    all_simple_paths,
    graph_of,
    graphs,
    hops,
    plain,
)
from hypothesis import given, settings
from mpx_controller.graph import Graph, narrowest_bps
from mpx_controller.path_sets.max_flow import flow_bps, max_flow, paths_of, widest
from mpx_controller.path_sets.selection import SELECTORS, breadth_first, least_shared, widest_apart
from mpx_controller.path_sets.shares import bottleneck_groups, shares_bps


def test_breadth_first_is_the_thesis_algorithm() -> None:
    assert hops(breadth_first(THESIS_A, 1, 6), 1) == [(1, 2, 6), (1, 3, 6), (1, 4, 6), (1, 5, 6)]
    assert hops(breadth_first(THESIS_A, 1, 6, 2), 1) == [(1, 2, 6), (1, 3, 6)]
    assert hops(breadth_first(THESIS_B, 1, 6), 1) == [(1, 5, 6), (1, 2, 3, 6), (1, 2, 4, 6)]
    assert hops(breadth_first(THESIS_T1, 1, 7), 1) == [T_PATHS[3], T_PATHS[2], T_PATHS[1]]


def test_breadth_first_never_goes_through_the_destination() -> None:
    through = plain((1, 2), (2, 3), (3, 4), (4, 2))
    assert hops(breadth_first(through, 1, 2), 1) == [(1, 2)]


def test_least_shared_is_smoc_s_algorithm() -> None:
    found = hops(least_shared(THESIS_B, 1, 6), 1)
    assert found[0] == (1, 5, 6) and set(found) == set(hops(all_simple_paths(THESIS_B, 1, 6), 1))
    behind = plain((1, 2), (2, 3), (1, 4), (4, 5), (5, 3), (2, 5))
    assert hops(least_shared(behind, 1, 3), 1) == [
        (1, 2, 3),
        (1, 4, 5, 3),  # shares none
        (1, 2, 5, 3),  # shares one
        (1, 4, 5, 2, 3),  # as well, and is longer
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 0])
def test_the_thought_examples_are_answered_as_wanted(count: int) -> None:
    """Huang, chapter 7: today's order is by hops; wanted is what carries most."""
    first = {1: [1], 2: [1, 3], 3: [1, 3], 0: [1, 3]}
    second = {1: [1], 2: [1, 3], 3: [1, 3, 2], 0: [1, 3, 2]}
    assert hops(widest_apart(THESIS_T1, 1, 7, count), 1) == [T_PATHS[number] for number in first[count]]
    assert hops(widest_apart(THESIS_T2, 1, 7, count), 1) == [T_PATHS[number] for number in second[count]]


def test_a_wide_path_across_two_others_is_not_taken() -> None:
    """The quickest, 1-2-5-6, lies across both of the disjoint ones; beside it is only 1-4-5-2-3-6."""
    quick, slow = [(1, 2), (2, 5), (5, 6)], [(1, 4), (4, 5), (2, 3), (3, 6)]
    across = graph_of(
        *((a, b, 100 * M, 0.0) for a, b in quick),
        *((a, b, 100 * M, 0.01) for a, b in slow),
    )
    assert set(hops(widest_apart(across, 1, 6, 2), 1)) == {(1, 4, 5, 6), (1, 2, 3, 6)}
    assert hops(widest_apart(across, 1, 6, 1), 1) == [(1, 2, 5, 6)]


def test_parallel_links_are_two_paths() -> None:
    two = graph_of((1, 2, 100 * M, 0), (1, 2, 50 * M, 0))
    assert [narrowest_bps(path) for path in widest_apart(two, 1, 2)] == [100 * M, 50 * M]


@pytest.mark.parametrize("name", SELECTORS)
def test_at_one_switch_there_is_one_path_without_links(name: str) -> None:
    assert SELECTORS[name](THESIS_A, 3, 3, 4) == [()]


@pytest.mark.parametrize("name", SELECTORS)
@given(graphs())
def test_every_choice_is_of_simple_paths_each_once(name: str, graph: Graph) -> None:
    for start, destination in itertools.permutations(sorted(graph.switches), 2):
        every = all_simple_paths(graph, start, destination)
        for count in (0, 1, 2):
            chosen = SELECTORS[name](graph, start, destination, count)
            assert set(chosen) <= set(every) and len(set(chosen)) == len(chosen)
            assert bool(chosen) == bool(every) and (not count or len(chosen) <= count)


@given(graphs())
def test_one_path_is_the_widest(graph: Graph) -> None:
    for start, destination in itertools.permutations(sorted(graph.switches), 2):
        every = all_simple_paths(graph, start, destination)
        if every:
            best = max(narrowest_bps(path) for path in every)
            assert narrowest_bps(widest_apart(graph, start, destination, 1)[0]) == best


@given(graphs(5))
@settings(max_examples=60)
def test_a_maximum_flow_is_as_large_as_the_least_cut(graph: Graph) -> None:
    for start, destination in itertools.permutations(sorted(graph.switches), 2):
        flow = max_flow(graph, start, destination)
        others = sorted(graph.switches - {start, destination})
        cuts = [
            {start, *side} for size in range(len(others) + 1) for side in itertools.combinations(others, size)
        ]
        least = min(
            sum(ln.rate_bps for ln in graph.links if ln.start.switch in side and ln.end.switch not in side)
            for side in cuts
        )
        assert flow_bps(graph, flow, start) == pytest.approx(least)
        assert all(rate <= link.rate_bps + 1e-6 for link, rate in zip(graph.links, flow, strict=True))


@given(graphs(5, (50 * M, 100 * M)))
@settings(max_examples=60)
def test_all_paths_that_help_carry_nearly_the_maximum(graph: Graph) -> None:
    for start, destination in itertools.permutations(sorted(graph.switches), 2):
        most = flow_bps(graph, max_flow(graph, start, destination), start)
        carried = sum(shares_bps(widest_apart(graph, start, destination)))
        assert carried >= 0.9 * most


def test_the_widest_is_kept_beside_the_two_that_it_lies_across() -> None:
    graph = graph_of(
        *((1, 2, 50 * M, 0.0), (1, 3, 100 * M, 0.0), (1, 4, 100 * M, 0.001)),
        *((2, 4, 100 * M, 0.0), (3, 4, 50 * M, 0.0)),
    )
    paths = widest_apart(graph, 2, 3)
    assert set(hops(paths, 2)) == {(2, 4, 1, 3), (2, 1, 3), (2, 4, 3)}
    assert sum(shares_bps(paths)) == 150 * M


def test_a_mesh_of_64_switches_is_bounded() -> None:
    mesh = plain(*itertools.combinations(range(1, 65), 2))
    assert len(least_shared(mesh, 1, 64)) == 512


def test_what_is_full_is_not_wide() -> None:
    empty = [0.0] * len(THESIS_A.links)
    assert widest(THESIS_A, empty, 1, 6) is None
    assert paths_of(THESIS_A, empty, 1, 6, 4) == []


def test_shares_are_max_min() -> None:
    one = widest_apart(THESIS_T2, 1, 7, 1)[0]
    assert shares_bps([one, one]) == [50 * M, 50 * M] and shares_bps([()]) == [float("inf")]
    paths = {hops([path], 1)[0]: path for path in all_simple_paths(THESIS_T1, 1, 7)}
    chosen = [paths[T_PATHS[number]] for number in (1, 2, 3)]
    assert shares_bps(chosen) == [50 * M, 50 * M, 50 * M]  # 1 and 2 share 100 Mbit/s
    assert bottleneck_groups(chosen) == [0, 0, 1]
    paths = {hops([path], 1)[0]: path for path in all_simple_paths(THESIS_T2, 1, 7)}
    assert shares_bps([paths[T_PATHS[number]] for number in (1, 2, 3)]) == [100 * M, 50 * M, 100 * M]
    assert bottleneck_groups([paths[T_PATHS[number]] for number in (1, 2, 3)]) == [0, 1, 2]
