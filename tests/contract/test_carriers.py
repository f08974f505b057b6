"""What every carrier must do, whatever it talks to: bytes exact, resumed, stopped, and never silently wrong.

Each runs as a copy does it, against a real `mpx serve`; what no sound server does (a stalled stream, damage
on the way) against a scripted one.
"""

import contextlib
import filecmp
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from gfal.slow_path import slowed
from globus.globus_site import globus_site
from interop.control_relay import ControlRelay
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from mpx_lab.proxy import DelayProxy
from random_bytes import random_bytes
from s3.buckets import Bucket, buckets_of
from s3.object_folder import ObjectPath
from sites import grid_site, own_site, sftp_site, token_site
from web.shared_servers import SharedServers

import mpx
from mpx.errors import IntegrityError, Interrupted

MIB = 1024 * 1024
GIB = 1024 * MIB
SLOW = mpx.CopyOptions(rate_bps=32e6)  # so that something can happen on the way
SLOW_BYTES = 6 * MIB
IN_THE_CLEAR = ("MODE E up", "MODE E down", "MODE S up", "MODE S down")
BETWEEN_SERVERS = ("third party", "relay", "relay to MODE S", "relay from TLS", "relay to TLS")
RELAYS_OF_WEB = ("relay from HTTPS", "relay to HTTPS")
OVER_HTTP = {  # the server of each, see shared_servers.py
    "HTTP": "nginx in the clear",
    "HTTPS": "nginx",
    "Apache": "apache",
    "XRootD": "xrootd",
    "Root": "root",  # the same, by its own protocol
    "WsgiDAV": "wsgidav",
    "Archive": "https archive",
}
WEB = (
    *(f"{kind} {way}" for kind in OVER_HTTP for way in ("up", "down") if kind != "Archive"),
    "Archive down",
)
OVER_OTHERS = tuple(f"{kind} {way}" for kind in ("TLS", "GSI", "SFTP", "Globus") for way in ("up", "down"))
OVER_S3 = {"moto": "moto", "SeaweedFS": "seaweedfs"}  # the fixture of each
S3 = (*(f"{kind} {way}" for kind in OVER_S3 for way in ("up", "down")), "relay from moto", "relay to moto")
BY_GFAL = ("gfal2 up", "gfal2 down")  # from and to nginx
CARRIERS = ("local", *IN_THE_CLEAR, *OVER_OTHERS, *WEB, *S3, *BY_GFAL, *BETWEEN_SERVERS, *RELAYS_OF_WEB)
SITES = {"TLS": token_site, "GSI": grid_site, "SFTP": sftp_site, "Globus": globus_site}
IN_PLACE = ("Apache up", "Root up")  # written at offsets, into what is there
# Each file is one whole STOR or PUT there, as one of 6 MiB is to S3:
WHOLE = (
    *BY_GFAL,
    *("MODE S up", "relay to MODE S", "relay to HTTPS", "relay to moto", "Globus up"),
    *(carrier for carrier in (*WEB, *S3) if carrier.endswith("up") and carrier not in IN_PLACE),
)
# What was read, and had these checksums, has its name before it is known that the source is another by now:
STORED_AT_ONCE = ("moto up", "SeaweedFS up")


@dataclass(frozen=True)
class Way:
    """From where to where a carrier moves files."""

    carrier: str
    source: Path | ObjectPath  # folders, as the tests see them
    destination: Path | ObjectPath
    source_url: str  # with a slash at their ends
    destination_url: str

    def copy(self, name: str, options: mpx.CopyOptions | None = None, **more: object) -> mpx.Report:
        if self.carrier == "third party":  # servers keep to no rate of ours: their path has one
            options = replace(options or mpx.CopyOptions(), rate_bps=None, third_party="only")
        elif self.carrier in BY_GFAL:  # as above
            options = replace(options or mpx.CopyOptions(), rate_bps=None)
        return mpx.copy(self.source_url + name, self.destination_url + name, options, **more)


@contextlib.contextmanager
def between_servers(carrier: str, folders: tuple[Path, Path]) -> Iterator[Way]:
    with contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context((token_site if kind in carrier else own_site)(folder)).url
            for folder, kind in zip(folders, ("from TLS", "to TLS"), strict=True)
        ]
        port = int(urls[1].split(":")[2].split("/")[0])
        if carrier == "relay to MODE S":
            relay = stack.enter_context(ControlRelay(port, to_server=without_mode_e))
            urls[1] = urls[1].replace(f":{port}", f":{relay.port}")
        elif carrier == "third party":
            proxy = stack.enter_context(
                DelayProxy(("127.0.0.1", port), rtt_s=0.001, total_rate_bps=SLOW.rate_bps)
            )
            urls[1] = urls[1].replace(f":{port}", f":{proxy.port}")
        yield Way(carrier, *folders, *urls)


@contextlib.contextmanager
def between(carrier: str, folder: Path) -> Iterator[Way]:
    near, far = folder / "near", folder / "far"
    near.mkdir()
    far.mkdir()
    if carrier == "local":
        yield Way(carrier, near, far, f"{near}/", f"{far}/")
        return
    if carrier in BETWEEN_SERVERS:
        with between_servers(carrier, (near, far)) as way:
            yield way
        return
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(SITES.get(carrier.split()[0], own_site)(far)).url
        if "MODE S" in carrier:
            port = int(url.split(":")[2].split("/")[0])
            relay = stack.enter_context(ControlRelay(port, to_server=without_mode_e))
            url = url.replace(f":{port}", f":{relay.port}")
        up = Way(carrier, near, far, f"{near}/", url)
        yield up if carrier.endswith("up") else Way(carrier, far, near, url, f"{near}/")


@contextlib.contextmanager
def over_http(carrier: str, near: Path, servers: SharedServers) -> Iterator[Way]:
    """Between a folder and a server; a relay is between mpx serve there and the server."""
    near.mkdir()
    kind = "HTTPS" if carrier in RELAYS_OF_WEB else carrier.partition(" ")[0]
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(servers.site(OVER_HTTP[kind]))
        url = stack.enter_context(token_site(near)).url if carrier in RELAYS_OF_WEB else f"{near}/"
        is_up = carrier.endswith("up") or " to " in carrier
        up = Way(carrier, near, site.folder, url, site.url)
        yield up if is_up else Way(carrier, site.folder, near, site.url, url)


@contextlib.contextmanager
def by_gfal(carrier: str, near: Path, servers: SharedServers) -> Iterator[Way]:
    """Between a folder and a server at the end of a slow path."""
    near.mkdir()
    with servers.site("gfal2") as site, slowed(site.url, SLOW.rate_bps or 0.0) as url:
        up = Way(carrier, near, site.folder, f"{near}/", url)
        yield up if carrier.endswith("up") else Way(carrier, site.folder, near, url, f"{near}/")


@contextlib.contextmanager
def over_s3(carrier: str, near: Path, bucket: Bucket) -> Iterator[Way]:
    """As over_http."""
    near.mkdir()
    far = ObjectPath(bucket)
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(token_site(near)).url if carrier.startswith("relay") else f"{near}/"
        is_up = carrier.endswith("up") or " to " in carrier
        yield Way(carrier, near, far, url, bucket.url) if is_up else Way(carrier, far, near, bucket.url, url)


def without_mode_e(line: bytes) -> bytes:
    return line.replace(b"MODE E", b"MODE B")


@pytest.fixture(
    params=[
        pytest.param(each, marks=pytest.mark.long) if each.startswith("gfal2") else each for each in CARRIERS
    ]
)
def way(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    web_servers: SharedServers,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Way]:
    carrier = request.param
    if carrier in S3:
        (kind,) = set(OVER_S3) & set(carrier.split())
        bucket = buckets_of(request.getfixturevalue(OVER_S3[kind]), monkeypatch)
        opened: contextlib.AbstractContextManager[Way] = over_s3(carrier, tmp_path / "near", bucket)
    elif carrier in BY_GFAL:
        opened = by_gfal(carrier, tmp_path / "near", web_servers)
    elif carrier in (*WEB, *RELAYS_OF_WEB):
        opened = over_http(carrier, tmp_path / "near", web_servers)
    else:
        opened = between(carrier, tmp_path)
    with opened as made:
        yield made


@pytest.mark.parametrize("size", [0, 1, 9 * MIB + 3])
def test_bytes_arrive_as_they_were(way: Way, size: int) -> None:
    content = random_bytes(size)
    (way.source / "file").write_bytes(content)
    report = way.copy("file")
    assert (way.destination / "file").read_bytes() == content
    assert (report.status, report.files.moved, report.bytes.moved) == ("done", 1, size)
    assert [entry.name for entry in way.destination.iterdir()] == ["file"]


@pytest.mark.long
def test_a_file_of_five_gibibytes(way: Way) -> None:
    """With holes, and with bytes where offsets of 31 and 32 bits end."""
    source, destination = way.source / "file", way.destination / "file"
    if not (isinstance(source, Path) and isinstance(destination, Path)):
        pytest.skip("moto has all of it in memory, and SeaweedFS stores no holes")
    if way.carrier == "third party":
        pytest.skip("the path between the servers is slowed there")
    try:
        with source.open("wb") as file:
            file.truncate(5 * GIB + 3)
            for offset in (0, 2 * GIB - 5, 4 * GIB - 5, 5 * GIB - 7):
                file.seek(offset)
                file.write(random_bytes(10))
        report = way.copy("file")
        assert filecmp.cmp(source, destination, shallow=False)
        assert (report.status, report.bytes.moved) == ("done", 5 * GIB + 3)
    finally:  # where a server stores no holes they are large
        source.unlink()
        destination.unlink(missing_ok=True)


def test_a_stopped_copy_goes_on(way: Way) -> None:
    in_parts = way.carrier == "Apache up"  # of which some are answered only a while after they were sent
    content = random_bytes(SLOW_BYTES * 4 if in_parts else SLOW_BYTES)
    (way.source / "file").write_bytes(content)
    cancel = threading.Event()

    def stop(progress: mpx.Progress) -> None:
        if progress.bytes_done >= (SLOW_BYTES if in_parts else 1):
            cancel.set()

    with pytest.raises(Interrupted):
        way.copy("file", SLOW, on_progress=stop, cancel=cancel)
    if way.carrier in STORED_AT_ONCE and (way.destination / "file").exists():  # the stop came too late
        assert (way.destination / "file").read_bytes() == content
    else:
        assert not (way.destination / "file").exists()
    report = way.copy("file")
    assert (way.destination / "file").read_bytes() == content
    assert [entry.name for entry in way.destination.iterdir()] == ["file"]
    # Without checksums of nginx only what the destination has told before counts: see web/test_relays.py.
    if way.carrier not in (*WHOLE, "relay from HTTPS", "relay from moto"):
        assert report.bytes.resumed > 0


def test_a_source_that_changes_is_not_taken_for_whole(way: Way) -> None:
    content = random_bytes(SLOW_BYTES)
    (way.source / "file").write_bytes(content)
    changed = threading.Event()

    def change(progress: mpx.Progress) -> None:
        if progress.bytes_done and not changed.is_set():
            changed.set()
            change_slightly(way.source / "file")

    with pytest.raises(IntegrityError, match=f"^{re.escape(unquote(way.source_url))}file changed while"):
        way.copy("file", SLOW, on_progress=change)
    assert changed.is_set()
    if way.carrier in STORED_AT_ONCE and (way.destination / "file").exists():
        assert (way.destination / "file").read_bytes() == content
    else:
        assert not (way.destination / "file").exists()


def change_slightly(file: Path | ObjectPath) -> None:
    """Have a file, or an object, of the same size begin with other bytes."""
    if isinstance(file, ObjectPath):
        file.write_bytes(b"changed" + file.read_bytes()[7:])
        return
    with file.open("r+b") as opened:
        opened.write(b"changed")
    os.utime(file, (1e9, 1e9))


def test_a_stop_does_not_wait_for_a_silent_peer(scripted: Callable[..., "Scripted"]) -> None:
    """The time-out is far longer than the test waits: only the stop can end the copy."""
    cancel, ended = threading.Event(), threading.Event()
    server = scripted(silent=True)

    def copy() -> None:
        with pytest.raises(Interrupted):
            server.copy(mpx.CopyOptions(timeout_s=3600.0), cancel=cancel)
        ended.set()

    thread = threading.Thread(target=copy)
    thread.start()
    assert server.stalled.wait(30)
    cancel.set()
    thread.join(30)
    assert ended.is_set()


def test_a_transfer_that_stalls_is_done_again(scripted: Callable[..., "Scripted"]) -> None:
    server = scripted(silent=True)
    report = server.copy(mpx.CopyOptions(timeout_s=1.0))
    assert server.stalled.is_set()
    assert (report.status, server.arrived()) == ("done", CONTENT)


def test_what_came_damaged_is_moved_again(scripted: Callable[..., "Scripted"]) -> None:
    server = scripted(damaged=True)
    report = server.copy(mpx.CopyOptions(checksum="adler32"))
    assert server.arrived() == CONTENT
    assert not report.mismatched
    assert report.compared == {"adler32": len(CONTENT)}


def test_what_is_damaged_on_this_host_is_moved_again(tmp_path: Path) -> None:
    """Between local files nothing can come damaged, but the disk may."""
    with between("local", tmp_path) as way:
        content = random_bytes(SLOW_BYTES)
        (way.source / "file").write_bytes(content)
        damaged = threading.Event()

        def damage(progress: mpx.Progress) -> None:
            for partial in way.destination.glob(".file*.part"):
                if progress.bytes_done and not damaged.is_set():
                    damaged.set()
                    with partial.open("r+b") as stored:
                        stored.write(bytes(1000))

        report = way.copy("file", replace(SLOW, checksum="adler32"), on_progress=damage)
        assert damaged.is_set()
        assert (way.destination / "file").read_bytes() == content
        assert not report.mismatched


# --- a scripted server -----------------------------------------------------------------------------

CONTENT = bytes(range(251)) * 2000  # no two blocks alike


class Scripted:
    """A copy to or from a server whose first transfer of data goes wrong in one way."""

    def __init__(self, carrier: str, folder: Path, *, silent: bool = False, damaged: bool = False) -> None:
        self.stalled = threading.Event()
        self._is_up = carrier.endswith("up")
        self._near = folder / "near"
        self._damaged = damaged
        self._is_first = threading.Semaphore()
        if self._is_up:
            self._near.write_bytes(CONTENT)
        bend = self._stall if silent else self._damage
        verbs = ("STOR", "ESTO") if self._is_up else ("RETR", "ERET")
        self.server = StoringServer(
            dict.fromkeys(verbs, bend),
            files={"/d/else": b""} if self._is_up else {"/d/file": CONTENT},
            checksums=True,
            mode_e="MODE E" in carrier,
        )

    def copy(self, options: mpx.CopyOptions, **more: object) -> mpx.Report:
        ends = [str(self._near), f"{self.server.url}/d/file"]
        return mpx.copy(*(ends if self._is_up else reversed(ends)), options, **more)

    def arrived(self) -> bytes:
        return bytes(self.server.files["/d/file"]) if self._is_up else self._near.read_bytes()

    def _stall(self, dialogue: Dialogue, argument: str) -> str | None:
        if not self._is_first.acquire(blocking=False):
            return dialogue.answer(dialogue.verb, argument)
        dialogue.say("150 go")
        with dialogue.open_data():
            self.stalled.set()
            while dialogue.control.recv(4096):  # until the client gives up
                pass
        return None

    def _damage(self, dialogue: Dialogue, argument: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        if not self._is_first.acquire(blocking=False):
            return dialogue.answer(dialogue.verb, argument)
        if self._is_up:
            reply = dialogue.answer(dialogue.verb, argument)
            (stored,) = [content for content in self.server.files.values() if content]
            assert isinstance(stored, bytearray)
            stored[1000] ^= 0xFF
            return reply
        damaged = bytearray(CONTENT)
        damaged[1000] ^= 0xFF
        dialogue.content = lambda _: damaged  # of this session, and this transfer
        try:
            return dialogue.answer(dialogue.verb, argument)
        finally:
            del dialogue.content


@pytest.fixture(params=IN_THE_CLEAR)
def scripted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Scripted]]:
    with contextlib.ExitStack() as stack:

        def make(**how: bool) -> Scripted:
            made = Scripted(request.param, tmp_path, **how)
            stack.enter_context(made.server)
            return made

        yield make
