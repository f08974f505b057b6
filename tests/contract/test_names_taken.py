"""With `--overwrite never` a file stays that others have put there meanwhile, wherever that is."""

from pathlib import Path

import pytest
from sites import Site, make, partials

import mpx
from mpx.errors import DestinationError

SIZE = 4_000_000
OPTIONS = mpx.CopyOptions(overwrite="never", rate_bps=40e6)
THEIRS = b"of others"


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


def test_names_that_nobody_has(changed: Site, tmp_path: Path) -> None:
    for i in range(5):
        make(tmp_path / f"tree/{i}", 100 + i)
    options = mpx.CopyOptions(overwrite="never", recursive=True)
    assert mpx.copy(str(tmp_path / "tree"), changed.url_of("to"), options).files.moved == 5
