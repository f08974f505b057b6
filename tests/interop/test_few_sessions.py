"""Servers that admit few sessions: with one or two of them listing, moving and verifying take turns."""

import contextlib
import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import pytest
from interop.foreign_servers import ProFtpd, PureFtpd, PyFtpdLib
from interop.scripted_server import Script
from interop.stock_server import StockServer, end_forgotten_sessions
from interop.storing_server import StoringDialogue, StoringServer
from interop.vsftpd import serving
from mpx_command import mpx as run
from random_bytes import random_bytes

import mpx
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.endpoint import Part
from mpx.engine.session_worker import SessionWorker
from mpx.errors import Interrupted, SessionEnded
from mpx.location import parse_location
from mpx.transfer.congestion_plan import SERVER_CHOOSES
from mpx.transfer.registry import open_endpoint, session_options

pytestmark = pytest.mark.peers

FILES = 24
LARGE = random_bytes(30_000_001)
CONTENT = random_bytes(200_003)
TREE = {f"folder{i % 3}/f{i}": CONTENT[i:] for i in range(FILES)} | {"large": LARGE, "empty": b""}

Serving = Callable[[Path, int], contextlib.AbstractContextManager[tuple[str, Path]]]


@contextlib.contextmanager
def _stock(folder: Path, sessions: int) -> Iterator[tuple[str, Path]]:
    root = folder / "served"
    root.mkdir()
    with StockServer(root, arguments=("-connections-max", str(sessions))) as server:
        yield server.url.rstrip("/"), root


@contextlib.contextmanager
def _vsftpd(folder: Path, sessions: int) -> Iterator[tuple[str, Path]]:
    with serving(folder, max_per_ip=sessions) as served:
        yield served


@contextlib.contextmanager
def _proftpd(folder: Path, sessions: int) -> Iterator[tuple[str, Path]]:
    root = folder / "served"
    root.mkdir()
    with ProFtpd(root, f"MaxClientsPerHost {sessions}") as server:
        yield server.url.rstrip("/"), root


@contextlib.contextmanager
def _pureftpd(folder: Path, sessions: int) -> Iterator[tuple[str, Path]]:
    root = folder / "served"
    root.mkdir()
    with PureFtpd(root, ("-C", str(sessions))) as server:
        yield server.url.rstrip("/"), root


@contextlib.contextmanager
def _pyftpdlib(folder: Path, sessions: int) -> Iterator[tuple[str, Path]]:
    root = folder / "served"
    root.mkdir()
    with PyFtpdLib(root, server={"max_cons_per_ip": sessions}) as server:
        yield server.url.rstrip("/"), root


@pytest.fixture(params=[_stock, _vsftpd, _proftpd, _pureftpd, _pyftpdlib], ids=lambda each: each.__name__[1:])
def kind(request: pytest.FixtureRequest, with_password: None) -> Serving:
    return request.param


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))


def make(top: Path) -> None:
    for name, content in TREE.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)


def found(top: Path) -> dict[str, bytes]:
    return {str(each.relative_to(top)): each.read_bytes() for each in top.rglob("*") if each.is_file()}


def says_how_many(report: mpx.Report, sessions: int) -> None:
    """One line does, and says nothing else of it; a server may count sessions for a while that have ended."""
    lines = [note for note in report.notes if "session" in note and not note.startswith("using MODE S")]
    assert len(lines) == 1, report.notes
    assert re.search(rf"refused a further (session|connection) while [1-{sessions}] session", lines[0]), lines


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_tree_up_and_down(kind: Serving, tmp_path: Path, sessions: int) -> None:
    near, back = tmp_path / "near", tmp_path / "back"
    make(near)
    with kind(tmp_path, sessions) as (url, root):
        up = mpx.copy(str(near), f"{url}/far", mpx.CopyOptions(recursive=True))
        assert found(root / "far") == TREE
        down = mpx.copy(f"{url}/far", str(back), mpx.CopyOptions(recursive=True))
        assert found(back) == TREE
        again = mpx.copy(f"{url}/far", str(back), mpx.CopyOptions(recursive=True))
    assert (up.files.moved, down.files.moved) == (len(TREE), len(TREE))
    says_how_many(up, sessions)
    says_how_many(down, sessions)
    assert again.files.skipped == len(TREE)


@pytest.mark.parametrize("sessions", [3, 5])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_server_that_admits_few(tmp_path: Path, direction: str, sessions: int) -> None:
    root, near = tmp_path / "served", tmp_path / "near"
    root.mkdir()
    far = root / "far"
    given, target = (near, far) if direction == "up" else (far, near)
    given.mkdir()
    content = random_bytes(2_000_003)
    for i in range(FILES):
        (given / f"f{i}").write_bytes(content[i:])
    with StockServer(root, arguments=("-connections-max", str(sessions))) as server:
        url = f"{server.url}far"
        pair = (str(near), url) if direction == "up" else (url, str(near))
        report = mpx.copy(*pair, mpx.CopyOptions(recursive=True, rate_bps=300e6, retries=2))
    assert report.files.moved == FILES
    notes = set(report.notes) - {SERVER_CHOOSES}
    assert all("refused a further session" in note for note in notes), notes
    for i in range(FILES):
        assert (target / f"f{i}").read_bytes() == content[i:]


def test_streams_of_a_fixed_number_are_sessions_too(tmp_path: Path) -> None:
    """So that one that has lost a packet does not delay the others."""
    root = tmp_path / "served"
    root.mkdir()
    (root / "far").write_bytes(LARGE)
    with StockServer(root, arguments=("-connections-max", "4")) as server:
        options = mpx.CopyOptions(streams=4, rate_bps=200e6)
        report = mpx.copy(f"{server.url}far", str(tmp_path / "near"), options)
    assert (tmp_path / "near").read_bytes() == LARGE
    says_how_many(report, 4)


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_copy_that_was_stopped_goes_on(
    kind: Serving, tmp_path: Path, sessions: int, eventually: Callable[..., None]
) -> None:
    back = tmp_path / "back"
    with kind(tmp_path, sessions) as (url, root):
        (root / "large").write_bytes(LARGE)
        stop = threading.Event()

        def half(progress: mpx.Progress) -> None:
            if progress.bytes_done > len(LARGE) // 3:
                stop.set()

        slow = mpx.CopyOptions(rate_bps=150e6)
        with pytest.raises(Interrupted):
            mpx.copy(f"{url}/large", str(back), slow, on_progress=half, cancel=stop)
        reports: list[mpx.Report] = []

        def goes_on() -> bool:
            try:
                reports.append(mpx.copy(f"{url}/large", str(back)))
            except SessionEnded:  # a busy machine still counts the session that was cut
                end_forgotten_sessions(root)
            return bool(reports)

        eventually(goes_on)
    assert back.read_bytes() == LARGE
    assert reports[0].files.moved + reports[0].files.resumed == 1


class LimitedServer(StoringServer):
    """Admits `limit` sessions at a time, and turns others away in one of several ways.

    "421": it says so; "silence": it closes the connection; "refused": it does not listen meanwhile.
    """

    def __init__(self, how: str, limit: int, script: Script | None = None) -> None:
        super().__init__(script)
        self.how = how
        self.limit = limit
        self.turned_away = 0
        self._count = threading.Lock()
        self._live = 0
        self._ended = threading.Event()
        self._port = self._listener.getsockname()[1]

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                control, _ = self._listener.accept()
            except OSError:
                return
            with self._count:
                is_full = self._live >= self.limit
                self._live += not is_full
                self.turned_away += is_full
            if is_full:
                if self.how == "421":
                    control.sendall(b"421 Too many connections from your address.\r\n")
                control.close()
                continue
            self._open.append(control)
            threading.Thread(target=self._serve, args=(control,), daemon=True).start()
            with self._count:  # which a session that ends now takes as well
                if self.how == "refused" and self._live >= self.limit:
                    self._listener.close()
                    return

    def _serve(self, control: socket.socket) -> None:
        self.dialogue(self, control).run()
        with self._count:
            self._live -= 1
            if self.how == "refused" and self._listener.fileno() < 0 and not self._ended.is_set():
                self._listener = socket.create_server((self.host, self._port))
                threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._count:
            self._ended.set()
        super().__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"ftp://{self.host}:{self._port}"


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("how", ["421", "silence", "refused"])
def test_however_the_next_one_is_turned_away(tmp_path: Path, how: str, sessions: int) -> None:
    near = tmp_path / "near"
    make(near)
    with LimitedServer(how, sessions) as server:
        up = mpx.copy(str(near), f"{server.url}/far", mpx.CopyOptions(recursive=True))
        turned_away = server.turned_away
    assert {name.removeprefix("/far/"): content for name, content in server.files.items()} == TREE
    says_how_many(up, sessions)
    if how == "421":  # it is remembered: one for each who asked at about the same time
        assert turned_away <= 4  # with who probes beside a copy that lasts, as on a busy machine


def test_links_to_nowhere_are_found_over_the_only_session(tmp_path: Path) -> None:
    """What a Globus server counts and does not list; nobody else has found out yet how many it admits."""
    with _stock(tmp_path, 1) as (url, root):
        (root / "file").write_bytes(b"x")
        (root / "nowhere").symlink_to("/missing")
        report = mpx.copy(url, str(tmp_path / "near"), mpx.CopyOptions(recursive=True, dry_run=True))
    assert report.status == "done"
    assert any("nowhere" in left["name"] for left in report.skipped)


def test_checksums_are_asked_for_over_the_session_that_one_has(tmp_path: Path) -> None:
    """Not over one that was given back, and is used by others."""
    (tmp_path / "file").write_bytes(b"x" * 1000)
    with StockServer(tmp_path) as server:
        location = parse_location(f"{server.url.rstrip('/')}/file").absolute()
        pool = SessionPool()
        options = session_options(mpx.CopyOptions(), lambda: False, pool=pool)
        endpoint = open_endpoint(location, mpx.CopyOptions(), lambda: False, writing=False, pool=pool)
        part = Part(location.name, 0, 1000)

        def ask() -> list[str | Exception]:
            return endpoint.checksums("sha256", [part], lambda: False)

        told = ask()
        endpoint.let_go()
        with pool.open(location, options) as other:
            assert ask() == told == [hashlib.sha256(b"x" * 1000).hexdigest()]
            endpoint.let_go()
            other.close()
            assert ask() == told
        endpoint.close()
        pool.close()


def test_fewer_sessions_while_it_runs(tmp_path: Path) -> None:
    """Others take the places of this copy at the server: it goes on with what is left."""
    near = tmp_path / "near"
    make(near)
    stored = 0

    def storing(dialogue: StoringDialogue, argument: str) -> str | None:
        nonlocal stored
        stored += 1
        if stored in (2, 9):
            server.limit -= 1
            dialogue.cut()  # and whoever comes back for this place finds it taken
            return None
        return dialogue._stor(argument)

    with LimitedServer("421", 3, {"STOR": storing}) as server:
        report = mpx.copy(str(near), f"{server.url}/far", mpx.CopyOptions(recursive=True))
    assert {name.removeprefix("/far/"): content for name, content in server.files.items()} == TREE
    assert any("a further session while 1 session was open" in note for note in report.notes)


def test_more_sessions_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others leave their places at the server: those who waited for a turn have sessions of their own."""
    monkeypatch.setattr("mpx.endpoints.ftp.session_pool.FIRST_STANDS_S", 0.05)
    near = tmp_path / "near"
    make(near)
    live: list[int] = []

    def storing(dialogue: StoringDialogue, argument: str) -> str | None:
        live.append(server._live)
        if len(live) == 5:
            server.limit = 8
        return dialogue._stor(argument)

    with LimitedServer("421", 1, {"STOR": storing}) as server:
        mpx.copy(str(near), f"{server.url}/far", mpx.CopyOptions(recursive=True))
    assert {name.removeprefix("/far/"): content for name, content in server.files.items()} == TREE
    assert set(live[:5]) == {1}
    assert max(live) > 1


def test_who_found_no_session_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others leave their places at the server: more files are on their way at once than before."""
    monkeypatch.setattr("mpx.endpoints.ftp.session_pool.FIRST_STANDS_S", 0.05)
    monkeypatch.setattr("mpx.engine.session_worker.FIRST_ASIDE_S", 0.05)
    near = tmp_path / "near"
    make(near)
    guard, both = threading.Lock(), threading.Event()
    stored, at_once = 0, 0
    all_aside = threading.Semaphore(0)
    stand_aside = SessionWorker._stand_aside

    def told(worker: SessionWorker, error: mpx.MpxError) -> None:
        all_aside.release()
        stand_aside(worker, error)

    monkeypatch.setattr(SessionWorker, "_stand_aside", told)

    def storing(dialogue: StoringDialogue, argument: str) -> str | None:
        nonlocal stored, at_once
        with guard:
            stored, at_once = stored + 1, at_once + 1
            is_first = stored == 4
            if stored == 3:
                for _ in range(mpx.CopyOptions().max_sessions - 1):
                    assert all_aside.acquire(timeout=30)
                server.limit = 8
            elif stored > 3 and at_once > 1:
                both.set()
        try:
            if is_first:
                both.wait(30)
            return dialogue._stor(argument)
        finally:
            with guard:
                at_once -= 1

    with LimitedServer("421", 3, {"STOR": storing}) as server:
        mpx.copy(str(near), f"{server.url}/far", mpx.CopyOptions(recursive=True))
    assert {name.removeprefix("/far/"): content for name, content in server.files.items()} == TREE
    assert both.is_set()


def test_list_and_probe_need_one_session(
    kind: Serving, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with kind(tmp_path, 1) as (url, root):
        (root / "a").write_bytes(CONTENT)
        listed = run("list", url)
        assert listed.out.split() == ["a"], listed.err
        # A busy server may count the session that has just ended for a while.
        eventually(lambda: run("probe", "--window", "1s", url).code == 0)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_more_files_than_wait_at_once(tmp_path: Path, direction: str, with_password: None) -> None:
    """The listing has to let go of the one session in its middle, and goes on where it was."""
    names = {f"f{i}": str(i).encode() for i in range(1300)}
    near = tmp_path / "near"
    with _vsftpd(tmp_path, 1) as (url, root):
        given = near if direction == "up" else root / "far"
        given.mkdir()
        for name, content in names.items():
            (given / name).write_bytes(content)
        pair = (str(near), f"{url}/far") if direction == "up" else (f"{url}/far", str(near))
        report = mpx.copy(*pair, mpx.CopyOptions(recursive=True))
        assert found(root / "far" if direction == "up" else near) == names
    assert report.files.moved == len(names)
