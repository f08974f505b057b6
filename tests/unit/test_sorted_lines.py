"""Lines that are sorted, on disk where they are many."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.commands import sorted_lines
from mpx.commands.sorted_lines import SortedLines


@given(st.lists(st.binary(max_size=3), max_size=60), st.integers(1, 20))
def test_all_come_back_in_order(names: list[bytes], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_lines, "MOST", most)
        patch.setattr(sorted_lines, "_BLOCK", 2)
        lines = SortedLines()
        for name in names:
            lines.put(name, b"line " + name)
        assert list(lines.drain()) == [b"line " + name for name in sorted(names)]


def test_without_a_place_on_disk_they_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(sorted_lines, "MOST", 2)
    lines = SortedLines()
    for name in (b"c", b"a", b"d", b"b", b"e"):
        lines.put(name, name)
    assert list(lines.drain()) == [b"a", b"b", b"c", b"d", b"e"]
