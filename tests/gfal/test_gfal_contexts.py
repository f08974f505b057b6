"""What gfal2 keeps from one copy to the next: sessions, never what makes the next file another one."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sites import Site

from mpx.endpoints.gfal.lanes import GfalLanes
from mpx.endpoints.gfal.process import GfalOptions, Opens
from mpx.endpoints.gfal.settings import CopyOrder, dumped
from mpx.endpoints.gfal.watched_job import WatchedJob
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.session import SftpSession
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.location import parse_location, through_gfal

Open = Callable[[str], contextlib.AbstractContextManager[Site]]
# One is cut into blocks that several streams carry, others need several blocks of gfal2's:
SIZES = (0, 1, 20_000_001, 4_194_304, 4_194_305, 7, 100_001, 0, 9_000_001, 3)


@contextlib.contextmanager
def process_of(*urls: str) -> Iterator[SftpSession]:
    """One process that copies from the first to the second, or between one and this host."""
    places = [through_gfal(parse_location(url)) for url in urls]
    options, usual = LaneOptions(60.0, 60.0, lambda: False), GfalOptions(XrootdOptions(60.0, 60.0))
    lanes = [GfalLanes([place], usual, BearerTokens()) for place in places]
    used = lanes[0].with_files(Opens.ALL) if len(lanes) == 1 else lanes[0].with_other(lanes[1])
    with contextlib.closing(used.open(options)) as session:
        yield session


def carried(session: SftpSession, orders: Sequence[CopyOrder]) -> None:
    """Have one after the other copied by one process."""
    for order in orders:
        state = WatchedJob(session, 60.0, lambda: False).run("copy", dumped(order), lambda _: 0)
        assert state.is_over and not state.code, state


def contents_below(folder: Path) -> list[bytes]:
    """Files to be copied, no two alike."""
    folder.mkdir()
    contents = [os.urandom(size) for size in SIZES]
    for i, content in enumerate(contents):
        (folder / str(i)).write_bytes(content)
        (folder / str(i)).chmod(0o644)
    return contents


def found_below(folder: Path) -> list[bytes]:
    return [(folder / str(i)).read_bytes() for i in range(len(SIZES))]


@pytest.mark.parametrize("kind", ["grid", "apache", "xrootd", "root"])
def test_one_process_sends_and_fetches_many(here: Path, open_server: Open, kind: str) -> None:
    contents = contents_below(here / "files")
    (here / "got").mkdir()
    with open_server(kind) as site, process_of(site.url) as session:
        up = [CopyOrder(f"file://{here}/files/{i}", site.url_of(str(i))) for i in range(len(SIZES))]
        carried(session, up)
        assert found_below(site.folder) == contents
        down = []
        for i in range(len(SIZES)):
            (here / "got" / str(i)).touch()
            down.append(CopyOrder(site.url_of(str(i)), f"file://{here}/got/{i}", is_here=True))
        carried(session, down)
        assert found_below(here / "got") == contents


@pytest.mark.parametrize(("first", "second"), [("grid", "grid2"), ("grid", "nginx"), ("nginx", "grid")])
@pytest.mark.parametrize("streams", [0, 4])
def test_one_process_copies_many_between_servers(
    here: Path, open_server: Open, first: str, second: str, streams: int
) -> None:
    with open_server(first) as source, open_server(second) as destination:
        contents = contents_below(source.folder / "files")
        names = [str(i) for i in range(len(SIZES))]
        with process_of(destination.url, source.url) as session:
            orders = [
                CopyOrder(source.url_of(f"files/{name}"), destination.url_of(name), streams) for name in names
            ]
            carried(session, orders)
        assert found_below(destination.folder) == contents


def test_a_login_is_for_many_files(here: Path, open_server: Open) -> None:
    """A server of GridFTP is logged in at twice at most, and where it is slow to say that a file is sent."""
    contents_below(here / "files")
    with open_server("grid") as site:
        log = Path(f"{site.folder}.server.log")

        def logins() -> int:
            return log.read_text(errors="replace").count("New connection from")

        with process_of(site.url) as session:
            names = range(len(SIZES))
            carried(session, [CopyOrder(f"file://{here}/files/{i}", site.url_of(str(i))) for i in names])
            for_uploads = logins()
            (here / "to").touch()
            to = f"file://{here}/to"
            carried(session, [CopyOrder(site.url_of(str(i)), to, is_here=True) for i in names])
            for_downloads = logins() - for_uploads
    assert for_uploads <= 3
    assert for_downloads <= len(SIZES) + 2  # with one for each copy, or what gfal2 does by itself, twice that


def test_a_copy_that_fails_spoils_no_other(here: Path, open_server: Open) -> None:
    content = os.urandom(5_000_001)
    with open_server("grid") as site, process_of(site.url) as session:
        (site.folder / "file").write_bytes(content)
        (site.folder / "file").chmod(0o644)
        for name in ("one", "two"):
            (here / name).touch()
            missing = CopyOrder(site.url_of("no"), f"file://{here}/{name}", is_here=True)
            state = WatchedJob(session, 60.0, lambda: False).run("copy", dumped(missing), lambda _: 0)
            assert state.code
            carried(session, [CopyOrder(site.url_of("file"), f"file://{here}/{name}", is_here=True)])
            assert (here / name).read_bytes() == content
