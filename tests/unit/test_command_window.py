"""Which commands go out ahead of the replies to those before: all, in their order, and never too many."""

from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.command_window import MOST_BYTES, MOST_COMMANDS, CommandWindow


@given(st.lists(st.integers(1, 9000), max_size=1500))
def test_every_command_goes_out_once_and_never_too_many_are_on_the_way(sizes: list[int]) -> None:
    commands = [b"%d" % i + b"x" * size for i, size in enumerate(sizes)]
    window, sent = CommandWindow(commands), list[bytes]()
    for answered in range(len(commands)):
        sent += window.due()
        on_the_way = sent[answered:]
        assert on_the_way
        assert len(on_the_way) <= MOST_COMMANDS
        assert sum(map(len, on_the_way[:-1])) < MOST_BYTES
        window.answered()
    assert not window.due()
    assert sent == commands


def test_further_ones_follow_in_few_writes() -> None:
    window, writes = CommandWindow([b"NOOP\r\n"] * 4000), 0
    for _ in range(4000):
        writes += bool(window.due())
        window.answered()
    assert writes <= 2 * 4000 / MOST_COMMANDS
