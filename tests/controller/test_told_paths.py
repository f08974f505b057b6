"""What an operator is shown of path sets: which path each stream takes now, and which are down."""

from graphs import THESIS_A
from mpx_controller.api.messages import path_set_out
from mpx_controller.path_sets.sets import PathSets
from mpx_controller.status_text import paths_lines
from switches import Wan
from test_path_sets import DST, SRC, put, steered


def shown(wan: Wan, sets: PathSets, number: int) -> list[str]:
    known = sets.all[number]
    told = path_set_out(known, 60, 256, sets.alive(known), sets.current_paths(number)).model_dump()
    return list(paths_lines([told]))


def test_a_path_that_is_down_is_said_to_be_and_its_streams_are_where_they_go() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002, 4003)
    _, _, *before = shown(wan, sets, made.number)
    assert [line.split()[-1] for line in before] == [f"source:400{place}" for place in range(4)]
    assert not any("down" in line for line in before)
    third = next(ln.start for ln in THESIS_A.links if (ln.start.switch, ln.end.switch) == (4, 6))
    wan.carrier(third, up=False)
    wan.wait(0)
    wan.do(sets.reroute(wan.now_s))
    _, _, *after = shown(wan, sets, made.number)
    assert [("down" in line, line.count("source:")) for line in after] == [
        (False, 2),
        (False, 1),
        (True, 0),
        (False, 1),
    ]


def test_streams_that_no_path_of_their_set_can_carry_are_named() -> None:
    wan, sets = steered(THESIS_A)
    made = sets.assign(SRC, DST, 1, "me", wan.now_s)
    put(wan, sets, made.number, 4000)
    wan.carrier(made.paths[0].path[0].start, up=False)
    wan.wait(0)
    wan.do(sets.reroute(wan.now_s))
    assert "on no path of the set: source:4000" in shown(wan, sets, made.number)[-1]
