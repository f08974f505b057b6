"""nginx that serves what is below a folder, and has nothing by the name of that folder without the slash."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mpx_command import copied, mpx
from sites import make
from web.servers.nginx import EXTENDED, nginx_site
from web.servers.site import WebSite

DESCRIBING = ("OPTIONS", "HEAD", "PROPFIND")
BY_HEAD = ""
NOWHERE = "location / { return 404; }"  # whatever is asked, where nginx has else a 405 for PROPFIND
LARGE = 20_000_000  # bytes; such a file goes in parts where a server takes these


@dataclass
class Below:
    """A folder of a server; once that has ended, what it was asked to change outside of the folder."""

    site: WebSite
    changed_outside: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.site.folder / "dav"


@contextlib.contextmanager
def served(tmp_path: Path, below: str, settings: str = "") -> Iterator[Below]:
    root = tmp_path / "served"
    (root / "dav").mkdir(parents=True)
    with nginx_site(root, tls=True, below=below, settings=settings) as site:
        found = Below(site)
        yield found
    lines = (tmp_path / "served.nginx/access.log").read_text().splitlines()
    asked = [line.split('"')[1].split()[:2] for line in lines]
    assert ["PUT", "/dav/"] in [[method, path[:5]] for method, path in asked]
    found.changed_outside += [
        f"{method} {path}"
        for method, path in asked
        if method not in DESCRIBING and not path.startswith("/dav/")
    ]


@pytest.mark.parametrize(
    ("below", "settings", "named", "stored"),
    [
        (EXTENDED, settings, named, stored)
        for settings in ("", NOWHERE)
        for named, stored in (
            ("dav/", "file"),
            ("dav", "file"),
            ("dav/other", "other"),
            ("dav/sub/other", "sub/other"),
            ("dav/sub/", "sub/file"),
        )
    ]
    + [
        (BY_HEAD, "", named, stored)  # where no name without a slash is shown to be a folder
        for named, stored in (("dav/", "file"), ("dav/other", "other"), ("dav/sub/other", "sub/other"))
    ],
)
def test_a_file_goes_into_it(
    tmp_path: Path, here: Path, below: str, settings: str, named: str, stored: str
) -> None:
    make(here / "file", LARGE)
    with served(tmp_path, below, settings) as there:
        copied(mpx("copy", "-q", "--ca", there.site.ca, here / "file", there.site.url + named))
        assert [
            str(path.relative_to(there.folder)) for path in there.folder.rglob("*") if path.is_file()
        ] == [stored]
        assert (there.folder / stored).read_bytes() == (here / "file").read_bytes()
    assert there.changed_outside == []


@pytest.mark.parametrize("named", ["dav", "dav/"])
def test_a_tree_goes_into_it_and_comes_back(tmp_path: Path, here: Path, named: str) -> None:
    make(here / "tree/sub/below/file", 1000)
    make(here / "tree/other", 10)
    hidden = "location = /dav/sub { return 404; }"  # a folder that is there, and shown with the slash alone
    with served(tmp_path, EXTENDED, hidden) as there:
        (there.folder / "sub").mkdir()
        ca, url = there.site.ca, there.site.url + named
        copied(mpx("copy", "-q", "-r", "--ca", ca, here / "tree", url))
        copied(mpx("copy", "-q", "-r", "--ca", ca, url, here / "back"))
        listed = mpx("list", "--ca", ca, url)
        assert (listed.code, listed.out) == (0, "other\nsub/\n")
    for name in ("sub/below/file", "other"):
        sent = (here / "tree" / name).read_bytes()
        assert (there.folder / name).read_bytes() == sent
        assert (here / "back" / name).read_bytes() == sent
    assert there.changed_outside == []
