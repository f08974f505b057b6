"""Values of options on the command line."""

import pytest

from mpx.choices import parse_ports
from mpx.commands.copy_options import _count
from mpx.errors import UsageError
from mpx.options import CopyOptions


@pytest.mark.parametrize("text", ["", "x", "-1", "²", "٣", "1.5", "9" * 5000, "1\n"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        _count(text)
    with pytest.raises(UsageError):
        parse_ports(f"{text}-{text}")


def test_numbers() -> None:
    assert (_count("auto"), _count("17")) == (None, 17)
    assert parse_ports("40000-41000") == parse_ports(" 40000, 41000") == (40000, 41000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"streams": "4"}, "--streams is a whole number, not '4'"),
        ({"streams": True}, "--streams is"),
        ({"files": 2.5}, "--files is"),
        ({"max_streams": None}, "--max-streams is"),
        ({"retries": None}, "--retries is"),
        ({"rate_bps": "8Mbit/s"}, "--rate is a number of bits per second"),
        ({"timeout_s": "30s"}, "--timeout is a number of seconds"),
        ({"timeout_s": float("nan")}, "--timeout must be"),
        ({"timeout_s": float("inf")}, "--timeout must be"),
        ({"timeout_s": 1e7}, "--timeout must be at most ten days"),
        ({"block_size_bytes": b"4"}, "--block-size is"),
        ({"tuner": "paper", "growth": "2"}, "--growth is"),
        ({"recursive": "yes"}, "--recursive is True or False"),
        ({"resume": 1}, "--continue is True or False"),
        ({"links": ["keep"]}, "--links is text"),
        ({"congestion": None}, "--congestion is text"),
        ({"partial_prefix": None}, "--partial-prefix is text"),
        ({"port_range": (1, 2)}, "--port-range is text"),
    ],
)
def test_values_of_another_type_are_refused_by_the_name_of_the_option(
    given: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        CopyOptions(**given)  # type: ignore[arg-type]
