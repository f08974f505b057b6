"""The page and its picture: well formed, by themselves, and nothing that a report holds becomes markup."""

import json
import math
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from explained import NAMES, record, stored
from hypothesis import given
from hypothesis import strategies as st

from mpx.explain.axis import ticks, time_label, time_ticks
from mpx.explain.drawing import svg
from mpx.explain.page import MOST_ROWS, page
from mpx.explain.picture import MOST_MARKS, picture
from mpx.explain.story import tell

EVIL = "<script>alert(1)</script>\"'&</text><img src=http://evil.example/x>"


def page_of(report: dict[str, Any]) -> str:
    read = record(report)
    return page(read, tell(read))


def drawn(report: dict[str, Any]) -> ElementTree.Element:
    made = picture(record(report))
    assert made is not None
    return ElementTree.fromstring(svg(made))


def texts(element: ElementTree.Element, kind: str = "") -> list[str]:
    return [
        each.text or ""
        for each in element.iter()
        if each.tag.endswith("text") and kind in each.get("class", "")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_needs_nothing_else(name: str) -> None:
    made = page_of(stored(name))
    assert made.startswith("<!DOCTYPE html>") and made.count("<svg ") == 1
    assert "default-src 'none'" in made
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\bsrc=|\bhref=|\bon\w+=", made)


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_drawn_within_the_picture(name: str) -> None:
    root = drawn(stored(name))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        for key in ("x", "x1", "x2", "cx"):
            assert 0 <= float(element.get(key, 0)) <= width
        for key in ("y", "y1", "y2", "cy"):
            assert 0 <= float(element.get(key, 0)) <= height
        numbers = [float(number) for number in re.findall(r"[\d.]+", element.get("d", ""))]
        assert all(0 <= number <= width for number in numbers)
    titles = texts(root, "title")
    assert {"Goodput, Mbit/s", "Streams", "Round-trip time, ms"} <= set(titles)
    assert ("Congestion control" in titles) == (name != "download")  # where the server chose it
    assert ("Goodput of all paths, Mbit/s" in titles) == (name == "four_paths")


def test_labels_do_not_overlap() -> None:
    for name in NAMES:
        numbers = [each for each in drawn(stored(name)).iter() if each.get("class") == "number"]
        at = [float(each.attrib["x"]) for each in numbers]
        assert all(other - one >= 16 for one, other in pairwise(at))
        inner = [each for each in drawn(stored(name)).iter() if each.get("class") == "in"]
        assert all((each.text or "") and float(each.attrib["x"]) > 76 for each in inner)


def test_names_in_bars_fit_in() -> None:
    report = stored("background")
    report["intervals"][5]["congestion"] = "bbr"
    bars = [each for each in drawn(report).iter() if each.tag.endswith("}g")]
    widths = {}
    for bar in bars:
        within = {each.get("class", "").split()[0]: each for each in bar if each.get("class")}
        if "bar" in within:
            widths[float(within["bar"].attrib["x"])] = within.get("in")
            if "in" in within:
                letters = len(within["in"].text or "")
                assert float(within["bar"].attrib["width"]) >= 6.8 * letters + 6
    assert None in widths.values()  # that of the one interval


def test_what_was_recognised_is_in_the_picture() -> None:
    root = drawn(stored("background"))
    assert texts(root, "in") == ["cubic", "bbr", "none", "C", "B", "BB"]
    assert texts(root, "number") == ["2", "3", "4"]


def test_the_pages_table_has_the_decisions() -> None:
    made = page_of(stored("window"))
    assert made.count("<tr>") == 1 + 4
    assert "trial of 24 streams" in made


def test_nothing_in_a_report_becomes_markup() -> None:
    text = json.dumps(stored("four_paths"))
    report = json.loads(text.replace('"cubic"', json.dumps(EVIL)).replace('"unknown"', json.dumps(EVIL)))
    for each in (*report["timeline"], *report["intervals"], *report["decisions"]["paths"]):
        each["path"] += EVIL
    for event in report["timeline"]:
        event["reason"] = EVIL
    report |= {
        "source": EVIL, "destination": f"ftp://{EVIL}/", "error": EVIL, "notes": [EVIL],
        "failures": [{"name": EVIL, "error": EVIL}],
    }  # fmt: skip
    report["decisions"] |= {"congestion_not_had": EVIL, "controller": EVIL}
    report["settings"] |= {"policy": EVIL, "congestion": EVIL}
    made = page_of(report)
    assert "alert(1)" in made
    assert not re.search(r"<script|<img", made)
    drawn(report)  # well formed


def test_many_decisions_are_bounded() -> None:
    report = stored("window")
    first = report["timeline"][0]
    report["timeline"] = [first | {"t_s": n / 100, "streams": 1 + n % 7} for n in range(900)]
    report["timeline_omitted"] = 5
    made = picture(record(report))
    assert made is not None and len(made.marks) == MOST_MARKS
    html = page_of(report)
    assert html.count("<tr>") == 1 + MOST_ROWS
    assert f"{900 - MOST_ROWS + 5} more decisions are not listed" in html


def test_what_is_rare_is_marked_first() -> None:
    report = stored("window")
    first = report["timeline"][0]
    steps = [first | {"t_s": n / 10, "streams": 1 + n % 7} for n in range(90)]
    switch = first | {"t_s": 9.5, "streams": steps[-1]["streams"], "congestion": "bbr", "reason": "switched"}
    report["timeline"] = [*steps, switch]
    made = picture(record(report))
    assert made is not None and made.marks[-1].text == "switched"


def test_an_empty_report_has_no_picture() -> None:
    report = stored("rate") | {"timeline": [], "intervals": []}
    assert picture(record(report)) is None
    assert "<svg" not in page_of(report)


def test_a_report_without_intervals_is_drawn_from_its_decisions() -> None:
    report = stored("window")
    del report["intervals"]
    assert texts(drawn(report), "title") == ["Goodput, Mbit/s", "Streams"]


@given(st.floats(1e-6, 1e17), st.integers(1, 12), st.booleans())
def test_ticks_reach_the_highest_value(most: float, count: int, is_whole: bool) -> None:
    found = ticks(most, count, is_whole=is_whole)
    assert found[0] == 0 and found[-1] >= most * (1 - 1e-6)
    assert 2 <= len(found) <= count + 2
    assert all(other > one for one, other in pairwise(found))
    assert not is_whole or all(value == round(value) for value in found)


def test_ticks_of_nothing() -> None:
    assert list(ticks(0.0, 4)) == [0.0, 1.0]
    assert list(ticks(math.inf, 4)) == [0.0, 1.0]


@given(st.floats(1e-3, 1e9))
def test_times_are_within_and_have_different_names(until_s: float) -> None:
    found = time_ticks(until_s, 10)
    assert 2 <= len(found) <= 12 or until_s < 0.1
    assert found[0] == 0 and found[-1] <= until_s * (1 + 1e-6)
    names = [time_label(t_s, until_s) for t_s in found]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 14 for name in names)


def test_times_have_the_unit_of_their_axis() -> None:
    assert [time_label(t, 90) for t in (0, 7.5, 90)] == ["0 s", "7.5 s", "90 s"]
    assert [time_label(t, 600) for t in (0, 150, 600)] == ["0 min", "2:30 min", "10 min"]
    assert [time_label(t, 86400) for t in (0, 5400, 86400)] == ["0 h", "1:30 h", "24 h"]
    assert [time_label(t, 600) for t in (59.4, 119.7)] == ["0:59 min", "2 min"]  # of a bar: not round
    assert time_label(7199.0, 86400) == "2 h"
