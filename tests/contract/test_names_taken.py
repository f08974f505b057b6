"""With `--overwrite never` a file stays that others have put there meanwhile, wherever that is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.conftest import WITH_DAV, OpenSite
from sites import Site, make, partials

import mpx
from mpx.errors import DestinationError
from mpx.transfer import commit_session
from mpx.transfer.taken_names import taken_names

SIZE = 4_000_000
OPTIONS = mpx.CopyOptions(overwrite="never", rate_bps=40e6)
THEIRS = b"of others"
HEED_OVERWRITE = [name for name in WITH_DAV if name != "xrootd"]  # that of MOVE


def test_a_name_that_is_taken_meanwhile(changed: Site, tmp_path: Path) -> None:
    source = make(tmp_path / "near", SIZE)

    def take(progress: mpx.Progress) -> None:
        if progress.bytes_done and not (changed.folder / "file").exists():
            changed.write("file", THEIRS)

    with pytest.raises(DestinationError, match="has come into being meanwhile; --overwrite never"):
        mpx.copy(str(source), changed.url_of("file"), OPTIONS, on_progress=take)
    assert (changed.folder / "file").read_bytes() == THEIRS
    assert partials(changed.folder) == []
    again = mpx.copy(str(source), changed.url_of("file"), OPTIONS)
    assert (again.files.moved, again.files.skipped) == (0, 1)


@pytest.fixture(params=["local", "mpx serve", "mpx serve with a token", "sftp", *HEED_OVERWRITE])
def taken_at_last(
    request: pytest.FixtureRequest, open_site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """Somebody takes the name once it was seen to be free, just before the file is to have it."""

    def look(*args: Any) -> Any:
        found = taken_names(*args)
        site.write("file", THEIRS)
        return found

    with open_site(request.param) as site:
        monkeypatch.setattr(commit_session, "taken_names", look)
        yield site


def test_a_name_that_is_taken_at_the_last_moment(taken_at_last: Site, tmp_path: Path) -> None:
    source = make(tmp_path / "near", 1000)
    with pytest.raises(DestinationError, match="has come into being meanwhile; --overwrite never"):
        mpx.copy(str(source), taken_at_last.url_of("file"), OPTIONS)
    assert (taken_at_last.folder / "file").read_bytes() == THEIRS
    assert partials(taken_at_last.folder) == []


def test_names_that_nobody_has(changed: Site, tmp_path: Path) -> None:
    for i in range(5):
        make(tmp_path / f"tree/{i}", 100 + i)
    options = mpx.CopyOptions(overwrite="never", recursive=True)
    assert mpx.copy(str(tmp_path / "tree"), changed.url_of("to"), options).files.moved == 5
