"""Lines that wait, compressed: all come back in their order, in groups, and none is kept twice."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.kept_lines import KeptLines

LINES = st.lists(
    st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"").decode("utf-8", "surrogateescape"))
)


@given(LINES, st.integers(1, 7))
def test_all_come_back_in_their_order(lines: list[str], together: int) -> None:
    kept = KeptLines()
    for line in lines:
        kept.add(line)
    assert kept.count == len(lines)
    groups = list(kept.take(together))
    assert [line for group in groups for line in group] == lines
    assert all(0 < len(group) <= together for group in groups)
    assert list(kept.take(together)) == []


def test_many_alike_take_little() -> None:
    kept, line = (
        KeptLines(),
        "-rw-r--r--    1 ftp      ftp          {:8} Nov 26 12:00 measurement-{:08}.dat".format,
    )
    lines = [line(12345 + 7 * number, number) for number in range(50_000)]
    for each in lines:
        kept.add(each)
    assert kept.kept_bytes < sum(map(len, lines)) / 4
    assert [each for group in kept.take(200) for each in group] == lines
