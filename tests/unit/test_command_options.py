"""Values of options on the command line."""

import pytest

from mpx.choices import parse_ports
from mpx.commands.copy_options import _count
from mpx.errors import UsageError


@pytest.mark.parametrize("text", ["", "x", "-1", "²", "٣", "1.5", "9" * 5000, "1\n"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        _count(text)
    with pytest.raises(UsageError):
        parse_ports(f"{text}-{text}")


def test_numbers() -> None:
    assert (_count("auto"), _count("17")) == (None, 17)
    assert parse_ports("40000-41000") == parse_ports(" 40000, 41000") == (40000, 41000)
