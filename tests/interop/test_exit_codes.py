"""Exit codes of what cannot be done, met as a user meets them: one clear line on standard error."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_command import command, copied, mpx, refused, running
from sites import Site, make, partials

pytestmark = pytest.mark.peers
ROOT = os.geteuid() == 0


# --- 0 and 1 ---------------------------------------------------------------------------------------


def test_0_says_nothing_on_stderr(far: Site, file: Path) -> None:
    ended = mpx("copy", file, far.url)
    copied(ended)
    assert ended.out.startswith(f"copied 1 of 1 files to {far.url}, 1000 B in ")
    ended = mpx("copy", "-q", file, far.url_of("again"))
    copied(ended)
    assert ended.out == ""


def test_1_when_nobody_takes_a_list(here: Path) -> None:
    """A copy goes on then: tests/interop/test_output.py."""
    make(here / "file", 0)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("list", here), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"No space left" in done.stderr


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
    "unknown scheme": (["a", "gopher://host/x"], "gopher://"),
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
    "third party in other words": (["--third-party", "maybe", "ftp://a/x", "ftp://b/y"], "never"),
    "two servers": (["ftp://a/x", "ftp://b/y", "c"], "ftp://b:2811/y"),
    "a host that ssh could misread": (["a", "-oProxyCommand=x:y"], "such option"),
    "an option of ssh elsewhere": (["--data-ports", "1-2", "a", "b"], "--data-ports"),
    "one slash": (["a", "ftp:/host:21/x"], "write ftp://host:21/x for a server, or ./ftp:/host:21/x"),
    "no slash": (["FTP:host/x", "a"], "ftp://host/x"),
    "one slash and gsiftp": (["a", "gsiftp:/host/x"], "gsiftp://host/x"),
    "standard input": (["-", "b"], "/dev/stdin"),
    "standard output": (["a", "-"], "./-"),
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
    "IPv6 to an IPv4 address": (["-6", "a", "ftp://127.0.0.1:1/x"], "127.0.0.1 is an IPv4 address"),
    "IPv4 to an IPv6 address": (["-4", "a", "ftp://[::1]:1/x"], "::1 is an IPv6 address"),
    "growth without the paper's tuner": (["--growth", "3", "a", "b"], "--tuner paper"),
    "no growth": (["--tuner", "paper", "--growth", "1", "a", "b"], "--growth"),
    "a tuner for a fixed number": (["--tuner", "paper", "--streams", "4", "a", "b"], "--tuner"),
    "ports upside down": (["--port-range", "9-5", "a", "ftp://127.0.0.1:1/x"], "40000-41000"),
    "ports in words": (["--source-ports", "some", "a", "ftp://127.0.0.1:1/x"], "40000-41000"),
    "a report nowhere": (["--report", "no/such/folder/r.json", "a", "b"], "cannot write no/such"),
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


def test_0_a_colon_in_a_local_name(here: Path) -> None:
    make(here / "a", 10)
    copied(mpx("copy", "a", "./host:/x", folder=here))
    copied(mpx("copy", "./host:/x", "./12:30", folder=here))
    refused(mpx("copy", "12:30", "b", folder=here), 2, "./12:30", "ssh://12/~/30")
    copied(mpx("copy", "a", "./ftp:/y", folder=here))
    copied(mpx("copy", "a", "./-", folder=here))
    copied(mpx("copy", "./-", "b", folder=here))
    assert (here / "12:30").read_bytes() == (here / "host:/x").read_bytes() == (here / "a").read_bytes()


@pytest.mark.parametrize("words", [["copi"], ["list"], ["list", "a", "b"], ["unfinished", "x"]])
def test_2_other_commands(words: list[str]) -> None:
    refused(mpx(*words), 2, "--help")


def test_2_quiet_says_so_too(here: Path) -> None:
    refused(mpx("copy", "-q", "a", "gopher://host/x"), 2, "ftp://")


@pytest.mark.parametrize(
    ("options", "word"),
    [
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
        refused(mpx("copy", "--checksum", algorithm, file, f"{url}/x"), 2, "no such checksum")
    assert os.listdir(served) == []
    copied(mpx("copy", "--report", here / "report", file, f"{url}/x"))
    report = json.loads((here / "report").read_text())
    assert (report["checksum"]["algorithm"], report["checksum"]["result"]) == ("none", "unverified")
    assert any("unverified" in note for note in report["notes"])


# --- 3 and 4: source and destination ----------------------------------------------------------------


def test_3_not_there(far: Site, here: Path, file: Path) -> None:
    refused(mpx("copy", here / "missing", far.url), 3, "missing does not exist")
    refused(mpx("copy", here / "file/below", far.url), 3, "below does not exist")
    refused(mpx("copy", far.url_of("missing"), here / "x"), 3, f"{far.url_of('missing')} does not exist")
    far.write("there/x")
    refused(mpx("copy", far.url_of("there"), here / "x"), 2, f"{far.url_of('there')} is a folder")
    far.write("no-folder")
    refused(mpx("copy", file, far.url_of("no-folder/")), 4, f"{far.url_of('no-folder/')} is not a folder")
    refused(mpx("copy", file, here / "missing too", far.url_of("dst/")), 3, "missing too")
    refused(mpx("list", far.url_of("missing")), 3, "missing does not exist")
    assert sorted(os.listdir(far.folder)) == ["no-folder", "there"]
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
        refused(mpx("copy", file, stock.url_of(dst)), 4, dst.split("/")[0].removeprefix("a "))
    assert os.listdir(stock.folder / "closed") == []


def test_2_links_where_none_can_be_made(here: Path) -> None:
    from mpx.serve import Server

    make(here / "up/a", 10)
    (here / "up/link").symlink_to("a")
    (here / "served").mkdir()
    with Server(here / "served", writable=True) as server:
        ended = mpx("copy", "-r", "--links", "keep", here / "up", f"{server.url}x")
        refused(ended, 2, "--links keep", "follow or skip")
        assert os.listdir(here / "served") == []
        make(here / "served/b", 10)
        copied(mpx("copy", "-r", "--links", "keep", server.url, here / "down"))
    assert os.listdir(here / "down") == ["b"]


def test_4_a_server_that_takes_nothing(here: Path, file: Path) -> None:
    from mpx.serve import Server

    with Server(here) as server:
        ended = mpx("copy", file, f"{server.url}x")
        refused(ended, 4, "This server is read-only")
        assert "Globus" not in ended.err


def test_4_a_folder_in_the_way(far: Site, file: Path, here: Path) -> None:
    far.write("dst/file/x")
    refused(mpx("copy", file, far.url_of("dst")), 4, f"write {far.url_of('dst/file')}: there is a folder")
    far.write("f")
    make(here / "down/f/x")
    refused(mpx("copy", far.url_of("f"), here / "down"), 4, "folder of that name")


def test_4_locked_by_another_copy(stock: Site, here: Path, eventually: Callable[..., None]) -> None:
    make(here / "large", 3_000_000)
    with running("copy", "--rate", "1Mbit/s", here / "large", stock.url_of("x")) as first:
        eventually(lambda: partials(stock.folder))
        refused(mpx("copy", here / "large", stock.url_of("x")), 4, "another copy", str(first.pid))
        copied(mpx("copy", here / "large", stock.url_of("y")))
        ended = mpx("unfinished")  # one that runs is not unfinished
        assert (ended.code, ended.out) == (0, "")


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


# --- 10 --------------------------------------------------------------------------------------------


def test_10_some_of_several(far: Site, here: Path, file: Path) -> None:
    make(here / "other", 10)
    far.write("dst/file/x")
    for option in ((), ("-q",)):
        refused(mpx("copy", *option, here / "other", file, far.url_of("dst")), 10, "1 of 2 files", "file")
    assert (far.folder / "dst/other").exists()
