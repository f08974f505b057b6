"""--globus-local: this host is a collection, too."""

from pathlib import Path

import pytest
from globus.conftest import Collections
from globus.fake_globus import ONE
from mpx_command import mpx, refused
from sites import make


def test_up_and_down(collections: Collections) -> None:
    here = collections.one / "here"
    make(here / "run7/x", 100)
    local = f"{ONE}={collections.one}"
    up = mpx("copy", "-r", "--globus-local", local, here / "run7", f"{collections.other_url}run7")
    assert up.code == 0, up.err
    down = mpx("copy", "--globus-local", local, f"{collections.other_url}run7/x", here / "back")
    assert down.code == 0, down.err
    assert (here / "back").read_bytes() == (here / "run7/x").read_bytes()
    assert len(collections.fake.tasks) == 2


def test_names_that_the_collection_has(collections: Collections, tmp_path: Path) -> None:
    """Without a folder, the names are those of this host."""
    (collections.one / "data").mkdir()
    make(collections.one / "data/x", 3)
    ended = mpx("copy", "--globus-local", ONE, "/data/x", f"{collections.other_url}x")
    assert ended.code == 0, ended.err
    make(tmp_path / "elsewhere/x", 3)
    refused(
        mpx("copy", "--globus-local", f"{ONE}=/data", tmp_path / "elsewhere/x", f"{collections.other_url}x"),
        2,
        "is not in /data",
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [("no-id", "is not the id of a collection"), (f"{ONE}=relative", "not a folder named from the root")],
)
def test_what_is_no_collection(collections: Collections, value: str, words: str) -> None:
    refused(mpx("copy", "--globus-local", value, "/x", f"{collections.other_url}x"), 2, words)


def test_it_is_for_this_host(collections: Collections) -> None:
    for places in ((f"{collections.one_url}x", f"{collections.other_url}x"), ("/x", "ftp://host/x")):
        refused(mpx("copy", "--globus-local", ONE, *places), 2, "--globus-local is not possible here")
