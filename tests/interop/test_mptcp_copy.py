"""Copies whose data goes over Multipath TCP, where the server speaks it and where it does not."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from raw_client import RawClient
from sites import Site, make, opened

import mpx as api
from mpx.engine.stream import StreamCounters
from mpx.net import mptcp

pytestmark = pytest.mark.peers
SIZE = 30_000_000
PLAIN = "plain TCP instead of Multipath TCP: 127.0.0.1 does not speak it"


def streams(path: Path) -> tuple[set[bool], list[str]]:
    """Return of a report whether its streams were of Multipath TCP, and its notes."""
    report = json.loads(path.read_text())
    assert report["mptcp"] and all((each["subflows"] > 0) == each["in_use"] for each in report["mptcp"])
    return {each["in_use"] for each in report["mptcp"]}, report["notes"]


@pytest.mark.parametrize("options", [(), ("--streams", "1"), ("--checksum", "none", "--streams", "3")])
def test_up_and_down(far: Site, here: Path, options: tuple[str, ...]) -> None:
    speaks = far.takes_congestion  # ours does
    data = make(here / "a", SIZE).read_bytes()
    report = here / "report.json"
    words = ("copy", "--transport", "mptcp", "--report", report, *options)
    copied(mpx(*words, here / "a", far.url))
    up, notes = streams(report)
    assert up == {speaks} and (PLAIN in notes) != speaks
    assert (far.folder / "a").read_bytes() == data
    copied(mpx(*words, far.url_of("a"), here / "back"))
    down, notes = streams(report)
    assert down == {speaks} and (PLAIN in notes) != speaks
    assert (here / "back").read_bytes() == data


def test_one_subflow_is_said_without_v(own: Site, here: Path) -> None:
    done = mpx("copy", "--transport", "mptcp", make(here / "a", 1000), own.url)
    copied(done)
    assert "had one subflow, so one path" in done.out


def test_it_is_plain_tcp_unless_asked_for(far: Site, here: Path) -> None:
    make(here / "a", 1000)
    copied(mpx("copy", "--report", here / "report.json", here / "a", far.url))
    assert json.loads((here / "report.json").read_text())["mptcp"] is None


def test_a_copy_within_this_host_has_no_transport(here: Path) -> None:
    make(here / "a", 1000)
    refused(mpx("copy", "--transport", "mptcp", here / "a", here / "b"), 2, "--transport")


def test_a_copy_that_yields_watches_one_path(far: Site, here: Path) -> None:
    words = ("copy", "--transport", "mptcp", "--policy", "scavenger", make(here / "a", 1000), far.url)
    copied(mpx(*words, "--report", here / "report.json"))
    notes = json.loads((here / "report.json").read_text())["notes"]
    assert any("one path only of those that Multipath TCP uses" in note for note in notes)


def test_a_server_is_told_which_it_is_to_connect_with(own: Site) -> None:
    port = int(own.url.rsplit(":", 1)[1].strip("/"))
    with RawClient(port) as client:
        assert mptcp.FEATURE in client.do("FEAT").text
        for name, code in (("mptcp", 200), ("tcp", 200), ("sctp", 504), ("", 504)):
            assert client.do(f"OPTS RETR Transport={name};").code == code


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    with opened("mpx serve", tmp_path) as site:
        yield site


def test_a_kernel_that_has_none(own: Site, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mptcp, "PROTOCOL", 263)  # nobody's
    mptcp.why_not.cache_clear()
    make(here / "a", 1000)
    report = api.copy(str(here / "a"), own.url, api.CopyOptions(transport="mptcp"))
    mptcp.why_not.cache_clear()
    assert any("this kernel cannot" in note for note in report.notes) and report.mptcp is None
    assert (own.folder / "a").read_bytes() == (here / "a").read_bytes()


@pytest.mark.parametrize("download", [False, True])
def test_a_stream_that_is_slow_to_end_is_reported(
    own: Site, here: Path, monkeypatch: pytest.MonkeyPatch, download: bool
) -> None:
    ends = StreamCounters.closed

    def slowly(stream: StreamCounters, *, clean: bool) -> None:
        time.sleep(0.2)
        ends(stream, clean=clean)

    monkeypatch.setattr(StreamCounters, "closed", slowly)
    make((own.folder if download else here) / "a", 1000)
    source, target = (own.url_of("a"), str(here / "b")) if download else (str(here / "a"), own.url)
    report = api.copy(source, target, api.CopyOptions(transport="mptcp"))
    assert report.mptcp == [1]
