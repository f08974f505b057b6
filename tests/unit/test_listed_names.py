"""Names that come twice in a folder, or again in other letters."""

import hypothesis.strategies as st
from hypothesis import given

from mpx.transfer.listed_names import ListedNames, Repeat, folded


@given(st.lists(st.text(st.sampled_from("aAbBßé\u0301e"), max_size=3), max_size=30))
def test_each_name_is_compared_with_all_before(names: list[str]) -> None:
    seen = ListedNames()
    before: list[str] = []
    for name in names:
        if name in before:
            expected = Repeat.TWICE
        elif folded(name) in map(folded, before):
            expected = Repeat.FOLDED
        else:
            expected = Repeat.NEW
        assert seen.add(name) is expected
        before.append(name)


def test_what_counts_as_the_same_letters() -> None:
    assert folded("README") == folded("ReadMe")
    assert folded("\u00e9") == folded("E\u0301")
    assert folded("a") != folded("b")


def test_it_does_not_grow_without_end(monkeypatch) -> None:
    monkeypatch.setattr(ListedNames, "MOST", 10)
    seen = ListedNames()
    for i in range(100):
        assert seen.add(f"{i}") is Repeat.NEW
        assert seen.add(f"{i}") is Repeat.TWICE
    assert len(seen._seen) <= 11
