"""Listings by XRootD's own protocol: of folders with many names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import refused
from sites import Site
from web.root_processes import processes_with_the_library
from web.shared_servers import SharedServers
from web.web_command import mpx_there

NAMES = 20_000
MOST_BYTES = 25_000_000  # objects of the binding would be 70 MB


@pytest.fixture
def root_site(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("root") as site:
        yield site


def most_bytes(pid: int) -> int:
    """How much memory a process has had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("the kernel does not tell")


def test_a_listing_is_not_held_as_a_whole(root_site: Site) -> None:
    (root_site.folder / "many").mkdir()
    made = {f"with a name of some length {i}" for i in range(NAMES)}
    for name in made:
        (root_site.folder / "many" / name).touch()
    before = set(processes_with_the_library())
    end = root_site.open(writing=False)
    assert end.stat(root_site.name("")) is not None
    (pid,) = set(processes_with_the_library()) - before
    first_bytes = most_bytes(pid)
    found = [name for name, _ in end.entries(root_site.name("many"))]
    assert len(found) == NAMES and set(found) == made
    assert most_bytes(pid) - first_bytes < MOST_BYTES


def test_a_listing_of_which_a_part_cannot_be_read(root_site: Site) -> None:
    """The binding calls nobody with a part in which a name is no UTF-8; nobody waits for it."""
    (root_site.folder / "odd").mkdir()
    for i in range(1000):  # several parts
        (root_site.folder / "odd" / str(i)).touch()
    (root_site.folder / "odd" / os.fsdecode(b"bad \xff")).touch()
    refused(mpx_there("list", root_site.url_of("odd")), 3, "cannot be read")


def test_a_folder_that_is_empty_and_one_that_is_none(root_site: Site) -> None:
    (root_site.folder / "empty").mkdir()
    assert list(root_site.open(writing=False).entries(root_site.name("empty"))) == []
    refused(mpx_there("list", root_site.url_of("none")), 3, "does not exist")
