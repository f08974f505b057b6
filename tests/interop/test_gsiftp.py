"""Copies to and from a stock GridFTP server with the security of grids, as its users run them."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from grids import as_user, new_grid, shared_grid
from install_peers import find_peer
from interop.mpx_process import Copy
from interop.stock_server import StockServer
from mpx_command import mpx
from mpx_lab.private_grid import write_key
from random_bytes import random_bytes
from sites import make

from mpx.serve import Server

MIB = 1024 * 1024
OLD_TLS = {"GLOBUS_GSSAPI_MAX_TLS_PROTOCOL": "TLS1_2_VERSION"}
NO_DCSC = ("-disable-command-list", "DCSC")
SERVERS = {
    "as it is": {},
    "TLS 1.2": {"environment": OLD_TLS},
    "no DCSC": {"arguments": NO_DCSC},
    "no DCSC, TLS 1.2": {"arguments": NO_DCSC, "environment": OLD_TLS},
}
WAYS = {"authenticated": (), "encrypted": ("--encrypt",), "neither": ("--no-dcau",)}


def served(folder: Path) -> Path:
    (folder / "served").mkdir()
    return folder / "served"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StockServer]:
    grid = shared_grid()
    with as_user(grid), StockServer(served(tmp_path), grid=grid) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[StockServer]:
    """A server of a grid whose files the test may change."""
    grid = new_grid(tmp_path / "grid")
    with as_user(grid), StockServer(served(tmp_path), grid=grid) as running:
        yield running


def copied(*words: object) -> str:
    done = mpx("copy", *words)
    assert done.code == 0, done.err
    return done.out + done.err


def refused(server: StockServer, *options: str) -> str:
    """Return why the server, or we, do not want each other; nothing else is said."""
    done = mpx("list", server.url, *options)
    assert done.code == 5, (done.code, done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    return done.err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SERVERS)
def test_files_go_both_ways(tmp_path: Path, kind: str, way: str) -> None:
    grid = shared_grid()
    with as_user(grid), StockServer(served(tmp_path), grid=grid, **SERVERS[kind]) as server:
        for size in (0, 1, 9 * MIB + 7):
            source = make(tmp_path / "source", size)
            copied(source, f"{server.url}{size}", *WAYS[way])
            assert (server.root / str(size)).read_bytes() == source.read_bytes()
            copied(f"{server.url}{size}", tmp_path / f"back-{size}", *WAYS[way])
            assert (tmp_path / f"back-{size}").read_bytes() == source.read_bytes()


def test_a_tree_with_names_that_only_an_encrypted_session_can_carry(
    server: StockServer, tmp_path: Path
) -> None:
    names = ["plain", "with blanks", "ü", "a\udcffb", "\x01\x7f", "'; \"$(x)"]
    for name in names:
        make(tmp_path / "tree" / "sub" / name, 1000)
    (tmp_path / "tree" / "empty").mkdir()
    copied("-r", tmp_path / "tree", f"{server.url}far")
    copied("-r", f"{server.url}far", tmp_path / "back")
    for name in names:
        sent = (tmp_path / "tree" / "sub" / name).read_bytes()
        assert (server.root / "far" / "sub" / name).read_bytes() == sent
        assert (tmp_path / "back" / "sub" / name).read_bytes() == sent
    assert (tmp_path / "back" / "empty").is_dir()


def test_what_is_not_encrypted_is_said_and_compared_by_what_nobody_can_match(
    server: StockServer, tmp_path: Path
) -> None:
    make(tmp_path / "source", 3 * MIB)
    said = copied(tmp_path / "source", f"{server.url}one")
    assert "file data are not encrypted" in said and "(sha256)" in said
    said = copied(tmp_path / "source", f"{server.url}two", "--encrypt")
    assert "not encrypted" not in said
    said = copied(tmp_path / "source", f"{server.url}three", "--checksum", "adler32")
    assert "not encrypted" in said and "does not show who has changed it on purpose" in said


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_killed_copy_goes_on(
    server: StockServer, tmp_path: Path, eventually: Callable[..., None], way: str
) -> None:
    near, far = tmp_path / "near", server.root / "far"
    content = random_bytes(12 * MIB)
    (near if way == "up" else far).write_bytes(content)
    ends = (str(near), f"{server.url}far")
    source, destination = ends if way == "up" else ends[::-1]
    folder = tmp_path / "runs"
    folder.mkdir()
    running = Copy(folder, source, destination, "--rate", "20Mbit/s")
    partly = server.root if way == "up" else tmp_path
    eventually(lambda: any(part.stat().st_blocks * 512 > 2 * MIB for part in partly.glob(".*.part")))
    running.kill()
    running.end()
    assert not (far if way == "up" else near).exists()
    done = Copy(folder, source, destination).end()
    assert done.code == 0, done.stderr
    assert done.resumed_bytes > 0
    assert (far if way == "up" else near).read_bytes() == content


def test_peers_take_the_same_proxy(server: StockServer, tmp_path: Path) -> None:
    """So the throwaway grid is one that other tools know, too."""
    make(tmp_path / "source", 1000)
    words = [find_peer("globus-url-copy"), f"file://{tmp_path}/source", f"{server.url}far"]
    subprocess.run(words, check=True, timeout=60)
    copied(f"{server.url}far", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "source").read_bytes()


@pytest.mark.parametrize("limited", [False, True])
def test_a_proxy_is_delegated(tmp_path: Path, limited: bool) -> None:
    grid = new_grid(tmp_path / "grid")
    grid.write_proxy(limited=limited, lasts=timedelta(days=10))
    make(tmp_path / "source", 1000)
    with as_user(grid), StockServer(served(tmp_path), grid=grid, arguments=NO_DCSC) as server:
        said = copied(tmp_path / "source", f"{server.url}one", "--encrypt")
        copied(tmp_path / "source", f"{server.url}two", "--delegate")
    until = re.search(r"which lasts until (\S+ \S+) UTC", said)  # not for as long as ours
    assert until and datetime.fromisoformat(f"{until[1]}Z") <= datetime.now(UTC) + timedelta(days=1)
    assert (server.root / "two").read_bytes() == (tmp_path / "source").read_bytes()


def test_certificate_and_key_do_without_a_proxy(own: StockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert own.grid
    monkeypatch.setenv("X509_USER_PROXY", "")
    monkeypatch.setenv("X509_USER_CERT", str(own.grid.folder / "user.pem"))
    monkeypatch.setenv("X509_USER_KEY", str(own.grid.folder / "user.key"))
    done = mpx("list", own.url)
    assert done.code == 0, done.err


def test_attributes_of_a_virtual_organisation_are_passed_on(own: StockServer, tmp_path: Path) -> None:
    grid = own.grid
    assert grid
    made = tmp_path / "voms.pem"
    words = [
        find_peer("voms-proxy-fake"),
        "-rfc",
        "-voms",
        "lab",
        "-fqan",
        "/lab/Role=production/Capability=NULL",
    ]
    words += ["-cert", str(grid.folder / "user.pem"), "-key", str(grid.folder / "user.key")]
    words += ["-hostcert", str(grid.folder / "host.pem"), "-hostkey", str(grid.folder / "host.key")]
    words += ["-uri", "localhost:15000", "-out", str(made)]
    done = subprocess.run(words, check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    shutil.move(made, grid.proxy)
    make(tmp_path / "source", 1000)
    copied(tmp_path / "source", f"{own.url}far", "--delegate")
    assert (own.root / "far").read_bytes() == (tmp_path / "source").read_bytes()


# --- who is not let in, and whom we do not trust ---------------------------------------------------


def test_an_expired_proxy(own: StockServer) -> None:
    assert own.grid
    own.grid.write_proxy(lasts=timedelta(seconds=-1))
    said = refused(own)
    assert "has expired" in said and "grid-proxy-init" in said


def test_no_proxy_at_all(own: StockServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("X509_USER_PROXY", str(tmp_path / "none"))
    assert "grid-proxy-init" in refused(own)


def test_a_proxy_that_others_can_read(own: StockServer) -> None:
    assert own.grid
    own.grid.proxy.chmod(0o644)
    assert "is not yours alone" in refused(own)


def test_a_key_with_a_passphrase_is_not_asked_for(own: StockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = own.grid
    assert grid
    key = grid.folder / "locked.key"
    words = ["openssl", "rsa", "-in", str(grid.folder / "user.key"), "-aes128", "-passout", "pass:secret"]
    subprocess.run([*words, "-out", str(key)], check=True, capture_output=True)
    monkeypatch.setenv("X509_USER_PROXY", "")
    monkeypatch.setenv("X509_USER_CERT", str(grid.folder / "user.pem"))
    monkeypatch.setenv("X509_USER_KEY", str(key))
    assert "passphrase" in refused(own)


def test_a_user_of_another_grid(own: StockServer) -> None:
    grid = own.grid
    assert grid
    stranger = grid.issue("Eve", ca=grid.new_ca("Other CA"))
    write_key(grid.proxy, stranger.pem + stranger.key_pem)
    assert "does not take our certificate" in refused(own)


def test_a_user_whom_the_server_does_not_know(own: StockServer) -> None:
    assert own.grid
    own.grid.map("/O=Lab/CN=Bob", "nobody")
    said = refused(own)
    assert "grid-mapfile" in said and '"/O=Lab/CN=Alice"' in said


def test_a_server_of_another_grid(own: StockServer) -> None:
    assert own.grid
    own.grid.stem(own.grid.ca).with_suffix(".0").unlink()
    assert "certificate" in refused(own) and "X509_CERT_DIR" in refused(own)


def test_a_server_by_another_name(own: StockServer) -> None:
    own_name = "/O=Lab/CN=localhost"
    url = own.url.replace("localhost", "127.0.0.1", 1)
    done = mpx("list", url)
    assert done.code == 5 and f"--server-subject '{own_name}'" in done.err, done.err
    assert mpx("list", url, "--server-subject", own_name).code == 0
    assert "/O=Lab/CN=other" in refused(own, "--server-subject", "/O=Lab/CN=other")


def test_a_folder_of_cas_that_is_named(
    server: StockServer, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.grid
    trusted = str(server.grid.trusted)
    monkeypatch.setenv("X509_CERT_DIR", str(here))
    assert str(here) in refused(server) and mpx("list", server.url, "--ca", trusted).code == 0
    copied("--ca", trusted, make(here / "file", MIB), f"{server.url}/file")
    done = mpx("list", server.url, "--ca", str(here / "file"))
    assert done.code == 2 and "is not a folder: for gsiftp://" in done.err, done.err


def test_a_ca_that_may_not_sign_for_this_name(own: StockServer) -> None:
    assert own.grid
    own.grid.trust(own.grid.ca, signs="/O=Elsewhere/*")
    assert "is not one that /O=Lab/CN=Lab CA may sign" in refused(own)
    own.grid.stem(own.grid.ca).with_suffix(".signing_policy").unlink()
    assert "has no signing policy" in refused(own)


def test_what_a_ca_has_revoked(own: StockServer) -> None:
    grid = own.grid
    assert grid
    grid.revoke()
    assert mpx("list", own.url).code == 0
    grid.revoke(grid.host)
    assert "was revoked" in refused(own)
    grid.revoke(until=datetime.now(UTC) - timedelta(hours=1))
    assert "fetch-crl" in refused(own)
    grid.stem(grid.ca).with_suffix(".r0").write_text("nothing of the kind")
    assert "is not one" in refused(own)


def test_an_expired_host_certificate(tmp_path: Path) -> None:
    grid = new_grid(tmp_path / "grid")
    old = grid.issue("localhost", hosts=["localhost"], until=datetime.now(UTC) - timedelta(hours=1))
    write_key(grid.folder / "host.pem", old.pem)
    write_key(grid.folder / "host.key", old.key_pem)
    with as_user(grid), StockServer(served(tmp_path), grid=grid) as server:
        assert "expired" in refused(server)


def test_a_user_who_claims_to_be_a_server(own: StockServer) -> None:
    """A proxy may bear any name at its end; whose it is, is said before."""
    grid = own.grid
    assert grid
    grid.write_proxy(name="localhost")
    for name in ("host.pem", "host.key"):
        shutil.copy(grid.proxy, grid.folder / name)
    assert "has a certificate for Alice" in refused(own)


def test_a_server_without_gsi(tmp_path: Path) -> None:
    with as_user(shared_grid()), Server(served(tmp_path)) as server:
        done = mpx("list", server.url.replace("ftp://", "gsiftp://"))
    assert done.code == 5 and "write ftp://" in done.err, done.err
