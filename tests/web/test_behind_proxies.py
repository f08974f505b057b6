"""WebDAV servers behind a proxy that ends TLS for them, and perhaps maps a folder to them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import copied as ended_well
from mpx_command import mpx
from sites import make
from web.lying import NAME, SMALL, copied, up
from web.scripted_http import Answer, Exchange, ScriptedHttp
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site

BACKENDS = {"nginx": nginx_site, "apache": apache_site, "wsgidav": wsgidav_site}
# Headers that many leave as they are: without them a server sees the name of the proxy's setting.
PROXY = """
location %s {
proxy_pass http://127.0.0.1:%d%s;
proxy_http_version 1.1;
proxy_request_buffering off;
%s
}
"""
HOST = "proxy_set_header Host $http_host;"


@contextlib.contextmanager
def behind(backend: str, tmp_path: Path, place: str = "/", to: str = "", more: str = "") -> Iterator[WebSite]:
    """A server in the clear, as it is reached through a proxy; `folder` is that of the server."""
    served, before = tmp_path / "served", tmp_path / "proxy"
    served.mkdir()
    before.mkdir()
    with BACKENDS[backend](served) as server:
        settings = PROXY % (place, server.port, to, more)
        # Its own location is another, as two of one name are an error.
        with nginx_site(before, tls=True, below="", settings=settings) as proxy:
            proxy.folder = served
            proxy.url = proxy.url.rstrip("/") + place
            yield proxy


@pytest.mark.parametrize("more", ["", HOST], ids=["other host", "same host"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_files_get_their_names(backend: str, more: str, tmp_path: Path, here: Path) -> None:
    """The server takes a Destination inside TLS for one at another server."""
    make(here / "tree/sub/file", 100_000)
    make(here / "tree/with blanks", 10)
    with behind(backend, tmp_path, more=more) as there:
        ca = there.ca
        ended_well(mpx("copy", "-q", "-r", "--ca", ca, here / "tree", f"{there.url}new/"))
        make(here / "tree/sub/file", 200_000)
        (here / "tree/with blanks").write_bytes(b"other")
        ended_well(mpx("copy", "-q", "-r", "--ca", ca, here / "tree", f"{there.url}new/"))
        ended_well(mpx("copy", "-q", "-r", "--ca", ca, f"{there.url}new/", here / "back"))
        found = sorted(str(path.relative_to(there.folder)) for path in there.folder.rglob("*"))
    assert found == ["new", "new/sub", "new/sub/file", "new/with blanks"]
    for name in ("sub/file", "with blanks"):
        assert (here / "back" / name).read_bytes() == (here / "tree" / name).read_bytes()


@pytest.mark.parametrize("place", ["/data/", "/remote/data/"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tree_of_a_folder_that_is_mapped(backend: str, place: str, tmp_path: Path, here: Path) -> None:
    """The server knows nothing of that folder, also in what it lists."""
    with behind(backend, tmp_path, place, "/") as there:
        make(there.folder / "tree/sub/file", 1000)
        make(there.folder / "tree/with blanks", 10)
        ca = there.ca
        ended_well(mpx("copy", "-q", "-r", "--ca", ca, f"{there.url}tree", here / "tree"))
        ended_well(mpx("copy", "-q", "-r", "--ca", ca, there.url, here / "all"))
        listed = mpx("list", "--ca", ca, f"{there.url}tree/")
    assert (listed.code, listed.out) == (0, "sub/\nwith blanks\n")
    for name in ("sub/file", "with blanks"):
        for folder in (here / "tree", here / "all/tree"):
            assert (folder / name).read_bytes() == (there.folder / "tree" / name).read_bytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_name_in_a_folder_that_is_mapped(backend: str, tmp_path: Path, here: Path) -> None:
    """The server does not know where a file is to go by its new name, and nginx makes folders for it."""
    make(here / "file", 1000)
    with behind(backend, tmp_path, "/data/", "/") as there:
        upload = ("copy", "-q", "--ca", there.ca, here / "file", there.url)
        ended = mpx(*upload)
        assert ended.code == 4, ended
        assert "--in-place" in ended.err
        ended_well(mpx(*upload, "--in-place"))
        assert (there.folder / "file").read_bytes() == (here / "file").read_bytes()


def test_a_server_that_is_named_by_no_destination(tmp_path: Path) -> None:
    """It is not asked for minutes, as one would be that a proxy does not reach."""

    def foreign(exchange: Exchange) -> Answer:
        return Answer(502 if ":" in exchange.asked.headers["destination"] else 400)

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": foreign}, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=10)
        assert outcome.code == 4, outcome
        assert "another server" in outcome.text and "--in-place" in outcome.text
        assert not [name for name in server.files if "mpx" in name]


@pytest.mark.parametrize("form", ["https://", "/"])
def test_what_shows_that_files_can_be_renamed(form: str, tmp_path: Path) -> None:
    """A server that says nothing of WebDAV is tried, and takes itself for another one, too."""

    def foreign(exchange: Exchange) -> Answer:
        is_taken = exchange.asked.headers["destination"].startswith(form)
        return exchange.usual() if is_taken else Answer(400)

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": foreign}, {"/folder/other": b""}, is_dav=False) as server:
        outcome = copied(tmp_path / "src", f"{server.origin}{NAME}")
        assert outcome.code == 0, outcome
        assert server.files[NAME] == SMALL
    assert not [note for note in outcome.notes if "not atomic" in note]
