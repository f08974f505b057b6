"""Reading over SFTP in order, whatever the order and the size of the answers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.sftp.read_in_order import ReadInOrder
from mpx.endpoints.sftp.session import MOST_OUTSTANDING, Request
from mpx.endpoints.sftp.wire import Code, Data, Reply, Status
from mpx.errors import IntegrityError, SourceError

BLOCK = 8


class Answering:
    """A session whose server answers in an order of its own, with as much as it likes of what is there."""

    host = "there"
    read_bytes = BLOCK

    def __init__(self, content: bytes, choose: Callable[[int], int]) -> None:
        """`choose(n)` returns a number from 0 to n - 1."""
        self.content, self._choose = content, choose
        self._waiting: list[tuple[int, int, Callable[[Reply], None]]] = []
        self.most_under_way = 0

    @property
    def outstanding(self) -> int:
        return len(self._waiting)

    def submit(self, asked: Request, then: Callable[[Reply], None]) -> None:
        start, size = (int.from_bytes(field, "big") for field in asked.fields[1:])
        self._waiting.append((start, size, then))
        self.most_under_way = max(self.most_under_way, sum(each[1] for each in self._waiting))

    def pump(self) -> None:
        assert self._waiting, "nothing is asked for, and an answer is waited for"
        start, size, then = self._waiting.pop(self._choose(len(self._waiting)))
        there = self.content[start : start + size]
        if not there:
            then(Status(Code.EOF, ""))
            return
        content = bytearray(there[: 1 + self._choose(len(there))])
        then(Data(memoryview(content)))
        content[:] = bytes(len(content))  # what is lent is used for the next packet


def read(
    session: Answering, start: int, end: int, behind: int | None, window: int = 64
) -> tuple[bytes, bool]:
    got = bytearray()

    def put(at: int, data: memoryview) -> None:
        assert at == start + len(got)
        got.extend(data)

    reading = ReadInOrder(
        session,
        b"",
        "name",
        start=start,
        end=end,
        behind_bytes=behind,
        window_bytes=window,
        put=put,
    )
    came = reading.run(lambda most: most)
    assert came.size_bytes == len(got)
    return bytes(got), came.is_ended


@given(
    st.binary(max_size=300),
    st.integers(0, 320),
    st.integers(0, 320),
    st.integers(1, 100),
    st.sampled_from(["within", "last", "whole"]),
    st.data(),
)
def test_all_that_is_there_comes_in_order(
    content: bytes, one: int, other: int, window: int, what: str, data: st.DataObject
) -> None:
    start, end = (0, max(one, other)) if what == "whole" else sorted((one, other))
    session = Answering(content, lambda n: data.draw(st.integers(0, n - 1)))
    behind = {"within": 0, "last": 1, "whole": None}[what]
    got, is_ended = read(session, start, end, behind, window)
    upto = {"within": end, "last": end + 1, "whole": len(content)}[what]
    assert got == content[start:upto]
    assert is_ended == (upto > max(start, len(content)) or what == "whole")
    assert session.most_under_way < window + BLOCK


def test_who_finds_no_room_beside_others_waits_for_it() -> None:
    """All that may be outstanding is another's: nothing is asked for, and nothing has come."""
    session, got = Answering(b"x" * BLOCK * MOST_OUTSTANDING, lambda _: 0), [0, 0]

    def reading(number: int, end: int) -> ReadInOrder:
        def put(_at: int, data: memoryview) -> None:
            got[number] += len(data)

        size = {"start": 0, "end": end, "behind_bytes": 0, "window_bytes": len(session.content)}
        return ReadInOrder(session, b"", "name", put=put, **size)

    under_way = [reading(0, len(session.content)), reading(1, BLOCK)]
    while under_way := [each for each in under_way if not each.advance(lambda most: most)]:
        session.pump()
    assert got == [len(session.content), BLOCK]


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (Data(memoryview(b"")), IntegrityError),
        (Data(memoryview(b"x" * (BLOCK + 1))), IntegrityError),
        (Status(Code.FAILURE, ""), SourceError),
        (Status(Code.PERMISSION_DENIED, ""), SourceError),
    ],
)
def test_what_makes_no_sense_is_refused(reply: Reply, raised: type[Exception]) -> None:
    class Senseless(Answering):
        def pump(self) -> None:
            _, _, then = self._waiting.pop(0)
            then(reply)

    with pytest.raises(raised, match="there"):
        read(Senseless(b"", lambda _: 0), 0, 20, 0)
