"""Use of path sets: by the bytes that are counted; and what switches have idled out."""

from graphs import THESIS_A
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller.cookies import Kind, kind_of
from mpx_controller.flows import Gone
from mpx_controller.path_sets.path_set import StreamKey
from mpx_controller.path_sets.sets import Limits
from mpx_controller.path_sets.usage import Counter, used
from test_path_sets import DST, SRC, current_paths, put, steered

ENTRIES = st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=4)  # of one path set: their bytes
HERE = Counter(1, 1)


@given(ENTRIES, ENTRIES, st.sets(st.integers(0, 5)))
def test_what_has_carried_bytes_is_used(had: dict[int, int], carry: dict[int, int], anew: set[int]) -> None:
    """Entries are installed anew, some with bytes since: whatever they carry is noticed."""
    has = {entry: (0 if entry in anew else count) + carry.get(entry, 0) for entry, count in had.items()}
    found = used({HERE: sum(had.values())}, {HERE: sum(has.values())})
    carried = sum(carry.get(entry, 0) for entry in had)
    fallen = sum(count for entry, count in had.items() if entry in anew)
    if carried and carried != fallen:
        assert found == {1}
    if not carried and not fallen:
        assert found == set()


def test_nothing_is_made_of_what_was_not_asked_before() -> None:
    assert used({}, {HERE: 5}) == set()
    assert used({HERE: 5}, {Counter(1, 2): 9, Counter(2, 1): 9}) == set()
    assert used({HERE: 5}, {}) == set()
    assert used({HERE: 5}, {HERE: 0}) == set()
    assert used({HERE: 5}, {HERE: 5}) == set()


def test_use_is_one_more_lease() -> None:
    wan, sets = steered(THESIS_A, Limits(lease_s=60))
    busy, idle = (sets.assign(SRC, DST, 4, "me", wan.now_s) for _ in range(2))
    wan.now_s += 59
    sets.used([busy.number, 99], wan.now_s)
    wan.now_s += 59
    ended, _ = sets.expire(wan.now_s)
    assert ended == [idle.number] and list(sets.all) == [busy.number]


def test_entries_outlast_leases_by_far_and_no_longer_than_openflow_can_say() -> None:
    assert [Limits(lease_s=lease).idle_s for lease in (1, 60, 100.5, 86_400)] == [600, 600, 1005, 65_535]


def test_what_a_switch_has_idled_out_comes_back_while_the_set_is_there() -> None:
    wan, sets = steered(THESIS_A)
    assert wan.network is not None
    made = sets.assign(SRC, DST, 4, "me", wan.now_s)
    put(wan, sets, made.number, 4000, 4001, 4002)
    third = wan.switches[4].entries
    idled = [entry for entry in third.values() if kind_of(entry.cookie) == Kind.PATH_SET]
    assert len(idled) == 2 and {entry.idle_s for entry in idled} == {600}
    for entry in idled:
        del third[entry.key]
        assert wan.network.entry_gone(4, Gone(entry.key, entry.cookie + 1, 600, 1)) == []
        wan.do(wan.network.entry_gone(4, Gone(entry.key, entry.cookie, 600, 1)))
    assert [third.get(entry.key) for entry in idled] == idled
    assert current_paths(wan, 4002) == ([1, 4, 6], [6, 4, 1])
    wan.do(sets.remove_streams(made.number, [StreamKey(4002, "source")], "me"))
    for entry in idled:
        assert wan.network.entry_gone(4, Gone(entry.key, entry.cookie, 600, 1)) == []
