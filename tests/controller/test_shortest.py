"""Shortest paths and spanning trees, against brute force."""

from graphs import THESIS_B, all_simple_paths, graph_of, graphs, hops
from hypothesis import given
from mpx_controller.graph import Graph, delay_s
from mpx_controller.shortest import next_links, shortest_path, tree_links


def test_hops_count_first_then_delay() -> None:
    graph = graph_of(
        (1, 2, 1e9, 0.010), (1, 3, 1e9, 0.001), (2, 4, 1e9, 0.010), (3, 4, 1e9, 0.001), (1, 4, 1e9, 0.5)
    )
    assert hops([shortest_path(graph, 1, 4) or ()], 1) == [(1, 4)]
    without = graph.without(link for link in graph.links if {link.start.switch, link.end.switch} == {1, 4})
    assert hops([shortest_path(without, 1, 4) or ()], 1) == [(1, 3, 4)]


@given(graphs())
def test_no_path_is_shorter(graph: Graph) -> None:
    for start in graph.switches:
        for destination in graph.switches - {start}:
            found = shortest_path(graph, start, destination)
            every = all_simple_paths(graph, start, destination)
            assert (found is None) == (not every)
            if found is not None:
                assert found in every
                # The sum of delays depends on the order of adding, so in whole microseconds.
                key = min((len(path), round(delay_s(path) * 1e6)) for path in every)
                assert (len(found), round(delay_s(found) * 1e6)) == key


@given(graphs())
def test_following_the_next_links_ends(graph: Graph) -> None:
    for destination in graph.switches:
        towards = next_links(graph, destination)
        for start in towards:
            at = start
            for _ in graph.switches:
                if at == destination:
                    break
                at = towards[at].end.switch
            assert at == destination


@given(graphs())
def test_a_tree_reaches_all_and_has_no_loop(graph: Graph) -> None:
    tree = tree_links(graph)
    pruned = Graph.of(graph.switches, tree)
    for start in graph.switches:
        for destination in graph.switches - {start}:
            ways = len(all_simple_paths(pruned, start, destination))
            assert ways == bool(all_simple_paths(graph, start, destination))


def test_a_link_seen_in_one_direction_only_is_not_in_the_tree() -> None:
    one_way = THESIS_B.without([next(link for link in THESIS_B.links if link.start.switch == 1)])
    assert all(THESIS_B.by_start[link.end] in tree_links(one_way) for link in tree_links(one_way))
