"""`mpx serve` as a service: tokens from the command line, SIGHUP, a drain, handshakes without an end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_command import command, mpx
from raw_client import CONTENT, RawClient, connect, read_blocks
from secure_client import SecureClient
from sites import make

from mpx.endpoints.ftp import wire

HALF_OPEN = 1500  # connections that never say a word; 1024 of an address may be under way at a time


@contextlib.contextmanager
def serving(*words: object) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A running `mpx serve`, and its URL."""
    with subprocess.Popen(
        command("serve", *words, "--port", "0"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().split()[2]
        finally:
            process.kill()


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    made = mpx("token", "create", "--write", "--note", "for a test")
    assert made.code == 0, made.err
    monkeypatch.setenv("MPX_TOKEN", made.out.strip())
    return made.out.strip()


def port_of(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])


def test_a_copy_with_a_token_from_the_command_line(tmp_path: Path, token: str) -> None:
    make(tmp_path / "served" / "file", 100_000)
    with serving(tmp_path / "served", "--tls", "--writable", "--audit", tmp_path / "audit") as (_, url):
        done = mpx("copy", f"{url}file", tmp_path / "got", "--report", tmp_path / "report")
        assert done.code == 0, done.err
        listed = mpx("token", "list").out
        assert "write" in listed and "for a test" in listed
        secret = token.rpartition(".")[2]
        assert mpx("token", "revoke", listed.split()[0]).code == 0
        again = mpx("copy", f"{url}file", tmp_path / "again")
        assert (again.code, "does not accept the token" in again.err) == (5, True)
    assert (tmp_path / "got").read_bytes() == (tmp_path / "served" / "file").read_bytes()
    assert not (tmp_path / "again").exists()
    everything = [listed, done.out, done.err, again.err, (tmp_path / "report").read_text()]
    state = Path(os.environ["MPX_STATE_DIR"])
    everything += [path.read_text() for path in (tmp_path / "audit", *state.glob("*.json"))]
    assert not [text for text in everything if secret in text]


def test_a_saved_token_is_used_and_an_accepted_key_too(
    tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "served" / "file", 10)
    monkeypatch.delenv("MPX_TOKEN")
    with serving(tmp_path / "served", "--tls") as (_, url):
        assert mpx("token", "save", url, stdin=token.encode()).code == 0
        assert mpx("list", url).out == "file\n"
        (state,) = [Path(os.environ["MPX_STATE_DIR"])]
        for name in ("serve.pem", "serve.key"):  # the operator has made a new key
            (state / name).unlink()
    with serving(tmp_path / "served", "--tls") as (_, moved):
        assert mpx("token", "save", moved, stdin=token.encode()).code == 0
        refused = mpx("list", moved)
        assert refused.code == 5
        accept = refused.err[refused.err.index("mpx token accept") :].split()
        assert mpx(*accept[1:5]).code == 0
        assert mpx("list", moved).out == "file\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["token", "revoke", "nothing"], "there is no token"),
        (["token", "create", "--expires", "soon"], "write 30m"),
        (["token", "create", "--certificate", "/none"], "cannot read the certificate"),
        (["token", "save", "ftp://host"], "mpx://HOST:PORT"),
        (["token", "accept", "host", "short"], "is not the name of a key"),
    ],
)
def test_what_token_refuses(words: list[str], complaint: str) -> None:
    done = mpx(*words)
    assert (done.code, complaint in done.err) == (2, True), done.err


def test_hanging_up_reloads_and_does_not_end(
    tmp_path: Path, token: str, eventually: Callable[..., None]
) -> None:
    make(tmp_path / "served" / "file", 10)
    with serving(tmp_path / "served", "--tls", "--audit", tmp_path / "audit") as (process, url):
        assert mpx("list", url).code == 0
        (tmp_path / "audit").rename(tmp_path / "old")
        process.send_signal(signal.SIGHUP)
        eventually((tmp_path / "audit").exists)
        assert mpx("list", url).code == 0
        first = (tmp_path / "audit").read_text().splitlines()[0]
        assert json.loads(first)["event"] == "login"
        assert process.poll() is None


def test_a_drain_lets_a_transfer_end(tmp_path: Path, eventually: Callable[..., None]) -> None:
    (tmp_path / "served").mkdir()
    with (
        serving(tmp_path / "served", "--writable", "--drain", "60") as (process, url),
        RawClient(port_of(url)) as client,
        RawClient(port_of(url)) as idle,
        connect(client.passive()) as data,
    ):
        client.send("STOR new")
        assert client.reply().code == 150
        data.sendall(CONTENT[:1000])
        process.send_signal(signal.SIGTERM)
        with pytest.raises((EOFError, ConnectionResetError)):  # who does nothing is not waited for
            idle.reply()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port_of(url)))
        data.sendall(CONTENT[1000:])
        data.shutdown(socket.SHUT_WR)
        assert client.reply().code == 226
        assert process.wait(240) == 0
    assert (tmp_path / "served" / "new").read_bytes() == CONTENT


def test_many_half_open_handshakes_keep_nobody_out(tmp_path: Path, token: str) -> None:
    make(tmp_path / "served" / "file", len(CONTENT))
    with serving(tmp_path / "served", "--tls") as (process, url):
        silent = []
        try:
            for _ in range(HALF_OPEN):
                silent.append(socket.create_connection(("127.0.0.1", port_of(url)), timeout=60))
            with SecureClient(port_of(url)) as client:
                assert client.do("SIZE file").text == str(len(CONTENT))
            assert len(os.listdir(f"/proc/{process.pid}/fd")) < 1200
            assert len(os.listdir(f"/proc/{process.pid}/task")) < 30
        finally:
            for sock in silent:
                sock.close()


def test_a_name_that_the_locale_cannot_write_does_no_harm_to_what_precedes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is queued behind a retrieve of which one connection is done, so that it is looked at."""
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    size = 48 << 20  # more than the kernel holds of one connection that nobody reads
    source = make(tmp_path / "large", size)
    with (
        serving(tmp_path) as (_, url),
        RawClient(port_of(url)) as client,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        for line in ("MODE E", "OPTS RETR Parallelism=2,2,2;"):
            assert client.do(line).code == 200
        assert client.do(f"PORT {wire.format_host_port(listener.getsockname())}").code == 200
        client.send("RETR large", "RETR \u6f22", "NOOP")
        connections = [listener.accept()[0] for _ in range(2)]
        blocks = [block for connection in connections for block in read_blocks(connection)[0]]
        assert [client.reply().code for _ in range(4)] == [150, 226, 500, 200]
        for connection in connections:
            connection.close()
    assert b"".join(data for _, data in sorted(blocks)) == source.read_bytes()
