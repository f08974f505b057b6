"""Values with units: what is understood, what is refused, and that what we print can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.errors import UsageError
from mpx.units import (
    counted,
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30ms", 0.03),
        ("250us", 0.00025),
        ("1.5s", 1.5),
        ("2min", 120),
        ("1h", 3600),
        ("2d", 172800),
        ("0", 0),
        ("0s", 0),
        (" 5 s ", 5),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("1bit/s", 1),
        ("64kbit/s", 64e3),
        ("800Mbit/s", 8e8),
        ("1.25Gbit/s", 1.25e9),
        ("1Tbit/s", 1e12),
        ("1B/s", 8),
        ("1kB/s", 8e3),
        ("1KB/s", 8e3),
        ("1MB/s", 8e6),
        ("1MiB/s", 8 * 2**20),
        ("2 GiB/s", 2**34),
    ],
)
def test_rate(text: str, bps: float) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("65536", 65536),
        ("7B", 7),
        ("64KiB", 65536),
        ("4MiB", 4 * 2**20),
        ("1GB", 10**9),
        ("1.5GiB", 3 * 2**29),
        ("2TiB", 2**41),
        ("1PB", 10**15),
        ("0.1kB", 100),
    ],
)
def test_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("parse", "example", "bad"),
    [
        *(
            (parse_duration, "30s", bad)
            for bad in ("", "30", "s", "-1s", "1e3s", "1 fortnight", "30MS", "1,5s")
        ),
        *(
            (parse_rate, "800Mbit/s", bad)
            for bad in ("", "800", "800Mbit", "1mb/s", "fast", "0Mbit/s", "-1MB/s")
        ),
        *((parse_size, "4MiB", bad) for bad in ("", "4mib", "MiB", "1.5", "0.0001kB", "-4", "4MiB/s", "inf")),
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(parse, example: str, bad: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(bad)
    assert f"'{bad}'" in str(refusal.value)
    assert example in str(refusal.value)


@pytest.mark.parametrize("parse", [parse_duration, parse_rate, parse_size])
@given(text=st.text(max_size=12))
def test_any_text_is_a_value_or_a_usage_error(parse, text: str) -> None:
    try:
        assert parse(text) >= 0
    except UsageError as refusal:
        assert "for example" in str(refusal)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (4 * 2**20, "4 MiB"),
        (2**20 - 1, "1 MiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (152.4 * 2**30, "152 GiB"),
        (2000 * 2**50, "2000 PiB"),
    ],
)
def test_format_size(size: float, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0, "0 bit/s"),
        (800e6, "800 Mbit/s"),
        (1.25e9, "1.25 Gbit/s"),
        (999.9e6, "1 Gbit/s"),
        (12.34e6, "12.3 Mbit/s"),
        (9.999e6, "10 Mbit/s"),
        (3e16, "30000 Tbit/s"),
    ],
)
def test_format_rate(rate: float, text: str) -> None:
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (0.00025, "250 us"),
        (0.03, "30 ms"),
        (0.9999, "1 s"),
        (1.5, "1.5 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3599.7, "1 h 00 min"),
        (3725, "1 h 02 min"),
        (90061, "25 h 01 min"),
    ],
)
def test_format_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(0, 2**62))
def test_a_printed_size_reads_as_nearly_the_same(size: int) -> None:
    number, unit = format_size(size).split()
    assert parse_size(f"1{unit}") * float(number) == pytest.approx(size, rel=0.006)


@given(st.floats(1, 1e15))
def test_a_printed_rate_reads_as_nearly_the_same(rate: float) -> None:
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=0.006)


@given(st.floats(1e-6, 59.9))
def test_a_printed_duration_below_a_minute_reads_as_nearly_the_same(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.006)


@given(st.integers(0, 10**6), st.sampled_from(["KiB", "MiB", "GiB", "kB", "MB"]))
def test_sizes_are_exact(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == number * parse_size(f"1{unit}")


def test_counts_have_their_noun() -> None:
    assert [counted(number, "stream") for number in (0, 1, 2)] == ["0 streams", "1 stream", "2 streams"]
    assert [counted(number, "switch", "switches") for number in (1, 2)] == ["1 switch", "2 switches"]
