"""The start of a copy: how often it waits for the server before the first byte of its data moves.

Connecting and the greeting are two round trips that are not counted here; a data connection is one more.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interop.foreign_servers import ProFtpd
from interop.rounds import Rounds
from sites import Site, make, opened

import mpx
from mpx.endpoints.ftp.mode_e.download_stream import DownloadStream

pytestmark = pytest.mark.peers

LOGIN = ["USER", "PASS", "FEAT", "TYPE", "PWD"]
QUICK = mpx.CopyOptions(retries=1)


@pytest.fixture(params=["stock server", "mpx serve"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as there:
        yield there


def test_an_upload_waits_three_times(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = make(tmp_path / "up", 1_000_003).read_bytes()
    mpx.copy(tmp_path / "up", site.url_of("up"), QUICK)
    assert (site.folder / "up").read_bytes() == content
    asked = ["MODE", "MLST", "SIZE", "MLST"]
    # The answer that names the port begins a segment. STOR goes out while the data connections are opened.
    assert rounds.until("STOR") == (0, [[[*LOGIN, *asked]], [["EPSV", "TREV", "TREV"]], [["STOR"]]])


def test_a_download_waits_twice(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = site.write("down", bytes(range(250)) * 4001).read_bytes()
    mpx.copy(site.url_of("down"), tmp_path / "down", QUICK)
    assert (tmp_path / "down").read_bytes() == content
    number, (first, second) = rounds.until("ERET")
    assert (number, first) == (0, [[*LOGIN, "MODE", "MLST", "SIZE"]])
    assert ["PORT"] in second  # alone, so that what translates addresses finds it
    assert not any("PORT" in write or "EPRT" in write for write in second if write != ["PORT"])


def test_a_download_is_proven_and_found_unchanged_in_one_wait(
    site: Site, tmp_path: Path, rounds: Rounds
) -> None:
    content = site.write("down", bytes(range(250)) * 4001).read_bytes()
    mpx.copy(site.url_of("down"), tmp_path / "down", QUICK)
    assert (tmp_path / "down").read_bytes() == content
    number, _ = rounds.until("CKSM")
    assert rounds.of(rounds.sessions[number])[-1] == [["OPTS", "CKSM", "MLST", "SIZE"]]


def test_into_a_folder(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    (site.folder / "folder").mkdir()
    (site.folder / "folder").chmod(0o777)
    make(tmp_path / "up", 70_001)
    mpx.copy(tmp_path / "up", site.url_of("folder/"), QUICK)
    assert (site.folder / "folder" / "up").stat().st_size == 70_001
    number, said = rounds.until("STOR")
    assert (number, len(said)) == (0, 3)


def test_another_session_moves_data_once_there_is_one_to_commit(
    site: Site,
    tmp_path: Path,
    rounds: Rounds,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., None],
) -> None:
    """The first one stands still until another asks for its part."""

    def moving() -> int:
        return sum("ERET" in str(rounds.of(session)) for session in [*rounds.sessions])

    goes_on = DownloadStream._more
    alone: list[DownloadStream] = []  # that have waited in vain

    def waits(stream: DownloadStream, *arguments: Any) -> bool:
        try:
            eventually(lambda: alone or moving() > 1)
        except AssertionError:
            alone.append(stream)
        return goes_on(stream, *arguments)

    monkeypatch.setattr(DownloadStream, "_more", waits)
    content = site.write("down", bytes(range(250)) * 40_001).read_bytes()
    mpx.copy(site.url_of("down"), tmp_path / "down", mpx.CopyOptions(retries=1, streams=4))
    assert (tmp_path / "down").read_bytes() == content
    assert not alone


def test_a_small_file_needs_one_session_to_move_it(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = site.write("down", b"x" * 1000).read_bytes()
    mpx.copy(site.url_of("down"), tmp_path / "down", QUICK)
    assert (tmp_path / "down").read_bytes() == content
    assert sum("ERET" in str(rounds.of(session)) for session in rounds.sessions) == 1
    assert len(rounds.sessions) == 2  # and one to commit it


def test_every_session_logs_in_at_once(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    for number in range(12):
        make(tmp_path / "tree" / str(number), 300_001)
    mpx.copy(tmp_path / "tree", site.url_of("tree"), mpx.CopyOptions(recursive=True))
    assert len(rounds.sessions) > 1
    for session in rounds.sessions:
        ((*said,), *_) = rounds.of(session)[0]
        assert said[: len(LOGIN)] == LOGIN


def test_a_server_that_is_known_is_not_waited_for(site: Site, tmp_path: Path, rounds: Rounds) -> None:
    content = make(tmp_path / "up", 1_000_003).read_bytes()
    mpx.copy(tmp_path / "up", site.url_of("first"), QUICK)
    assert rounds.early == rounds.sessions[1:]  # the committer's session
    before = len(rounds.sessions)
    mpx.copy(tmp_path / "up", site.url_of("up"), QUICK)
    mpx.copy(site.url_of("up"), tmp_path / "down", QUICK)
    assert rounds.early == rounds.sessions[1:]
    assert rounds.of(rounds.sessions[before])[0] == [[*LOGIN, "MODE", "MLST", "SIZE", "MLST"]]
    assert (site.folder / "up").read_bytes() == (tmp_path / "down").read_bytes() == content


def test_a_password_goes_to_who_has_asked_for_it(
    proftpd: ProFtpd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: Rounds
) -> None:
    monkeypatch.setattr("mpx.endpoints.ftp.login._ask_for_password", set())
    make(tmp_path / "up", 100_001)
    mpx.copy(tmp_path / "up", f"{proftpd.url}up", QUICK)
    first, *others = [rounds.of(session)[:2] for session in rounds.sessions]
    assert first[0] == [["USER"]]
    assert first[1][0][:4] == LOGIN[1:]
    assert others and all(said[0][0][: len(LOGIN)] == LOGIN for said in others)
