"""Files by XRootD whose names are those of metalinks, which its library would follow: copied as they are."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from install_peers import GFAL, find_peer
from sites import Site
from web.shared_servers import SharedServers

import mpx as api

SECRET = b"of this host alone " * 20
WAYS = pytest.mark.parametrize("via", [None, "gfal2"], ids=["own", "gfal2"])
NAMES = pytest.mark.parametrize("name", ["file.meta4", "file.metalink"])


@pytest.fixture
def root_site(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("root") as site:
        yield site


@pytest.fixture
def secret(here: Path) -> Path:
    """A file of this host."""
    (here / "secret").write_bytes(SECRET)
    return here / "secret"


def options(via: str | None, **more: object) -> api.CopyOptions:
    if via:
        find_peer(GFAL)
    return api.CopyOptions(**({"via": via} if via else {}), **more)  # type: ignore[arg-type]


def naming(url: str) -> bytes:
    """A metalink of as many bytes as it says that the file at the URL has."""
    beside = (
        '<?xml version="1.0" encoding="utf-8"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">'
        f'<file name="x"><size>{len(SECRET)}</size><url priority="1">{url}</url></file></metalink>'
    )
    return beside.ljust(len(SECRET)).encode()


@WAYS
@NAMES
def test_down(name: str, via: str | None, here: Path, root_site: Site, secret: Path) -> None:
    content = naming(f"file://localhost{secret}")
    root_site.write(name, content)
    assert api.copy(root_site.url_of(name), str(here / "got"), options(via)).status == "done"
    assert (here / "got").read_bytes() == content


@NAMES
@pytest.mark.parametrize(
    ("via", "more"), [(None, {}), ("gfal2", {}), ("gfal2", {"in_place": True})], ids=["own", "gfal2", "there"]
)
def test_up(
    name: str, via: str | None, more: dict[str, object], here: Path, root_site: Site, secret: Path
) -> None:
    given = options(via, **more)
    for content in (os.urandom(1000), naming(f"file://localhost{secret}")):  # the second replaces the first
        (here / name).write_bytes(content)
        assert api.copy(str(here / name), root_site.url_of(name), given).status == "done"
        assert (root_site.folder / name).read_bytes() == content
    assert secret.read_bytes() == SECRET


@NAMES
@pytest.mark.parametrize("third_party", ["never", "auto"])
def test_to_a_server(name: str, third_party: str, root_site: Site, secret: Path) -> None:
    """Nothing of this host comes to it."""
    content = naming(f"file://localhost{secret}")
    root_site.write(name, content)
    given = options(None, third_party=third_party)
    assert api.copy(root_site.url_of(name), root_site.url_of("copy"), given).status == "done"
    assert (root_site.folder / "copy").read_bytes() == content
