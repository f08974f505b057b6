"""What every endpoint must tell of folders and of what is in them, whatever it talks to."""

import os
import time

import pytest
from sites import Site

from mpx.engine.endpoint import Endpoint, Kind
from mpx.errors import DestinationError, SourceError


@pytest.fixture
def site(changed: Site) -> Site:
    return changed


def test_entries(site: Site, end: Endpoint) -> None:
    site.write("sub/file", b"12")
    (site.folder / "sub/folder").mkdir()
    (site.folder / "sub/.hidden").write_bytes(b"")
    found = dict(end.entries(site.name("sub")))
    assert found.pop(".hidden").kind is Kind.FILE if site.lists_hidden else ".hidden" not in found
    assert {name: info.kind for name, info in found.items()} == {"file": Kind.FILE, "folder": Kind.FOLDER}
    assert found["file"].size_bytes == 2
    assert found["file"].modified_s is not None
    assert abs(found["file"].modified_s - time.time()) < 3600


def test_entries_that_are_no_files(site: Site, end: Endpoint) -> None:
    site.write("sub/file")
    (site.folder / "sub/link").symlink_to("file")
    os.mkfifo(site.folder / "sub/fifo")
    if not site.shows_links:
        assert {"file"} <= set(dict(end.entries(site.name("sub")))) <= {"file", "link", "fifo"}
        return
    (site.folder / "sub/dangling").symlink_to("nowhere")
    found = dict(end.entries(site.name("sub")))
    assert {name: info.kind for name, info in found.items()} == {
        "file": Kind.FILE,
        "link": Kind.LINK,
        "dangling": Kind.LINK,
        "fifo": Kind.OTHER,
    }
    link = str(site.folder / "sub/file") if site.resolves_links else "file"
    assert (found["link"].link_target, found["dangling"].link_target) == (link, "nowhere")


def test_entries_of_an_empty_folder(site: Site, end: Endpoint) -> None:
    (site.folder / "empty").mkdir()
    assert list(end.entries(site.name("empty"))) == []


def test_entries_with_awkward_names(site: Site, end: Endpoint) -> None:
    for name in site.awkward:
        site.write(f"sub/{name}", name.encode())
    assert {name: info.size_bytes for name, info in end.entries(site.name("sub"))} == {
        name: len(name) for name in site.awkward
    }


def test_entries_of_many(site: Site, end: Endpoint) -> None:
    for i in range(3000):
        site.write(f"sub/{i:05}")
    assert sum(1 for _ in end.entries(site.name("sub"))) == 3000


def test_entries_left_in_the_middle(site: Site) -> None:
    for i in range(3000):
        site.write(f"sub/{i:05}")
    end = site.open(writing=False)
    for _ in end.entries(site.name("sub")):
        break
    end.close()


@pytest.mark.parametrize("name", ["missing", "file"])
def test_entries_of_what_is_no_folder(site: Site, name: str) -> None:
    site.write("file")
    with pytest.raises(SourceError, match=name):
        list(site.open(writing=False).entries(site.name(name)))
    with pytest.raises(DestinationError, match=name):
        list(site.open(writing=True).entries(site.name(name)))


def test_errors_name_the_role(site: Site) -> None:
    too_long = site.name("x" * 300)
    for writing, error in ((False, SourceError), (True, DestinationError)):
        end = site.open(writing=writing)
        if site.knows_long:
            with pytest.raises(error, match="xxx"):
                end.stat(too_long)
        with pytest.raises(error, match="missing"):
            list(end.entries(site.name("missing")))
        (told,) = end.make_folders([too_long])
        assert isinstance(told, error)
        assert "xxx" in str(told)
