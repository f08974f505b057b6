"""One file of many that a server refuses, whatever words its name is made of."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sites import Site

import mpx as api
from mpx.errors import PartialFailure


@pytest.mark.parametrize("kind", ["grid", "root"])
def test_what_names_say_stops_no_copy(
    here: Path, open_server: Callable[[str], contextlib.AbstractContextManager[Site]], kind: str
) -> None:
    """A full disk would stop it, and credentials that are refused be told instead."""
    closed = ("annual quota report", "my certificate list", "run 401 x")
    with open_server(kind) as site:
        for name in ("aa", "zz", *closed):
            site.write(f"t/{name}", b"some")
        for name in closed:
            (site.folder / "t" / name).chmod(0)
            if os.geteuid() == 0:
                os.chown(site.folder / "t" / name, 0, 0)
        options = api.CopyOptions(via="gfal2", recursive=True, retries=0)
        with pytest.raises(PartialFailure) as caught:
            api.copy(site.url_of("t"), str(here / "t"), options)
    failed = {each["name"]: each["error"] for each in caught.value.report.failures}
    assert {Path(each).name for each in failed} == set(closed)
    for error in failed.values():
        assert "gfal2 does not copy it" in error and ("denied" in error or "refuses the file" in error)
    assert sorted(path.name for path in (here / "t").iterdir()) == ["aa", "zz"]
