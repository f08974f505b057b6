"""Copies between two servers of which one or both are of the web: they pass through this host."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from interop.test_between_servers import THROUGH_US, said
from random_bytes import random_bytes
from sites import Site, make, partials, sftp_site, stock_site, token_site
from web.servers.nginx import nginx_site
from web.servers.site import WebSite
from web.shared_servers import SharedServers

import mpx
from mpx.errors import DestinationError, IntegrityError, Interrupted, PartialFailure, UsageError

MIB = 1024 * 1024
TREE = mpx.CopyOptions(recursive=True, third_party="never")
SLOW = mpx.CopyOptions(rate_bps=64e6)
OTHERS = {"sftp": sftp_site, "mpx": token_site, "stock": stock_site}
INTO = [("nginx", other) for other in OTHERS]  # parts of files can be stored there
WITHIN_WEB = [("nginx", "apache"), ("apache", "nginx"), ("wsgidav", "nginx"), ("xrootd", "xrootd")]
RENAME_TO_FEW = ("wsgidav", "xrootd")
PAIRS = [
    *INTO,
    *WITHIN_WEB,
    *((other, "nginx") for other in OTHERS),
    ("mpx", "apache"),
    ("stock", "wsgidav"),
]


class Pair:
    """Two sites: where a copy reads, and where it writes."""

    def __init__(self, source: Site, destination: Site, kinds: tuple[str, ...] = ()) -> None:
        self.source, self.destination, self.kinds = source, destination, kinds

    @property
    def names(self) -> list[str]:
        """Odd ones that both have, and that the destination renames to."""
        if {*RENAME_TO_FEW} & {*self.kinds}:
            return ["with blanks", "it's"]
        names = [name for name in self.source.awkward if name in self.destination.awkward]
        return [*names, *(("grüße", "ψ") if "stock" not in self.kinds else ())]

    def copy(
        self,
        name: str,
        options: mpx.CopyOptions | None = None,
        *,
        on_progress: Callable[[mpx.Progress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> mpx.Report:
        self.source.hand_over()
        self.destination.hand_over()
        source, destination = self.source.url_of(name), self.destination.url_of(name)
        return mpx.copy(source, destination, options, on_progress=on_progress, cancel=cancel)

    def assert_same(self, name: str) -> None:
        there, here = (site.folder / name for site in (self.destination, self.source))
        files = [path.relative_to(here) for path in here.rglob("*")] if here.is_dir() else [Path()]
        if here.is_dir():
            assert sorted(path.relative_to(there) for path in there.rglob("*")) == sorted(files)
        for each in files:
            if (here / each).is_file():
                assert (there / each).read_bytes() == (here / each).read_bytes(), each


@contextlib.contextmanager
def paired(kinds: tuple[str, str], folder: Path, servers: SharedServers) -> Iterator[Pair]:
    with contextlib.ExitStack() as stack:
        sites = []
        for name, kind in zip(("one", "other"), kinds, strict=True):
            if kind in OTHERS:
                (folder / name).mkdir()
                sites.append(stack.enter_context(OTHERS[kind](folder / name)))
            else:
                sites.append(stack.enter_context(servers.site(kind)))
        yield Pair(sites[0], sites[1], kinds)


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path, web_servers: SharedServers) -> Iterator[Pair]:
    with paired(request.param, tmp_path, web_servers) as made:
        yield made


def between(*pairs: tuple[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", pairs, ids="-".join, indirect=True)


@between(*PAIRS)
def test_a_tree_passes_through_this_host(pair: Pair) -> None:
    for size in (0, 1, 999, 70_001, MIB, 9 * MIB + 5):
        make(pair.source.folder / "tree/sub" / f"{size}", size)
    for name in pair.names:
        make(pair.source.folder / "tree/names" / name, 1000)
    (pair.source.folder / "tree/empty").mkdir()
    # Asked for checksums over several connections at once XRootD 5.5 may leave some without an answer.
    options = replace(TREE, checksum="none") if "xrootd" in pair.kinds else TREE
    report = pair.copy("tree", options)
    assert said(report, THROUGH_US)
    assert report.files.moved == 6 + len(pair.names)
    pair.assert_same("tree")
    assert pair.copy("tree", options).files.skipped == report.files.moved


@between(("nginx", "apache"), ("mpx", "nginx"))
def test_what_is_unverified_names_who_computes_no_checksums(pair: Pair) -> None:
    make(pair.source.folder / "file", 1000)
    sites = zip((pair.destination, pair.source), reversed(pair.kinds), strict=True)
    to_blame = [site.url.split("/")[2] for site, kind in sites if kind != "mpx"]
    compute = "computes" if len(to_blame) == 1 else "compute"
    assert f"unverified: {' and '.join(to_blame)} {compute} no checksums" in pair.copy("file").notes


@between(("nginx", "mpx"), ("wsgidav", "mpx"))
@pytest.mark.parametrize("size", [1000, 70 * MIB])
def test_what_is_stored_is_compared_with_what_passed(pair: Pair, size: int) -> None:
    """Where the source computes no checksums."""
    make(pair.source.folder / "file", size)
    report = pair.copy("file")
    by = "sha256" if size < MIB else "adler32"
    told = {"algorithm": by, "result": "verified", "bytes": {by: size}, "of_passed": size}
    assert report.checksum == told, report.notes
    assert not said(report, "unverified")
    assert said(report, "was compared with what passed through this host")
    pair.assert_same("file")


@between(("nginx", "mpx"))
def test_what_came_with_an_earlier_run_is_not_compared(pair: Pair) -> None:
    make(pair.source.folder / "large", 40 * MIB + 3)
    stop = threading.Event()

    def half(progress: mpx.Progress) -> None:
        if progress.bytes_done > 20 * MIB:
            stop.set()

    with pytest.raises(Interrupted):
        pair.copy("large", mpx.CopyOptions(rate_bps=80e6, streams=1), on_progress=half, cancel=stop)
    report = pair.copy("large")
    assert report.files.resumed == 1 and report.checksum["result"] == "unverified"
    assert said(report, "passed through this host in its order, and in this run")


def test_one_server_at_both_ends_is_named_once(davs_site: Site) -> None:
    davs_site.write("file", b"12345")
    ends = davs_site.url_of("file"), davs_site.url_of("to")
    report = mpx.copy(*ends, mpx.CopyOptions(third_party="never"))
    place = f"localhost:{urlsplit(davs_site.url).port}"
    assert f"unverified: {place} computes no checksums" in report.notes


@between(("nginx", "apache"), ("apache", "mpx"), ("stock", "nginx"))
def test_many_small_files(pair: Pair) -> None:
    for i in range(300):
        make(pair.source.folder / "tree" / f"{i % 7}/{i}", 1 + 37 * i)
    assert pair.copy("tree", TREE).files.moved == 300
    pair.assert_same("tree")


@between(*INTO)
def test_an_interrupted_copy_goes_on(pair: Pair) -> None:
    make(pair.source.folder / "large", 40 * MIB + 3)
    stop = threading.Event()

    def half(progress: mpx.Progress) -> None:
        if progress.bytes_done > 20 * MIB:
            stop.set()

    with pytest.raises(Interrupted):
        # By one stream, whose pieces follow each other: of several all might be unfinished.
        pair.copy("large", mpx.CopyOptions(rate_bps=200e6, streams=1), on_progress=half, cancel=stop)
    assert not (pair.destination.folder / "large").exists()
    report = pair.copy("large")
    assert (report.files.resumed, report.bytes.resumed > 0) == (1, True)
    pair.assert_same("large")


@between(("nginx", "apache"), ("mpx", "nginx"))
def test_a_web_server_stores_an_interrupted_file_anew(pair: Pair) -> None:
    make(pair.source.folder / "large", 40 * MIB + 3)
    stop = threading.Event()

    def stop_soon(seen: mpx.Progress) -> None:
        if seen.bytes_done:
            stop.set()

    with pytest.raises(Interrupted):
        pair.copy("large", SLOW, on_progress=stop_soon, cancel=stop)
    assert not (pair.destination.folder / "large").exists()
    assert pair.copy("large").bytes.moved == 40 * MIB + 3
    pair.assert_same("large")
    assert not partials(pair.destination.folder)


@between(("nginx", "apache"), ("stock", "nginx"), ("nginx", "mpx"))
def test_a_source_that_changes_is_not_taken_for_whole(pair: Pair) -> None:
    source = make(pair.source.folder / "file", 6 * MIB)
    changed = threading.Event()

    def change(progress: mpx.Progress) -> None:
        if progress.bytes_done and not changed.is_set():
            changed.set()
            source.write_bytes(random_bytes(6 * MIB))
            os.utime(source, (1e9, 1e9))

    with pytest.raises(IntegrityError, match="changed while it was copied") as failed:
        pair.copy("file", mpx.CopyOptions(rate_bps=32e6), on_progress=change)
    assert changed.is_set() and failed.value.exit_code == 8
    assert not (pair.destination.folder / "file").exists()


@between(("stock", "nginx"))
@pytest.mark.parametrize("size", [20 * MIB, 26 * MIB])
def test_the_end_of_the_data_decides_how_long_a_file_is(pair: Pair, size: int) -> None:
    """Although the head of a PUT has told another length before: it is stored once more then."""
    source = make(pair.source.folder / "file", 24 * MIB)
    changed = threading.Event()

    def change(progress: mpx.Progress) -> None:
        if progress.bytes_done and not changed.is_set():
            changed.set()
            before = source.stat()
            os.truncate(source, size)
            os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))

    report = pair.copy("file", mpx.CopyOptions(rate_bps=200e6), on_progress=change)
    assert changed.is_set() and said(report, f"{size} came; the end of the data decides")
    assert said(report, "trying again after: localhost takes no other number of bytes")
    pair.assert_same("file")


@between(("apache", "nginx"), ("apache", "mpx"))
@pytest.mark.parametrize("size", [1000, 2 * MIB])
def test_a_file_that_a_source_refuses_keeps_no_others_back(pair: Pair, size: int) -> None:
    if not pair.source.owner:
        pytest.skip("a server that works as we do reads everything")
    for i in range(20):
        make(pair.source.folder / f"tree/{i}", size + i)
    (pair.source.folder / "tree/7").chmod(0)
    with pytest.raises(PartialFailure, match=r"tree/7: 403") as failed:
        pair.copy("tree", TREE)
    assert failed.value.report is not None
    assert (failed.value.report.files.moved, failed.value.report.files.failed) == (19, 1)


@between(("nginx", "apache"), ("mpx", "apache"))
@pytest.mark.parametrize("size", [1000, 2 * MIB])
def test_a_file_that_a_destination_refuses_keeps_no_others_back(pair: Pair, size: int) -> None:
    if not pair.destination.owner:
        pytest.skip("a server that works as we do writes everything")
    for i in range(20):
        make(pair.source.folder / f"tree/{i}/file", size + i)
    pair.destination.write("tree/7/other")
    pair.copy("tree/0/file")  # hands all folders over that there are
    (pair.destination.folder / "tree/7").chmod(0o555)
    with pytest.raises(PartialFailure, match="tree/7") as failed:
        mpx.copy(pair.source.url_of("tree"), pair.destination.url_of("tree"), TREE)
    assert failed.value.report is not None
    assert (failed.value.report.files.skipped, failed.value.report.files.moved) == (1, 18)


@between(("nginx", "apache"), ("mpx", "nginx"), ("nginx", "mpx"))
def test_what_cannot_be_had_is_refused(pair: Pair) -> None:
    make(pair.source.folder / "file")
    with pytest.raises(UsageError, match="--third-party only is not possible here: "):
        pair.copy("file", mpx.CopyOptions(third_party="only"))
    if pair.kinds[1] != "mpx":
        with pytest.raises(UsageError, match="--continue is not possible here: data pass through this host"):
            pair.copy("file", mpx.CopyOptions(explicit=frozenset({"resume"})))


@between(("nginx", "apache"))
def test_a_rate_is_kept(pair: Pair) -> None:
    for i in range(9):
        make(pair.source.folder / f"tree/{i}", 400_000)
    make(pair.source.folder / "tree/large", 3 * MIB)
    assert pair.copy("tree", mpx.CopyOptions(recursive=True, rate_bps=48e6)).goodput_bps < 55e6
    pair.assert_same("tree")


def site_of(server: WebSite, folder: str) -> Site:
    (server.folder / folder).mkdir()
    return Site(server.folder / folder, f"{server.url}{folder}/")


# Servers that lead PUT elsewhere, or GET; one that only stores, and one that also renames, but says nothing.
ELSEWHERE = """
location /in/ {
    dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS;
    if ($request_method = PUT) { return 307 /pool$request_uri; }
}
location /pool/ { alias %(folder)s/; dav_methods PUT; }
location /out/ {
    dav_ext_methods PROPFIND OPTIONS;
    if ($request_method = GET) { return 302 /pool$request_uri; }
}
location /plain/ { dav_methods PUT; }
location /own/ { dav_methods PUT MOVE; }
"""


@pytest.fixture
def leading(tmp_path: Path) -> Iterator[WebSite]:
    folder = tmp_path / "leading"
    folder.mkdir()
    with nginx_site(folder, settings=ELSEWHERE % {"folder": folder}) as server:
        yield server


def test_redirects_are_followed_at_both_ends(leading: WebSite) -> None:
    pair = Pair(site_of(leading, "out"), site_of(leading, "in"))
    for size in (0, 1, 70_001, 3 * MIB):
        make(pair.source.folder / f"tree/{size}", size)
    for i in range(60):
        make(pair.source.folder / f"tree/many/{i}", 100 + i)
    assert pair.copy("tree", TREE).files.moved == 64
    pair.assert_same("tree")


def test_a_server_that_cannot_rename_is_told(leading: WebSite) -> None:
    pair = Pair(site_of(leading, "out"), site_of(leading, "plain"))
    make(pair.source.folder / "file", 3 * MIB)
    assert said(pair.copy("file"), "not atomic: localhost cannot rename files")
    pair.assert_same("file")


def test_a_server_that_renames_need_not_say_so(leading: WebSite) -> None:
    pair = Pair(site_of(leading, "out"), site_of(leading, "own"))
    make(pair.source.folder / "file", 3 * MIB)
    assert not said(pair.copy("file"), "not atomic")
    pair.assert_same("file")


@between(("https archive", "nginx"))
def test_a_file_of_a_server_without_listings(pair: Pair) -> None:
    make(pair.source.folder / "file", 5 * MIB)
    pair.copy("file")
    pair.assert_same("file")
    with pytest.raises(DestinationError):
        mpx.copy(pair.source.url_of("file"), pair.destination.url_of("no/such/folder/file") + "y" * 256)
