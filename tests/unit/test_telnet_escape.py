"""What a server makes of 0xFF in names is read from how it repeats a name."""

import pytest

from mpx.endpoints.ftp.telnet_escape import wants_doubled

ESCAPE = "\udcff"


@pytest.mark.parametrize(
    ("two", "one", "wanted"),
    [
        (2, 1, False),  # takes and says them as they are
        (4, 2, False),  # takes them as they are, and doubles what it says
        (1, 1, True),  # reads two as one, and a single one too
        (1, 0, True),  # reads two as one, and swallows a single one
        (2, 2, True),  # the same, and doubles what it says
        (2, 0, True),
        (0, 0, False),  # cannot be told
        (0, 1, False),
    ],
)
def test_what_is_read(two: int, one: int, wanted: bool) -> None:
    refusals = (f"/home/{ESCAPE * count}t0: No such file or directory" for count in (two, one))
    assert wants_doubled(*refusals, "t0") == wanted


def test_a_server_that_repeats_nothing_gets_them_as_they_are() -> None:
    assert not wants_doubled("Failed to change directory.", "Failed to change directory.", "t0")
