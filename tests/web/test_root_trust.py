"""Whom `--ca` has a copy trust by XRootD's own protocol: what it names alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from grids import shared_grid
from mpx_command import copied, refused
from sites import Site
from web.shared_servers import SharedServers
from web.web_command import mpx_there


@pytest.fixture
def root_site(web_servers: SharedServers) -> Iterator[Site]:
    """In TLS alone."""
    with web_servers.site("root") as site:
        yield site


@pytest.fixture
def other_ca(tmp_path: Path) -> Path:
    """A file with a CA that has issued nothing here."""
    file = tmp_path / "other.pem"
    file.write_text(shared_grid().new_ca("Another CA").pem)
    return file


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_is_named_takes_the_place_of_all_others(
    here: Path, root_site: Site, other_ca: Path, *, is_folder: bool
) -> None:
    root_site.write("file", b"what it has")
    grid = shared_grid()
    ours = grid.folder / "web" / "ca.pem"
    if is_folder:
        for name, file in (("theirs", other_ca), ("ours", ours)):
            (here / name).mkdir()
            (here / name / "ca.pem").write_bytes(file.read_bytes())
        other_ca, ours = here / "theirs", here / "ours"
    words = ("copy", root_site.url_of("file"))
    trusted = {"X509_CERT_DIR": str(grid.trusted)}
    copied(mpx_there(*words, here / "trusted", **trusted))
    ended = mpx_there(*words, here / "no", "--ca", other_ca, **trusted)
    refused(ended, 5, "localhost is not trusted", f"CAs are looked for in {other_ca}")
    assert not (here / "no").exists()
    nobody = {"X509_CERT_DIR": str(here), "X509_CERT_FILE": str(other_ca)}
    copied(mpx_there(*words, here / "named", "--ca", ours, **nobody))
    assert (here / "named").read_bytes() == b"what it has"


def test_what_names_no_ca(here: Path, root_site: Site) -> None:
    (here / "empty").mkdir()
    (here / "text").write_text("no certificate")
    for name, words in (
        ("missing", "No such file or directory"),
        ("empty", "holds no CA"),
        ("text", "holds no certificate in PEM"),
    ):
        ended = mpx_there("list", "--ca", here / name, root_site.url_of(""))
        refused(ended, 2, words, str(here / name), "name a file or folder of CAs in PEM")
