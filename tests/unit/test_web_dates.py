"""Times of HTTP and WebDAV: the forms of RFC 9110 and RFC 3339, and nothing for what is no time."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.dates import date_of, http_date, iso_date

ANY = st.datetimes(timezones=st.just(UTC)).map(lambda each: each.replace(microsecond=0))
LIKELY = st.text("0123456789:-+, .TZGMUCnovNdcSu\u0663\n", max_size=70)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        " Sun, 06 Nov 1994 08:49:37 UTC ",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Mon, 06 nov 1994 08:49:37 GMT",  # of some other week
    ],
)
def test_the_forms_of_http(text: str) -> None:
    assert http_date(text) == 784111777


def test_two_digits_of_a_year() -> None:
    assert http_date("Friday, 01-Jan-69 00:00:00 GMT") == -31536000
    assert http_date("Sunday, 01-Jan-68 00:00:00 GMT") == 3092601600


@given(ANY)
def test_any_time_is_read_as_it_was_written(time: datetime) -> None:
    seconds = (time - EPOCH) // timedelta(seconds=1)
    assert http_date(format_datetime(time, usegmt=True)) == seconds
    assert http_date(f"Sun {time:%b} {time.day:2} {time:%H:%M:%S} {time.year:04}") == seconds
    assert iso_date(time.isoformat()) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 EST",
        "Sun, 06 Nov 1994 08:49:37 +0100",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 99999 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, \u0660\u0666 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT" + " " * 100,
        "1994-11-06T08:49:37Z",
    ],
)
def test_what_is_no_date_of_http(text: str) -> None:
    assert http_date(text) is None


def test_a_leap_second() -> None:
    assert http_date("Sat, 31 Dec 2016 23:59:60 GMT") == http_date("Sun, 01 Jan 2017 00:00:00 GMT")


def test_times_of_iso_8601() -> None:
    assert iso_date("1994-11-06T08:49:37Z") == 784111777
    assert iso_date("1994-11-06t10:49:37.250+02:00") == 784111777.25
    assert iso_date(" 1994-11-06 06:19:37-0230 ") == 784111777
    for text in ("1994-11-06T08:49:37", "1994-11-06", "1994-13-06T08:49:37Z", "9999-99-99T99:99:99Z", ""):
        assert iso_date(text) is None


@given(LIKELY | st.text())
def test_any_text_is_read_or_not(text: str) -> None:
    http_date(text)
    iso_date(text)


@given(st.integers(min_value=-62_135_596_800, max_value=253_402_300_799))
def test_dates_are_written_as_they_are_read(seconds: int) -> None:
    assert http_date(date_of(seconds)) == seconds


def test_fractions_of_a_second_are_left_out_and_other_years_too() -> None:
    assert date_of(1_700_000_000.9) == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert date_of(-0.5) == "Wed, 31 Dec 1969 23:59:59 GMT"
    assert date_of(1e18) == ""
