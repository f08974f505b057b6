"""TLS on both sides of a controller: callers with tokens, switches with certificates."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import make_certificates
from graphs import THESIS_A
from mpx_command import mpx, refused
from mpx_controller.graph import Graph
from running_controller import Running, controller
from switches import address
from wans import ENDS
from wire_switches import wire_wan

from mpx.errors import ControllerError
from mpx.multipath.controller import Refusal
from mpx.sdn_client import ControllerClient

SRC, DST = address("src"), address("dst")
TOKENS = {"dtn1": "the-token-of-dtn1-123", "noc": "the-token-of-noc-4567"}
CONFIG = """
[openflow]
certificate = "{folder}/controller.pem"
key = "{folder}/controller.key"
authority = "{folder}/authority.pem"
switches = [1, 2, 3, 4, 5, 6]
[api]
certificate = "{folder}/controller.pem"
key = "{folder}/controller.key"
tokens = [
    {{owner = "dtn1", file = "{folder}/dtn1.token"}},
    {{owner = "noc", file = "{folder}/noc.token", networks = ["10.0.0.0/24"]}},
]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates and tokens."""
    made = tmp_path_factory.mktemp("certificates")
    make_certificates(made)
    for owner, token in TOKENS.items():
        (made / f"{owner}.token").write_text(token + "\n")
    return made


@pytest.fixture
def running(folder: Path, tmp_path: Path) -> Iterator[Running]:
    with controller(tmp_path / "state.json", config=CONFIG.format(folder=folder)) as process:
        yield process


def ask(
    running: Running, folder: Path, token: str | None, method: str, what: str, body: object = None
) -> tuple[int, Any]:
    connection = connected(running, folder)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, what, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    told = json.loads(answer.read() or b"null")
    connection.close()
    return answer.status, told


def connected(running: Running, folder: Path) -> http.client.HTTPSConnection:
    trusted = ssl.create_default_context(cafile=folder / "authority.pem")
    return http.client.HTTPSConnection(*running.api, timeout=30, context=trusted)


def of_a_switch(folder: Path, who: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "authority.pem")
    context.check_hostname = False
    if who is not None:
        context.load_cert_chain(folder / f"{who}.pem", folder / f"{who}.key")
    return context


def switches(running: Running, folder: Path) -> int:
    return int(ask(running, folder, TOKENS["noc"], "GET", "/healthz")[1]["switches"])


def test_nobody_touches_what_is_another_s(
    running: Running, folder: Path, eventually: Callable[..., None]
) -> None:
    def asked(owner: str, method: str, what: str, body: object = None) -> tuple[int, Any]:
        return ask(running, folder, TOKENS[owner], method, what, body)

    pair = {"source": SRC, "sink": DST, "paths": 2}
    with wire_wan(running.port, THESIS_A, ENDS, of_a_switch(folder, "switch")):
        eventually(lambda: asked("noc", "GET", "/topology")[1]["edges"] == ["1:1000", "6:1000"])
        code, made = asked("noc", "POST", "/path-sets", pair)
        assert (code, made["owner"]) == (201, "noc")
        code, told = asked("dtn1", "POST", "/path-sets", pair)
        assert code == 403 and "its own address only" in told["detail"]
        code, told = asked("noc", "POST", "/path-sets", {"source": "10.0.1.1", "sink": "192.0.2.1"})
        assert code == 403
        theirs = f"/path-sets/{made['id']}"
        for method, what, body in (
            ("GET", theirs, None),
            ("GET", f"{theirs}/flows", None),
            ("DELETE", theirs, None),
            ("POST", f"{theirs}/renew", None),
            ("POST", f"{theirs}/streams", {"ports": [4000]}),
            ("POST", f"{theirs}/streams/remove", {"ports": [4000]}),
            ("POST", f"{theirs}/feedback", {"path": 0, "streams": 1, "rate_bps": 1e8, "rtt_s": 0.1}),
        ):
            assert asked("dtn1", method, what, body)[0] == 403
        assert asked("dtn1", "GET", "/path-sets") == (200, [])
        for token in ("", "wrong", "the-token-of-noc-4568", "the-token-of-noc-4567-and-more"):
            assert ask(running, folder, token, "GET", "/path-sets")[0] == 401
        assert asked("noc", "POST", f"{theirs}/streams", {"ports": [4000]})[0] == 200
        assert asked("noc", "DELETE", theirs) == (204, None)


def test_who_is_on_the_controllers_host_may_look_at_all_and_end_it_and_its_owner_is_told(
    running: Running, folder: Path, eventually: Callable[..., None]
) -> None:
    def asked(method: str, what: str, body: object = None) -> tuple[int, Any]:
        return ask(running, folder, None, method, what, body)

    with (
        wire_wan(running.port, THESIS_A, ENDS, of_a_switch(folder, "switch")),
        contextlib.closing(connected(running, folder)) as listening,
    ):
        eventually(lambda: asked("GET", "/topology")[1]["edges"] == ["1:1000", "6:1000"])
        pair = {"source": SRC, "sink": DST, "paths": 2}
        code, made = ask(running, folder, TOKENS["noc"], "POST", "/path-sets", pair)
        assert code == 201
        theirs = f"/path-sets/{made['id']}"
        assert asked("GET", theirs)[1]["owner"] == "noc"
        assert [each["id"] for each in asked("GET", "/path-sets")[1]] == [made["id"]]
        assert asked("POST", f"{theirs}/streams", {"ports": [4000]})[0] == 403  # it looks and ends
        listening.request("GET", "/events", headers={"Authorization": f"Bearer {TOKENS['noc']}"})
        events = listening.getresponse()
        assert asked("DELETE", theirs) == (204, None)
        told = json.loads(events.readline().removeprefix(b"data: "))
        assert told == {"path_set": made["id"], "what": "released"}
        assert asked("GET", theirs)[0] == 404


@pytest.mark.parametrize("who", [None, "stranger"])
def test_switches_without_a_certificate_of_ours_are_not_heard(
    running: Running, folder: Path, eventually: Callable[..., None], who: str | None
) -> None:
    with wire_wan(running.port, THESIS_A, ENDS, of_a_switch(folder, who)) as strangers:
        eventually(lambda: not any(each.is_connected for each in strangers.values()))
    with wire_wan(running.port, THESIS_A, ENDS) as plain:
        eventually(lambda: not any(each.is_connected for each in plain.values()))
    assert switches(running, folder) == 0
    with wire_wan(running.port, THESIS_A, ENDS, of_a_switch(folder, "switch")):
        eventually(lambda: switches(running, folder) == 6)


def test_datapaths_that_are_not_listed_are_refused(
    running: Running, folder: Path, eventually: Callable[..., None]
) -> None:
    other = Graph.of([6, 7], [])
    with wire_wan(running.port, other, {}, of_a_switch(folder, "switch")) as some:
        eventually(lambda: not some[7].is_connected)
        eventually(lambda: switches(running, folder) == 1)
        assert some[6].is_connected


def test_a_copy_says_what_is_wrong_with_a_certificate(
    running: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = running.urls["rest"]
    with pytest.raises(ControllerError, match=r"is not trusted .* SSL_CERT_FILE"):
        ControllerClient(url).renew(1)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    with pytest.raises(ControllerError, match=r"is for another host .* subjectAltName"):
        ControllerClient(url.replace("127.0.0.1", "localhost")).renew(1)
    with pytest.raises(Refusal, match="path set 1"):
        ControllerClient(url).renew(1)


def test_status_over_tls(running: Running, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("controller", "status", "--url", running.urls["rest"], "--token-file", folder / "noc.token")
    refused(mpx(*words), 5, "is not trusted", "SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    other = words[3].replace("127.0.0.1", "localhost")
    refused(mpx(*words[:3], other, *words[4:]), 5, "is for another host", "subjectAltName")
    ended = mpx(*words)
    assert (ended.code, ended.err) == (0, "") and "0 switches connected" in ended.out
    monkeypatch.setenv("MPX_CONTROLLER_TOKEN", "nobody-has-this-one")
    refused(mpx(*words[:4]), 5, "unknown token", "MPX_CONTROLLER_TOKEN")
