"""The endpoints that tests copy to and from, each in a folder of its own: local, servers, a host with sftp.

To add one: write a function that yields a Site, and name it in SITES.
"""

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from grids import as_user, shared_grid
from interop.sshd import HOST, private_sshd
from interop.stock_server import StockServer
from random_bytes import random_bytes

from mpx.endpoints.sftp.lane_pool import LanePool
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.ssh_files import SshFilesEndpoint
from mpx.endpoints.ssh.login import SshLogin
from mpx.engine.endpoint import Endpoint
from mpx.location import parse_location
from mpx.net import congestion_control
from mpx.options import CopyOptions
from mpx.serve import Server
from mpx.serve.rights import TokenRights
from mpx.serve.session import Limits
from mpx.serve.token_serving import TokenServing
from mpx.serve.token_store import new_token
from mpx.transfer.registry import open_endpoint

AWKWARD = [
    "with blanks",
    "ends in a blank ",
    " begins with one",
    "-rf",
    "--report",
    "50%20off",
    "a#b",
    "a;b=c; d",
    "it's",
    'the "quoted"',
    "*?[x]",
    "~",
    "$HOME",
    "back\\slash",
    "colon:and,comma",
    "Type=file;Size=3; x",
    "x" * 255,
]


@dataclass
class Site:
    """An endpoint under test, and the folder it works in as the tests see it."""

    folder: Path
    url: str  # of that folder, with a slash at its end
    owner: str = ""  # who the endpoint works as, if not as we do
    keeps_fractions: bool = False  # of modification times
    links: str = "any"  # it makes any links, absolute ones to what is there, or none
    resolves_links: bool = False  # it tells only where a link leads in the end
    takes_congestion: bool = False  # sends with the congestion control that it is told
    has_xxh3: bool = False  # the checksum of mpx serve
    checksums: tuple[str, ...] = ("adler32", "md5", "sha256")  # beside that
    sums_parts: bool = True  # of files, else whole ones alone
    carries_lines: bool = False  # names with a line feed in them
    keeps_times: bool = True  # that files and folders are given
    keeps_modes: bool = True  # and tells them
    shows_links: bool = True  # as links, and special files as such; else as what they lead to
    follows_links: bool = True  # else it refuses what is named by one, and where a folder's is in the way
    refuses_broken: bool = False  # does not say of links that lead nowhere that there is nothing
    refuses_loops: bool = False  # nor of those that lead to themselves
    lists_hidden: bool = True  # files whose names begin with a dot
    replaces_links: bool = True  # gives a file the name of one
    knows_long: bool = True  # tells names that are too long from missing ones
    makes_parents: bool = False  # of a file that it renames
    stores_any_bytes: bool = True  # in names, also such as are no UTF-8
    cannot_name: frozenset[str] = frozenset()  # of AWKWARD
    cannot_rename: frozenset[str] = frozenset()  # to these of AWKWARD
    opened: list[Endpoint] = field(default_factory=list)
    reopen: Callable[[bool], Endpoint] | None = None  # how an endpoint is opened; None: by its URL

    def open(self, *, writing: bool) -> Endpoint:
        location = parse_location(self.url)
        if self.reopen:
            end = self.reopen(writing)
        else:
            end = open_endpoint(location, CopyOptions(), lambda: False, writing=writing)
        self.opened.append(end)
        return end

    def name(self, relative: str) -> str:
        """What the endpoint calls a file of the folder."""
        return parse_location(self.url).name + relative

    def url_of(self, relative: str) -> str:
        """How a user names a file of the folder."""
        remote = "://" in self.url
        return self.url + (quote(relative, errors="surrogateescape") if remote else relative)

    @property
    def awkward(self) -> list[str]:
        """Names that it can store, and that a bug might not."""
        return [name for name in AWKWARD if name not in self.cannot_name]

    def write(self, relative: str, data: bytes = b"") -> Path:
        path = self.folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        for made in (path, *path.parents):
            if made.is_relative_to(self.folder):
                self._hand_over(made)
        return path

    def hand_over(self) -> None:
        """Give all that is in the folder to whom the endpoint works as."""
        for made in (self.folder, *self.folder.rglob("*")):
            self._hand_over(made)

    def _hand_over(self, path: Path) -> None:
        if self.owner:
            os.chown(path, pwd.getpwnam(self.owner).pw_uid, -1, follow_symlinks=False)


def make(path: Path, size: int = 1) -> Path:
    """Make a file of so many random bytes, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(random_bytes(size))
    return path


def partials(folder: Path) -> list[Path]:
    """The unfinished files of a folder."""
    return list(folder.glob(".*.part"))


@contextmanager
def local_site(folder: Path) -> Iterator[Site]:
    yield Site(folder, f"{folder}/", keeps_fractions=True, carries_lines=True)


@contextmanager
def stock_site(folder: Path) -> Iterator[Site]:
    with StockServer(folder) as server:
        owner = "nobody" if os.geteuid() == 0 else ""
        yield Site(folder, server.url, owner=owner, links="absolute", resolves_links=True)


@contextmanager
def grid_site(folder: Path) -> Iterator[Site]:
    """A stock server of a grid, and its user in the environment."""
    grid = shared_grid()
    with as_user(grid), StockServer(folder, grid=grid) as server:
        owner = "nobody" if os.geteuid() == 0 else ""
        yield Site(folder, server.url, owner=owner, links="absolute", resolves_links=True)


@contextmanager
def own_site(folder: Path) -> Iterator[Site]:
    limits = Limits(congestion=congestion_control.usable_congestion())  # whatever this host gives its users
    with Server(folder, writable=True, limits=limits) as server:
        yield Site(folder, server.url, links="none", takes_congestion=True, has_xxh3=True)


@contextmanager
def token_site(folder: Path) -> Iterator[Site]:
    """As own_site, inside TLS, with a token in the environment."""
    limits = Limits(congestion=congestion_control.usable_congestion())
    secure = TokenServing()
    with with_token(secure), Server(folder, writable=True, limits=limits, secure=secure) as server:
        yield Site(folder, server.url, links="none", takes_congestion=True, has_xxh3=True)


@contextmanager
def sftp_site(folder: Path) -> Iterator[Site]:
    """A host with ssh and without mpx."""
    with private_sshd():
        url = f"ssh://{HOST}{folder}/"
        location = parse_location(url)
        with contextlib.closing(SshLogin(location)) as login, contextlib.closing(LanePool(login)) as pool:
            options = LaneOptions(20.0, 20.0, lambda: False)
            site = Site(folder, url, checksums=("sha256",), carries_lines=True)
            site.reopen = lambda writing: SshFilesEndpoint(location, pool, options, writing=writing)
            try:
                yield site
            finally:
                for end in site.opened:
                    end.close()


@contextmanager
def with_token(secure: TokenServing, *, writable: bool = True, folder: str = "/") -> Iterator[TokenRights]:
    """Have a token of that server in the environment."""
    token, grant = new_token(secure.key_name, folder=folder, writable=writable, until_s=None, note="")
    secure.tokens.add(grant)
    before = os.environ.get("MPX_TOKEN")
    os.environ["MPX_TOKEN"] = token.text
    try:
        yield grant
    finally:
        os.environ.pop("MPX_TOKEN")
        if before is not None:
            os.environ["MPX_TOKEN"] = before


SITES: dict[str, Callable[[Path], contextlib.AbstractContextManager[Site]]] = {
    "local": local_site,
    "stock server": stock_site,
    "grid server": grid_site,
    "mpx serve": own_site,
    "mpx serve with a token": token_site,
    "sftp": sftp_site,
}
FAR = ("stock server", "mpx serve")


@contextmanager
def opened(name: str, tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "served"
    folder.mkdir()
    with SITES[name](folder) as site:
        yield site
        for end in site.opened:
            end.close()
