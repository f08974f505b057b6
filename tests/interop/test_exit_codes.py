"""Every exit code, met as a user meets it: one clear line on standard error, whatever went wrong."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_command import command, copied, mpx, refused
from sites import Site, make

pytestmark = pytest.mark.peers
ROOT = os.geteuid() == 0


@pytest.fixture
def file(here: Path) -> Path:
    return make(here / "file", 1000)


# --- 0 and 1 ---------------------------------------------------------------------------------------


def test_0_says_nothing_on_stderr(far: Site, file: Path) -> None:
    ended = mpx("copy", file, far.url)
    copied(ended)
    assert ended.out.startswith("copied 1 of 1 files, 1000 B in ")
    ended = mpx("copy", "-q", file, far.url_of("again"))
    copied(ended)
    assert ended.out == ""


def test_1_when_nobody_takes_what_is_printed(file: Path, here: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("copy", file, here / "x"), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"No space left" in done.stderr
    assert (here / "x").read_bytes() == file.read_bytes()


def test_a_closed_pipe_is_no_drama(here: Path) -> None:
    for i in range(3000):
        make(here / f"a file with quite a long name, number {i}", 0)
    with subprocess.Popen(command("list", here), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# --- 2: the request --------------------------------------------------------------------------------

REQUESTS = {
    "nothing": ([], "nothing to copy"),
    "one name": (["a"], "missing"),
    "unknown option": (["--fast", "a", "b"], "--fast"),
    "unknown scheme": (["a", "s3://bucket/x"], "s3://"),
    "gsiftp": (["a", "gsiftp://host/x"], "ftp://"),
    "password in a URL": (["a", "ftp://me:hush@host/x"], "netrc"),
    "password in another URL": (["a", "sftp://me:hush@host/x"], "netrc"),
    "password and a bad port": (["a", "ftp://me:hush@host:port/x"], "netrc"),
    "password with an @": (["a", "ftp://me:hu@sh@host/x"], "netrc"),
    "password and gsiftp": (["a", "gsiftp://me:hush@host/x"], "netrc"),
    "bad port": (["a", "ftp://host:port/x"], "port"),
    "port out of range": (["a", "ftp://host:99999/x"], "ort"),
    "no host": (["a", "ftp:///x"], "host"),
    "a host with a question mark": (["a", "ftp://host?x/y"], "host"),
    "file URL of another host": (["file://other/x", "b"], "this host"),
    "remote to remote": (["ftp://a/x", "ftp://b/y"], "from one server to another"),
    "two servers": (["ftp://a/x", "ftp://b/y", "c"], "one endpoint"),
    "empty name": (["", "b"], "empty"),
    "rate without unit": (["--rate", "800", "a", "b"], "800Mbit/s"),
    "rate of nothing": (["--rate", "0Mbit/s", "a", "b"], "rate"),
    "duration without unit": (["--timeout", "30", "a", "b"], "30s"),
    "duration of nothing": (["--timeout", "0s", "a", "b"], "--timeout"),
    "unknown unit": (["--connect-timeout", "3 weeks", "a", "b"], "weeks"),
    "size of nothing": (["--block-size", "0", "a", "b"], "--block-size"),
    "size in furlongs": (["--block-size", "4furlong", "a", "b"], "4MiB"),
    "no streams": (["--streams", "0", "a", "b"], "--streams"),
    "streams in words": (["--streams", "four", "a", "b"], "auto"),
    "negative streams": (["--streams", "-4", "a", "b"], "-4"),
    "more than the most": (["--streams", "9", "--max-streams", "8", "a", "b"], "--max-streams"),
    "no sessions": (["--max-sessions", "0", "a", "b"], "--max-sessions"),
    "no files": (["--files", "0", "a", "b"], "--files"),
    "negative retries": (["--retries", "-1", "a", "b"], "--retries"),
    "unknown checksum": (["--checksum", "crc32", "a", "b"], "adler32"),
    "unknown tuner": (["--tuner", "magic", "a", "b"], "paper"),
    "unknown links": (["--links", "hard", "a", "b"], "follow"),
    "unknown overwrite": (["--overwrite", "maybe", "a", "b"], "different"),
    "both families": (["-4", "-6", "a", "b"], "-6"),
    "growth without the paper's tuner": (["--growth", "3", "a", "b"], "--tuner paper"),
    "no growth": (["--tuner", "paper", "--growth", "1", "a", "b"], "--growth"),
    "a tuner for a fixed number": (["--tuner", "paper", "--streams", "4", "a", "b"], "--tuner"),
    "ports upside down": (["--port-range", "9-5", "a", "ftp://127.0.0.1:1/x"], "40000-41000"),
    "ports in words": (["--source-ports", "some", "a", "ftp://127.0.0.1:1/x"], "40000-41000"),
    "a report nowhere": (["--report", "no/such/folder/r.json", "a", "b"], "report"),
    "a report onto a folder": (["--report", ".", "a", "b"], "folder"),
    "streams within this host": (["--streams", "4", "a", "b"], "--streams"),
    "congestion within this host": (["--congestion", "reno", "a", "b"], "--congestion"),
    "source ports within this host": (["--source-ports", "5-6", "a", "b"], "--source-ports"),
    "a folder without -r": (["folder", "b"], "-r"),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_2_the_request(here: Path, case: str) -> None:
    arguments, word = REQUESTS[case]
    make(here / "a", 10)
    (here / "folder").mkdir()
    ended = mpx("copy", *arguments, folder=here)
    refused(ended, 2, word)
    assert "hush" not in ended.err
    assert sorted(os.listdir(here)) == ["a", "folder"]


@pytest.mark.parametrize("words", [["copi"], ["list"], ["list", "a", "b"], ["unfinished", "x"]])
def test_2_other_commands(words: list[str]) -> None:
    refused(mpx(*words), 2, "--help")


def test_2_quiet_says_so_too(here: Path) -> None:
    refused(mpx("copy", "-q", "a", "gsiftp://host/x"), 2, "ftp://")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--congestion", "reno"], "server sends"),
        (["--block-size", "1MiB"], "server sends"),
        (["--data-address", "192.0.2.7"], "192.0.2.7"),
    ],
)
def test_2_what_a_download_cannot_honour(stock: Site, here: Path, options: list[str], word: str) -> None:
    stock.write("a", b"x")
    refused(mpx("copy", *options, stock.url_of("a"), here / "b"), 2, word)
    assert os.listdir(here) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--congestion", "warp"], "modprobe"),
        (["--data-address", "192.0.2.7"], "192.0.2.7"),
        (["--files", "9"], "--max-sessions"),
    ],
)
def test_2_what_an_upload_cannot_honour(stock: Site, file: Path, options: list[str], word: str) -> None:
    refused(mpx("copy", *options, file, stock.url), 2, word)
    assert os.listdir(stock.folder) == []


def test_2_a_checksum_that_the_server_lacks(vsftpd, file: Path, here: Path) -> None:
    url, served = vsftpd
    for algorithm in ("md5", "adler32"):
        refused(mpx("copy", "--checksum", algorithm, file, f"{url}/x"), 2, "CKSM")
    assert os.listdir(served) == []
    copied(mpx("copy", "--report", here / "report", file, f"{url}/x"))
    report = json.loads((here / "report").read_text())
    assert report["checksum"] == {"algorithm": "none", "result": "unverified"}
    assert any("unverified" in note for note in report["notes"])


# --- 3 and 4: source and destination ----------------------------------------------------------------


def test_3_not_there(far: Site, here: Path, file: Path) -> None:
    refused(mpx("copy", here / "missing", far.url), 3, "missing does not exist")
    refused(mpx("copy", here / "file/below", far.url), 3, "below does not exist")
    refused(mpx("copy", far.url_of("missing"), here / "x"), 3, "missing does not exist")
    refused(mpx("copy", file, here / "missing too", far.url_of("dst/")), 3, "missing too")
    refused(mpx("list", far.url_of("missing")), 3, "missing does not exist")
    assert os.listdir(far.folder) == []
    assert os.listdir(here) == ["file"]


def test_3_not_readable(stock: Site, here: Path, file: Path) -> None:
    file.chmod(0)
    make(here / "closed/file").parent.chmod(0)
    for name in ("file", "closed/file"):
        refused(mpx("copy", here / name, stock.url_of("x"), ordinary=True), 3, "Permission denied")
        refused(mpx("copy", here / name, here / "x", ordinary=True), 3, "Permission denied")
    refused(mpx("copy", "-r", here / "closed", here / "y", ordinary=True), 3, "Permission denied")
    assert os.listdir(stock.folder) == []
    stock.write("secret", b"x").chmod(0)
    refused(mpx("copy", stock.url_of("secret"), here / "x"), 3, "secret")
    assert sorted(os.listdir(here)) == ["closed", "file", "y"]


def test_4_not_writable(stock: Site, here: Path, file: Path) -> None:
    (here / "closed").mkdir()
    (here / "closed").chmod(0o555)
    for dst in ("closed/x", "closed/", "closed/new/x", "file/x", "file/"):
        refused(mpx("copy", file, f"{here}/{dst}", ordinary=True), 4, dst.split("/")[0])
    (stock.folder / "closed").mkdir()
    (stock.folder / "closed").chmod(0o555)
    stock.write("a file")
    for dst in ("closed/x", "closed/", "closed/new/x", "a file/x", "a file/"):
        refused(mpx("copy", file, stock.url_of(dst)), 4, dst.split("/")[0])
    assert os.listdir(stock.folder / "closed") == []


def test_4_a_server_that_takes_nothing(here: Path, file: Path) -> None:
    from mpx.serve import Server

    with Server(here) as server:
        refused(mpx("copy", file, f"{server.url}x"), 4, "read-only")


def test_4_a_folder_in_the_way(far: Site, file: Path, here: Path) -> None:
    far.write("dst/file/x")
    refused(mpx("copy", file, far.url_of("dst")), 4, "folder of that name")
    far.write("f")
    make(here / "down/f/x")
    refused(mpx("copy", far.url_of("f"), here / "down"), 4, "folder of that name")


@contextmanager
def running(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command on its way."""
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def partials(folder: Path) -> list[Path]:
    return list(folder.glob(".*.part"))


def test_4_locked_by_another_copy(stock: Site, here: Path, eventually: Callable[..., None]) -> None:
    make(here / "large", 3_000_000)
    with running("copy", "--rate", "1Mbit/s", here / "large", stock.url_of("x")) as first:
        eventually(lambda: partials(stock.folder))
        refused(mpx("copy", here / "large", stock.url_of("x")), 4, "another copy", str(first.pid))
        copied(mpx("copy", here / "large", stock.url_of("y")))
        ended = mpx("unfinished")  # one that runs is not unfinished
        copied(ended)
        assert ended.out == ""


# --- 5: who we are ---------------------------------------------------------------------------------

DES_OF_SECRET = "abNANd1rDfiNc"  # crypt("secret", "ab"), which is all that this server reads


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[StockServer]:
    """A stock server where the user nobody has the password `secret`."""
    if not ROOT:
        pytest.skip("a server that changes to a user needs root")
    root = tmp_path / "guarded"
    root.mkdir()
    accounts = tmp_path / "accounts"
    accounts.write_text(f"nobody:{DES_OF_SECRET}:65534:65534:nobody:{root}:/bin/sh\n")
    with StockServer(root, arguments=("-password-file", str(accounts))) as server:
        yield server


def as_nobody(server: StockServer) -> str:
    return server.url.replace("ftp://", "ftp://nobody@") + "x"


def test_5_passwords(guarded: StockServer, file: Path, private_home: Path) -> None:
    url = as_nobody(guarded)
    refused(mpx("copy", file, url), 5, "nobody", "netrc")
    refused(mpx("copy", "-q", file, url, environment={"MPX_PASSWORD": "guess"}), 5, "MPX_PASSWORD")
    netrc = private_home / ".netrc"
    netrc.write_text("machine 127.0.0.1 login nobody password guess\n")
    netrc.chmod(0o600)
    refused(mpx("copy", file, url), 5)
    assert os.listdir(guarded.root) == []
    netrc.write_text("machine 127.0.0.1 login nobody password secret\n")
    copied(mpx("copy", file, url))
    copied(mpx("copy", file, guarded.url + "y"))  # the user comes from there, too
    assert sorted(path.owner() for path in guarded.root.iterdir()) == ["nobody", "nobody"]
    netrc.write_text("machine 127.0.0.1 login somebody password guess\n")
    copied(mpx("copy", "--overwrite", "always", file, url, environment={"MPX_PASSWORD": "secret"}))
    netrc.write_text("machine 127.0.0.1 password secret\n")
    copied(mpx("copy", "--overwrite", "always", file, url))
    netrc.write_text("machine 127.0.0.1 lodging nobody\n")
    refused(mpx("copy", file, guarded.url + "z"), 2, "netrc")


def test_a_password_is_never_sent_to_whom_it_was_not_meant_for(stock: Site, file: Path) -> None:
    copied(mpx("copy", file, stock.url, environment={"MPX_PASSWORD": "hush"}))
    assert b"hush" not in Path(f"{stock.folder}.server.log").read_bytes()


def test_5_a_user_that_is_not_served(here: Path, file: Path) -> None:
    from mpx.serve import Server

    with Server(here, writable=True) as server:
        refused(mpx("copy", file, server.url.replace("ftp://", "ftp://me@") + "x"), 5, "'me'")


# --- 6 and 7: the network --------------------------------------------------------------------------


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port where nobody listens, and nobody else will."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections, and then nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that answers no connect at all, as behind a firewall that drops: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        queued = []
        try:
            for _ in range(4):
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(listener.getsockname())
                queued.append(one)
            yield listener.getsockname()[1]
        finally:
            for one in queued:
                one.close()


def test_6_refused(closed_port: int, file: Path, here: Path) -> None:
    for words in (
        [file, f"ftp://127.0.0.1:{closed_port}/x"],
        [f"ftp://127.0.0.1:{closed_port}/x", here / "y"],
    ):
        refused(mpx("copy", *words), 6, "127.0.0.1", "refused")
        refused(mpx("copy", "-q", *words), 6)
    refused(mpx("list", f"ftp://127.0.0.1:{closed_port}/"), 6, "refused")


def test_6_no_answer(deaf_port: int, file: Path) -> None:
    refused(mpx("copy", "--connect-timeout", "300ms", file, f"ftp://127.0.0.1:{deaf_port}/x"), 6, "no answer")


def test_6_no_such_host(file: Path) -> None:
    refused(mpx("copy", file, "ftp://no-such-host.invalid/x"), 6, "no-such-host.invalid")
    refused(mpx("copy", file, f"ftp://{'x' * 70}.invalid/x"), 6)


def test_6_no_address_of_that_family(stock: Site, file: Path) -> None:
    refused(mpx("copy", "-6", file, stock.url), 6, "127.0.0.1")


@contextmanager
def saying(*lines: bytes) -> Iterator[int]:
    """A port where every client is told these lines, and then hung up on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.sendall(b"".join(lines))
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(4096):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "FTP"),
        (b"", "closed"),
        (b"421 Too many users.\r\n", "Too many users"),
        (b"\xff\xfe\x00\x1b[2J\r\n", "FTP"),
    ],
)
def test_6_something_else_answers(file: Path, line: bytes, word: str) -> None:
    with saying(line) as port:
        ended = mpx("copy", "--timeout", "5s", file, f"ftp://127.0.0.1:{port}/x")
    refused(ended, 6, word)
    assert "\x1b" not in ended.err


def test_7_no_greeting(silent_port: int, file: Path) -> None:
    for option in ((), ("-q",)):
        ended = mpx("copy", *option, "--timeout", "300ms", file, f"ftp://127.0.0.1:{silent_port}/x")
        refused(ended, 7, "greeting")


def test_7_no_answer_to_a_command(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clients: list[socket.socket] = []

        def greet() -> None:
            client, _ = listener.accept()
            clients.append(client)
            client.sendall(b"220 Hello.\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        port = listener.getsockname()[1]
        refused(mpx("copy", "--timeout", "300ms", file, f"ftp://127.0.0.1:{port}/x"), 7, "did not answer")
        thread.join()
        clients[0].close()


# --- 8: what arrived -------------------------------------------------------------------------------


@contextmanager
def lying(server: StockServer) -> Iterator[str]:
    """The URL of a server behind a relay that spoils every checksum it reports."""

    def relay(source: socket.socket, target: socket.socket, *, spoil: bool) -> None:
        try:
            while data := source.recv(65536):
                if spoil:  # 213 answers CKSM here: eight hex digits and nothing else
                    data = b"".join(
                        b"213 0badbad0\r\n" if line.startswith(b"213 ") and len(line) == 14 else line
                        for line in data.splitlines(keepends=True)
                    )
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                far = socket.create_connection(("127.0.0.1", server.port))
                for source, target, spoil in ((client, far, False), (far, client, True)):
                    threading.Thread(
                        target=relay, args=(source, target), kwargs={"spoil": spoil}, daemon=True
                    ).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"ftp://127.0.0.1:{listener.getsockname()[1]}{server.root}/"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_8_a_checksum_that_differs(tmp_path: Path, here: Path, file: Path) -> None:
    root = tmp_path / "served"
    root.mkdir()
    with StockServer(root) as server, lying(server) as url:
        refused(mpx("copy", "--report", here / "report", file, url), 8, "adler32")
        report = json.loads((here / "report").read_text())
        assert report["checksum"] == {"algorithm": "adler32", "result": "mismatch"}
        assert os.listdir(root) == []  # nothing under the final name, nothing worth keeping
        (root / "there").write_bytes(b"x" * 1000)
        refused(mpx("copy", url + "there", here / "down"), 8, "adler32")
        assert sorted(os.listdir(here)) == ["file", "report"]
        copied(mpx("copy", "--checksum", "none", file, url))


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "remove"])
def test_8_a_source_that_changes(
    stock: Site, here: Path, eventually: Callable[..., None], change: str
) -> None:
    source = make(here / "source", 2_000_000)
    with running("copy", "--rate", "8Mbit/s", source, stock.url_of("x")) as process:
        eventually(lambda: partials(stock.folder))
        if change == "grow":
            with source.open("ab") as out:
                out.write(b"more")
        elif change == "shrink":
            os.truncate(source, 1_000_000)
        elif change == "touch":
            os.utime(source, (1, 1))
        else:
            source.unlink()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 8, err
    assert err.startswith(b"mpx: ")
    assert err.count(b"\n") == 1
    assert b"source" in err
    assert not (stock.folder / "x").exists()


# --- 10 --------------------------------------------------------------------------------------------


def test_10_some_of_several(far: Site, here: Path, file: Path) -> None:
    make(here / "other", 10)
    far.write("dst/file/x")
    for option in ((), ("-q",)):
        refused(mpx("copy", *option, here / "other", file, far.url_of("dst")), 10, "1 of 2 files", "file")
    assert (far.folder / "dst/other").exists()


# --- 130 and 143 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["up", "down", "here"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_130_and_143_and_then_the_rest(
    stock: Site,
    here: Path,
    eventually: Callable[..., None],
    direction: str,
    number: signal.Signals,
    code: int,
) -> None:
    source, target, folder = str(make(here / "a", 6_000_000)), stock.url_of("x"), stock.folder
    if direction == "down":
        shutil.copy(source, stock.folder / "a")
        stock.hand_over()
        source, target, folder = stock.url_of("a"), str(here / "down/x"), here / "down"
    elif direction == "here":
        target, folder = str(here / "down/x"), here / "down"
    report = here / "report"
    with running("copy", "-q", "--rate", "8Mbit/s", "--report", report, source, target) as process:
        eventually(lambda: any(path.stat().st_blocks for path in partials(folder)))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == b""
    assert err.startswith(b"mpx: interrupted")
    assert err.count(b"\n") == 1
    told = json.loads(report.read_text())
    assert (told["status"], told["exit_code"]) == ("interrupted", code)
    assert not (folder / "x").exists()
    ended = mpx("unfinished")
    copied(ended)
    assert source in ended.out
    assert "of 6000000 bytes in" in ended.out
    copied(mpx("copy", "--report", report, source, target))
    assert (folder / "x").read_bytes() == (here / "a").read_bytes()
    told = json.loads(report.read_text())
    assert told["files"]["resumed"] == 1
    assert told["bytes"]["resumed"] > 0
    assert mpx("unfinished").out == ""
    assert partials(folder) == []


def test_130_while_connecting(deaf_port: int, file: Path, eventually: Callable[..., None]) -> None:
    with running("copy", file, f"ftp://127.0.0.1:{deaf_port}/x") as process:
        eventually(lambda: any("socket:" in link for link in links_of(process.pid)))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.count(b"\n")) == (130, 1), err
    assert err.startswith(b"mpx: interrupted")


def test_143_while_waiting_for_the_greeting(
    silent_port: int, file: Path, eventually: Callable[..., None]
) -> None:
    with running("copy", file, f"ftp://127.0.0.1:{silent_port}/x") as process:
        eventually(lambda: any("socket:" in link for link in links_of(process.pid)))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.count(b"\n")) == (143, 1), err


def links_of(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return found
