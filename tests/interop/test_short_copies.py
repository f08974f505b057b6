"""Copies that are over within some round trips: many streams, and the checksum asked for with the data."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.rounds import Rounds
from interop.storing_server import StoringServer
from sites import Site, make, opened

import mpx
from mpx.transfer import short_copy

SIZE = 300_001
RANDOM = bytes(range(251)) * (SIZE // 251 + 1)


@pytest.fixture(autouse=True)
def long_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loopback count as a path with long round trips."""
    monkeypatch.setattr(short_copy, "LEAST_RTT_S", 0.0)


@pytest.fixture(params=["stock server", "mpx serve"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as there:
        yield there


def said(rounds: Rounds) -> list[list[str]]:
    """Return all writes of all sessions."""
    return [write for session in rounds.sessions for writes in rounds.of(session) for write in writes]


def first_streams(report: mpx.Report) -> int:
    return int(report.timeline[0].streams)


@pytest.mark.peers
def test_an_upload_asks_for_the_checksum_behind_its_data(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = make(tmp_path / "up", SIZE).read_bytes()
    report = mpx.copy(tmp_path / "up", site.url_of("up"))
    assert (site.folder / "up").read_bytes() == content
    assert [write for write in said(rounds) if "CKSM" in write] == [["STOR", "CKSM"]]
    assert report.checksum["result"] == "verified"
    assert first_streams(report) == 5  # one for each 64 KiB


@pytest.mark.peers
def test_a_download_is_proven_without_a_further_question(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = site.write("down", RANDOM).read_bytes()
    report = mpx.copy(site.url_of("down"), tmp_path / "down")
    assert (tmp_path / "down").read_bytes() == content
    writes = said(rounds)
    assert [write[-2:] for write in writes if "CKSM" in write] == [["ERET", "CKSM"]]
    assert sum("MLST" in write for write in writes) == 1  # before the data, and not again
    assert report.checksum["result"] == "verified"
    assert first_streams(report) == 5


@pytest.mark.peers
def test_several_files(site: Site, tmp_path: Path) -> None:
    names = [f"file-{number}" for number in range(5)]
    content = {name: make(tmp_path / name, 100_000 + len(name)).read_bytes() for name in names}
    (site.folder / "into").mkdir()
    (site.folder / "into").chmod(0o777)
    mpx.copy([tmp_path / name for name in names], site.url_of("into/"))
    assert {each.name: each.read_bytes() for each in (site.folder / "into").iterdir()} == content
    (tmp_path / "back").mkdir()
    report = mpx.copy([site.url_of(f"into/{name}") for name in names], tmp_path / "back/")
    assert {each.name: each.read_bytes() for each in (tmp_path / "back").iterdir()} == content
    assert report.checksum["result"] == "verified"


@pytest.mark.parametrize(
    ("options", "size_bytes", "expected"),
    [
        ({}, SIZE, 5),
        ({"share": 1}, SIZE, 4),
        ({"max_streams": 3}, SIZE, 3),
        ({"initial_streams": 2}, SIZE, 2),
        ({}, short_copy.SHORT_BYTES, 16),
        ({}, short_copy.SHORT_BYTES + 1, 4),
    ],
)
@pytest.mark.peers
def test_how_many_streams_it_begins_with(
    tmp_path: Path, options: dict[str, int], size_bytes: int, expected: int
) -> None:
    make(tmp_path / "up", size_bytes)
    with opened("stock server", tmp_path) as site:
        report = mpx.copy(tmp_path / "up", site.url_of("up"), mpx.CopyOptions(**options))
    assert first_streams(report) == expected


@pytest.mark.parametrize("answer", [None, lambda *_: "213 00000000", lambda *_: "550 no"])
def test_an_answer_that_is_none_or_wrong(tmp_path: Path, answer: Callable[..., str] | None) -> None:
    """A digest that differs has the file sent again, once; without any it is not believed to be compared."""
    file = make(tmp_path / "up", SIZE)
    script = {"CKSM": answer} if answer else {}
    with StoringServer(script, mode_e=True, checksums=True) as server:
        options = mpx.CopyOptions(retries=1)
        if answer and "213" in answer():
            with pytest.raises(mpx.IntegrityError):
                mpx.copy(file, f"{server.url}/up", options)
            assert "/up" not in server.files
        else:
            report = mpx.copy(file, f"{server.url}/up", options)
            assert report.checksum["result"] == ("unverified" if answer else "verified")
            assert server.files["/up"] == file.read_bytes()
