"""Exit codes 6 and 7: servers that refuse, hang or are something else; and giving up waiting for them."""

import contextlib
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from grids import as_user, shared_grid
from interop.scripted_server import Dialogue, ScriptedServer
from mpx_command import copied, mpx, refused, running
from sites import Site, opened, own_site

from mpx.net.self_signed import self_signed

pytestmark = pytest.mark.peers


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
                with client, contextlib.suppress(OSError):
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


ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"  # unexpected_message


@pytest.mark.parametrize("scheme", ["ftp", "gsiftp"])
@pytest.mark.parametrize(("said", "code"), [(ALERT, 5), (b"", 6)])
def test_who_speaks_tls_at_once_is_told_to_be_of_another_scheme(
    scheme: str, said: bytes, code: int, file: Path
) -> None:
    with saying(said) as port, as_user(shared_grid()):
        ended = mpx("copy", file, f"{scheme}://localhost:{port}/x")
    refused(ended, code, "if it is mpx serve inside TLS", f"mpx://localhost:{port}")
    assert ("answers in TLS" in ended.err) == (said == ALERT)


@pytest.mark.parametrize("scheme", ["ftp", "gsiftp"])
def test_mpx_serve_inside_tls_is_silent_towards_others(scheme: str, file: Path, tmp_path: Path) -> None:
    with opened("mpx serve with a token", tmp_path) as far, as_user(shared_grid()):
        url = far.url.replace("mpx", scheme)
        ended = mpx("copy", "--connect-timeout", "500ms", file, f"{url}x")
    assert ended.code in (6, 7), ended.err
    assert f"write {far.url.rstrip('/')}\n" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_grid_server_and_ftp(file: Path, tmp_path: Path) -> None:
    with opened("grid server", tmp_path) as far:
        ended = mpx("copy", file, far.url_of("x").replace("gsiftp", "ftp"))
    refused(ended, 5, "write gsiftp://")
    assert "over TLS" not in ended.err


def test_a_server_in_the_clear_and_gsiftp(far: Site, file: Path) -> None:
    with as_user(shared_grid()):
        ended = mpx("copy", file, far.url_of("x").replace("ftp", "gsiftp"))
    refused(ended, 5, "does not speak GSI; if it admits clients in the clear, write ftp://; it says: 5")


def test_no_mpx_serve_where_the_url_says(closed_port: int, file: Path, tmp_path: Path) -> None:
    with opened("mpx serve with a token", tmp_path), own_site(tmp_path) as clear:
        there = f"mpx://127.0.0.1:{closed_port}"
        refused(mpx("copy", file, f"{there}/x"), 6, "refused", there, "mpx serve runs there")
        there = "mpx://no-such-host.invalid:2811"
        refused(mpx("copy", file, f"{there}/x"), 6, "cannot find", there, "mpx serve runs there")
        for said in (b"SSH-2.0-OpenSSH_9.2\r\n", b"220 welcome\r\n"):
            with saying(said) as port:
                ended = mpx("copy", file, f"mpx://127.0.0.1:{port}/x")
            refused(ended, 5, "does not answer in TLS", "check host and port", "ftp://")
        with saying() as port:
            ended = mpx("copy", file, f"mpx://127.0.0.1:{port}/x")
        refused(ended, 6, "closed the connection", "check host and port", "mpx serve runs there")
        refused(mpx("list", clear.url.replace("ftp", "mpx")), 5, "write ftp://")


def test_a_tls_server_that_is_not_mpx_serve(file: Path, tmp_path: Path) -> None:
    """As one of HTTPS: nobody is told to accept its key."""
    certificate, key = self_signed("test", timedelta(days=1))
    (tmp_path / "pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")

    def serve() -> None:
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError), context.wrap_socket(client, server_side=True) as secured:
            secured.recv(1)

    with opened("mpx serve with a token", tmp_path), socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ended = mpx("copy", file, f"mpx://127.0.0.1:{listener.getsockname()[1]}/x")
        thread.join()
    refused(ended, 5, "speaks TLS but is not mpx serve", "check host and port")


def test_7_no_greeting(silent_port: int, file: Path) -> None:
    for option in ((), ("-q",)):
        ended = mpx("copy", *option, "--timeout", "300ms", file, f"ftp://127.0.0.1:{silent_port}/x")
        refused(ended, 7, "greeting")


def test_7_a_greeting_has_as_long_as_a_connection(silent_port: int, file: Path) -> None:
    ended = mpx("copy", "--connect-timeout", "300ms", file, f"ftp://127.0.0.1:{silent_port}/x")
    refused(ended, 7, "no greeting within 0.3 s", "check host and port")


def test_who_asks_to_wait_has_longer_for_its_greeting(here: Path) -> None:
    def slow(dialogue: Dialogue, _: str) -> str:
        dialogue.say("120 in a moment")
        time.sleep(1.0)
        return "220 ready"

    with ScriptedServer({"banner": slow}) as server:
        copied(mpx("copy", "-q", "--connect-timeout", "500ms", f"{server.url}/file", here / "file"))
        assert (here / "file").read_bytes() == server.content


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


def test_130_while_connecting(deaf_port: int, file: Path, eventually: Callable[..., None]) -> None:
    with running("copy", file, f"ftp://127.0.0.1:{deaf_port}/x") as process:
        eventually(lambda: any("socket:" in link for link in links_of(process.pid)))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
    assert (process.returncode, err.count(b"\n")) == (130, 1), err
    assert err.startswith(b"mpx: interrupted")


def test_143_while_waiting_for_the_greeting(
    silent_port: int, file: Path, eventually: Callable[..., None]
) -> None:
    with running("copy", file, f"ftp://127.0.0.1:{silent_port}/x") as process:
        eventually(lambda: any("socket:" in link for link in links_of(process.pid)))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=240)
    assert (process.returncode, err.count(b"\n")) == (143, 1), err


def links_of(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    return found
