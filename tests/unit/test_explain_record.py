"""A report is outside input: what is wrong with it is said, and nothing else happens."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from explained import NAMES, REPORTS, record, stored, told
from hypothesis import given, settings
from hypothesis import strategies as st

from mpx._version import __version__
from mpx.errors import UsageError
from mpx.explain.page import page
from mpx.explain.record import MOST_BYTES, read_report
from mpx.explain.story import tell

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where there is anything in a report; of a list the first two."""
    yield at
    within = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, each in within:
        yield from places(each, (*at, key))


def changed(
    report: dict[str, Any], at: tuple[Any, ...], change: Callable[[Any, Any], None]
) -> dict[str, Any]:
    """Return a copy of which something was changed: `change` takes what holds it, and its key."""
    made: Any = copy.deepcopy(report)
    place = made
    for key in at[:-1]:
        place = place[key]
    change(place, at[-1])
    return dict(made)


@pytest.mark.parametrize("name", NAMES)
def test_real_reports_fit_the_schema_and_are_read(name: str) -> None:
    from importlib.resources import files

    schema = json.loads(files("mpx").joinpath("report.schema.json").read_text())
    jsonschema.validate(stored(name), schema)
    read = record(stored(name))
    assert read.duration_s == stored(name)["duration_s"]
    assert len(read.intervals) == len(stored(name)["intervals"])
    assert read.bytes.total == stored(name)["bytes"]["total"]


ALL = [(name, at) for name in ("background", "four_paths") for at in places(stored(name)) if at]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL), JSON)
def test_whatever_stands_somewhere_else_is_read_or_refused(
    where: tuple[str, tuple[Any, ...]], value: Any
) -> None:
    name, at = where
    text = json.dumps(changed(stored(name), at, lambda holder, key: holder.__setitem__(key, value)))
    try:
        read = read_report(text.encode("utf-8", "surrogatepass"), "r.json")
    except UsageError as error:
        assert str(error).startswith("r.json") and "Traceback" not in str(error)
        return
    assert page(read, tell(read)).encode()


@pytest.mark.parametrize(("name", "at"), [each for each in ALL if isinstance(each[1][-1], str)])
def test_a_key_that_is_missing_is_named_or_not_needed(name: str, at: tuple[Any, ...]) -> None:
    report = changed(stored(name), at, lambda holder, key: holder.__delitem__(key))
    try:
        tell(record(report))
    except UsageError as error:
        assert f"has no '{at[-1]}'" in str(error)


def test_a_report_of_before_there_were_intervals_is_told() -> None:
    old = stored("window")
    for key in ("intervals", "settings", "flow_began_s", "cpu_s"):
        del old[key]
    story = told(old)
    assert story["the path"][0] == "fact: round-trip time 60 ms"
    assert "fact: at 1 s: 24 streams" in story["the path"]
    assert "what would have been faster" not in story


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"mpx": NaN}', "not JSON"),
        (b'{"mpx": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no 'mpx'"),
        (b" " * (MOST_BYTES + 1), "more than 64 MiB"),
    ],
)
def test_what_is_no_report_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        read_report(data, "r.json")
    assert "\n" not in str(refused.value) and refused.value.exit_code == 2


@pytest.mark.parametrize("value", ["1e999", "-1", "true", '"7"', "null", "1e30"])
def test_a_number_is_a_number(value: str) -> None:
    text = (REPORTS / "rate.json").read_text().replace('"duration_s":16.189', f'"duration_s":{value}')
    with pytest.raises(UsageError, match="'duration_s' is not"):
        read_report(text.encode(), "r.json")


def test_a_share_is_at_most_all() -> None:
    report = stored("rate")
    report["intervals"][3]["idle"] = 1.5
    with pytest.raises(UsageError, match=r"intervals\[3\]: 'idle' is not a share"):
        record(report)


def test_an_interval_does_not_end_before_it_begins() -> None:
    report = stored("rate")
    report["intervals"][2]["until_s"] = 0.5
    with pytest.raises(UsageError, match=r"intervals\[2\]: 'until_s' is not at least 0.8"):
        record(report)


def test_lists_are_bounded() -> None:
    with pytest.raises(UsageError, match="'notes' is not a list of at most"):
        record(stored("rate") | {"notes": [""] * 4001})


def test_paths_are_bounded() -> None:
    report = stored("rate")
    first = report["intervals"][0]
    report["intervals"] = [first | {"path": str(number)} for number in range(5000)]
    with pytest.raises(UsageError, match="paths; give a report"):
        record(report)


def test_another_version_is_named_where_its_report_is_another() -> None:
    report = stored("rate") | {"mpx": "9.9"}
    assert record(report).status == "done"
    del report["bytes"]
    with pytest.raises(UsageError, match=rf"written by mpx 9\.9, this is {__version__}"):
        record(report)


def test_names_cannot_move_a_cursor_or_be_no_text() -> None:
    report = stored("rate") | {"source": "a\x1b[2J\udc80\ud800\n"}
    assert record(report).source == r"a\x1b[2J\x80?\x0a"
