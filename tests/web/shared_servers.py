"""Web servers that all tests of a process share, as each takes a moment to start.

Each test has a folder of its own there.
To add one: a row in SERVERS, and what its Site cannot do.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from install_peers import GFAL, find_peer
from sites import Site
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site
from web.servers.xrootd import XrootdSite, xrootd_site

MakeServer = Callable[[Path], contextlib.AbstractContextManager[WebSite]]
SERVERS: dict[str, MakeServer] = {
    "nginx": partial(nginx_site, tls=True),
    "nginx in the clear": nginx_site,
    "apache": apache_site,
    "wsgidav": wsgidav_site,
    "xrootd": xrootd_site,
    "https archive": partial(nginx_site, tls=True, dav=False),
}
# Further ways to the same servers, which share them:
OTHER_WAYS = {"root": "xrootd", "gfal2": "nginx"}
# What they can and cannot do, see Site.
LIKE_ALL: dict[str, Any] = {
    "checksums": (),
    "links": "none",
    "keeps_times": False,
    "keeps_modes": False,
    "shows_links": False,
}
LIMITS: dict[str, dict[str, Any]] = {
    "nginx": {"knows_long": False, "makes_parents": True, "lists_hidden": False},
    "apache": {"refuses_broken": True, "refuses_loops": True},
    "wsgidav": {
        "follows_links": False,
        "refuses_broken": True,
        "replaces_links": False,
        "knows_long": False,
        "stores_any_bytes": False,
        "cannot_rename": frozenset({"a#b", "a;b=c; d", "*?[x]", "Type=file;Size=3; x"}),
    },
    "xrootd": {
        "checksums": ("adler32", "md5"),
        "sums_parts": False,
        "stores_any_bytes": False,
        "refuses_loops": True,
        "replaces_links": False,
        "makes_parents": True,
        # What follows a question mark is not of the name; listings cut long names off.
        "cannot_name": frozenset({"*?[x]", "x" * 255}),
        "cannot_rename": frozenset({"ends in a blank "}),
    },
    "root": {
        "checksums": ("adler32", "md5"),
        "sums_parts": False,
        "stores_any_bytes": False,
        "refuses_loops": True,
        "replaces_links": False,
        "makes_parents": True,
        # What follows a question mark is not of the name; listings cut long names off.
        "cannot_name": frozenset({"*?[x]", "x" * 255}),
    },
    "gfal2": {
        "checksums": ("adler32", "md5"),
        "sums_parts": False,
        "knows_long": False,
        "makes_parents": True,
        "lists_hidden": False,
        # It has names with a question mark refused, and cuts off those of listings.
        "cannot_name": frozenset({"*?[x]", "x" * 255}),
    },
    "https archive": {"knows_long": False, "refuses_loops": True},
}


class SharedServers:
    """Starts each server when it is first asked for, and ends all at its own end."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        self._running: dict[str, WebSite] = {}
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def get(self, name: str) -> WebSite:
        """The server of that name."""
        if name not in self._running:
            root = Path(tempfile.mkdtemp(prefix="mpx-web-"))
            root.chmod(0o755)  # servers work as somebody else
            self._held.callback(shutil.rmtree, root, ignore_errors=True)
            (root / "served").mkdir()
            self._running[name] = self._held.enter_context(SERVERS[name](root / "served"))
        return self._running[name]

    @contextlib.contextmanager
    def site(self, name: str) -> Iterator[Site]:
        """A new folder of that server, which a user with its credentials works in; see in_its_world."""
        if name == "gfal2":
            find_peer(GFAL)
        server = self.get(OTHER_WAYS.get(name, name))
        by_root = server.root_url if name == "root" and isinstance(server, XrootdSite) else ""
        url = f"gfal2+{server.url}" if name == "gfal2" else by_root or server.url
        self._count += 1
        folder = server.folder / f"of test {self._count}"
        folder.mkdir()
        site = Site(folder, f"{url}of%20test%20{self._count}/", owner=server.owner)
        site = replace(site, carries_lines=name != "root", **{**LIKE_ALL, **LIMITS.get(name, {})})
        site.hand_over()
        with in_its_world(server, by_root=bool(by_root)):
            try:
                yield site
            finally:
                for end in site.opened:
                    end.close()


@contextlib.contextmanager
def in_its_world(server: WebSite, *, by_root: bool = False) -> Iterator[None]:
    """Have the environment and the network in which a user reaches a server."""
    given = {"SSL_CERT_FILE": str(server.ca)} if server.ca else {}
    with contextlib.ExitStack() as held:
        if isinstance(server, XrootdSite):
            given["BEARER_TOKEN"] = server.issuer.token()
            if by_root:
                given["X509_CERT_DIR"] = str(server.trusted)
            held.enter_context(within(server.namespace))
        held.enter_context(with_environment(given))
        yield


@contextlib.contextmanager
def with_environment(given: dict[str, str]) -> Iterator[None]:
    """Have these variables in the environment of this process, and of those that it starts."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
