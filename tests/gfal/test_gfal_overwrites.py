"""With `--overwrite never` a file stays that others have put there since it was looked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import Site, make, partials

import mpx as api
from mpx.endpoints.gfal import worker
from mpx.errors import IsThere
from mpx.transfer import commit_session
from mpx.transfer.taken_names import taken_names

Via = Callable[..., api.Report]
THEIRS = b"of others"


def takes_after(does: Callable[..., Any], site: Site) -> Callable[..., Any]:
    """Do the same, and put a file of others there."""

    def do(*args: Any) -> Any:
        found = does(*args)
        site.write("file", THEIRS)
        site.hand_over()
        return found

    return do


def test_a_name_that_is_taken_at_the_last_moment(
    here: Path, server: Site, via: Via, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the committer has seen that it is free, and before the process renames."""
    monkeypatch.setattr(commit_session, "taken_names", takes_after(taken_names, server))
    with pytest.raises(IsThere):
        via(make(here / "near", 1000), server.url_of("file"), overwrite="never")
    assert (server.folder / "file").read_bytes() == THEIRS
    assert partials(server.folder) == []


def test_a_name_that_is_taken_where_it_is_stored_at_once(
    here: Path, server: Site, via: Via, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was listed, and before gfal2 is told to copy."""
    monkeypatch.setattr(worker, "dumped", takes_after(worker.dumped, server))
    with pytest.raises(IsThere):
        via(make(here / "near", 1000), server.url_of("file"), overwrite="never", in_place=True)
    assert (server.folder / "file").read_bytes() == THEIRS


def test_names_that_nobody_has(here: Path, server: Site, via: Via) -> None:
    for i in range(5):
        make(here / f"tree/{i}", 100 + i)
    options = {"recursive": True, "overwrite": "never"}
    for name, in_place in (("apart", False), ("in_place", True)):
        assert via(here / "tree", server.url_of(name), in_place=in_place, **options).files.moved == 5
        assert via(here / "tree", server.url_of(name), in_place=in_place, **options).files.skipped == 5
