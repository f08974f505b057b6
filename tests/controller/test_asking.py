"""What `mpx controller status` says where nobody, or somebody else, answers."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from free_ports import free_ports
from mpx_command import mpx, refused
from mpx_controller import rest_client as asking
from mpx_controller.rest_client import RestClient, read_token

from mpx.errors import AuthenticationError, MpxError, TransferTimeout, UsageError


class Other(ThreadingHTTPServer):
    """Answers everything with one status, body and header, and remembers what it was shown."""

    status, body, location = 200, b"{}", ""
    drips = False  # blanks after the body, until the client goes

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.seen: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Other

    def do_GET(self) -> None:
        self.server.seen.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(self.server.body)
        with contextlib.suppress(ConnectionError):
            while self.server.drips:
                self.wfile.write(b" ")
                time.sleep(0.01)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[Other]:
    with Other() as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def test_nobody_listens() -> None:
    port, _ = free_ports(1)
    refused(mpx("controller", "status", "--url", f"http://127.0.0.1:{port}"), 6, f"127.0.0.1:{port}", "--url")


@pytest.mark.parametrize("body", [b"", b"hello", b"{}", b"[]", b"[" * 50_000, b'{"health": 3}', b"null"])
def test_what_is_no_controller(other: Other, body: bytes) -> None:
    other.body = body
    refused(mpx("controller", "status", "--url", other.url), 2, "is not a controller")


@pytest.mark.parametrize(("status", "code"), [(401, 5), (403, 5), (404, 2), (429, 1), (500, 1)])
def test_what_it_refuses(other: Other, status: int, code: int) -> None:
    other.status = status
    refused(mpx("controller", "paths", "--url", other.url), code)


def test_an_answer_without_end(other: Other, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 0.5)
    other.drips = True
    with pytest.raises(TransferTimeout):
        RestClient(other.url).get("status")


def test_another_place_of_a_web_server_is_no_controller(other: Other) -> None:
    other.status, other.body = 404, b'{"detail": "Not Found"}'
    refused(mpx("controller", "status", "--url", f"{other.url}/foo"), 2, "is not a controller", "--url")
    other.body = b'{"detail": "there is no path set 77"}'
    refused(mpx("controller", "flows", "77", "--url", other.url), 1, "there is no path set 77")


def test_a_port_for_callers_that_is_taken(other: Other) -> None:
    port = other.server_port
    asked = ("controller", "--listen", "127.0.0.1:0", "--api", f"127.0.0.1:{port}")
    refused(mpx(*asked), 2, f"cannot listen for callers on 127.0.0.1 port {port}: Address already in use")


@pytest.mark.parametrize(
    ("text", "says"), [(None, "cannot be read"), ("[", "cannot be used"), ("{}", "not a list of links")]
)
def test_capacities_that_cannot_be_had(text: str | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "capacities.json"
    if text is not None:
        file.write_text(text)
    asked = ("controller", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
    refused(mpx(*asked, "--capacities", file), 2, f"{file} ", says)
    (tmp_path / "controller.toml").write_text(f"[links]\ncapacities = '{file}'\n")
    refused(mpx(*asked, "--config", tmp_path / "controller.toml"), 2, f"{file} ", says)


def test_a_password_in_the_url_is_not_repeated() -> None:
    with pytest.raises(UsageError, match="MPX_CONTROLLER_TOKEN") as error:
        RestClient("http://me:secret@127.0.0.1:6680")
    assert "secret" not in str(error.value)


def test_it_says_why(other: Other) -> None:
    other.status, other.body = 401, b'{"detail": "nobody has \\u001b that token"}'
    with pytest.raises(AuthenticationError, match=r"nobody has \\x1b that token; set MPX_CONTROLLER_TOKEN"):
        RestClient(other.url).get("path-sets")


def test_a_token_is_shown_to_the_controller_alone(
    other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.body = b"[]"
    file = tmp_path / "token"
    file.write_text("of-a-file-12345678\n")
    monkeypatch.setenv("MPX_CONTROLLER_TOKEN", "of-the-environment")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for words in ((), ("--token-file", file)):
        assert mpx("controller", "paths", "--url", other.url, *words).code == 0
    assert other.seen == ["Bearer of-the-environment", "Bearer of-a-file-12345678"]
    other.status, other.location = 302, "http://127.0.0.1:9/"
    with pytest.raises(MpxError, match="refuses: HTTP status 302"):
        RestClient(other.url, "secret").get("path-sets")
    with pytest.raises(UsageError, match="could be read on the way"):
        RestClient("http://192.0.2.1:6680", "secret")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:6680",
        "ftp://x",
        "http://",
        "http://x:y",
        "http://x:99999",
        "http://x/a b",
        "http://[",
        "http://x\n",
    ],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="is not a controller URL"):
        RestClient(url)


def test_tokens_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(UsageError, match="cannot read"):
        read_token(file)
    file.write_text("one\ntwo")
    with pytest.raises(UsageError, match="characters that are not allowed in a token"):
        read_token(file)
