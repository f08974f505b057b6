"""What nobody should send, to a controller as a process of its own: refused, and nobody else notices."""

import contextlib
import http.client
import json
import socket
import struct
import threading
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_controller.graph import Graph
from running_controller import Running, controller
from switches import address
from wire_switches import WireSwitch, wire_wan

SRC, DST = address("src"), address("dst")
Network = tuple[Running, dict[int, WireSwitch]]


def raw(running: Running, data: bytes) -> bytes:
    """Return all that is answered to some bytes."""
    with socket.create_connection(running.api, 30) as connection:
        with contextlib.suppress(OSError):  # it is not read to its end
            connection.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer and (more := connection.recv(65536)):
            answer += more
        return answer


def status(running: Running, method: str, what: str, body: bytes = b"", **headers: str) -> int:
    connection = http.client.HTTPConnection(*running.api, timeout=30)
    try:
        connection.request(method, what, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        detail = answer.read()
        assert answer.status < 400 or b"detail" in detail or answer.status in (400, 404, 405), detail
        return answer.status
    finally:
        connection.close()


def assigned(running: Running) -> int:
    return int(running.ask("POST", "path-sets", {"source": SRC, "sink": DST})["id"])


HUGE = b"9" * 6000
DEEP = b"[" * 8000
PAIR = f'"source": "{SRC}", "sink": "{DST}"'.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        DEEP,
        b'{"source": ' + DEEP,
        b"{" + PAIR + b', "paths": ' + HUGE + b"}",
        b"{" + PAIR + b', "paths": -1}',
        b"{" + PAIR + b', "paths": 65}',
        b"{" + PAIR + b', "paths": 1.5}',
        b"{" + PAIR + b', "paths": NaN}',
        b"{" + PAIR + b', "paths": "many"}',
        b"{" + PAIR + b', "colour": 1}',
        b"{" + PAIR + b', "\\ud800\\u202e": 1}',
        b'{"source": 1, "sink": true}',
        b'{"source": "\\ud800", "sink": "10.0.0.1"}',
        b'{"source": "10.0.0.1"}',
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_path_sets_that_cannot_be_asked_for(network: Network, body: bytes) -> None:
    assert status(network[0], "POST", "/path-sets", body) in (400, 422)


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        (SRC, SRC),
        (SRC, "fd00::1"),
        (SRC, "224.0.0.1"),
        ("0.0.0.0", DST),
        ("127.0.0.1", DST),
        ("255.255.255.255", DST),
        ("fe80::1%eth0", "fe80::2"),
        ("::", "fd00::1"),
        ("::ffff:10.0.0.1", "fd00::1"),
        ("ff02::1", "fd00::1"),
    ],
)
def test_pairs_that_cannot_be(network: Network, source: str, sink: str) -> None:
    body = json.dumps({"source": source, "sink": sink}).encode()
    assert status(network[0], "POST", "/path-sets", body) in (400, 422)


STREAMS = [
    {"ports": []},
    {"ports": [0]},
    {"ports": [65536]},
    {"ports": [-1]},
    {"ports": ["x"]},
    {"ports": [1.5]},
    {"ports": [True]},
    {"ports": list(range(1, 300))},
    {"ports": 4000},
    {"ports": [4000], "side": "left"},
    {"ports": [4000], "path": -1},
    {"ports": [4000], "path": 10**30},
    {"ports": {"a": 1}},
]


@pytest.mark.parametrize("body", STREAMS, ids=[json.dumps(each)[:30] for each in STREAMS])
def test_streams_that_cannot_be(network: Network, body: object) -> None:
    running, _ = network
    number = assigned(running)
    refused = status(running, "POST", f"/path-sets/{number}/streams", json.dumps(body).encode())
    assert refused in (404, 422)
    assert running.get(f"path-sets/{number}")["ports"] == {}


@pytest.mark.parametrize(
    "rate", ["NaN", "Infinity", "-Infinity", "-1", "0", "1e400", "1e14", '"fast"', "null"]
)
@pytest.mark.parametrize("field", ["rate_bps", "rtt_s"])
def test_feedback_that_cannot_be(network: Network, rate: str, field: str) -> None:
    running, _ = network
    fields = {"path": "0", "streams": "1", "rate_bps": "1e8", "rtt_s": "0.1", field: rate}
    body = "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"
    assert status(running, "POST", f"/path-sets/{assigned(running)}/feedback", body.encode()) == 422


@pytest.mark.parametrize(
    "what",
    [
        "/path-sets/0",
        "/path-sets/-1",
        "/path-sets/99999999999999999999",
        f"/path-sets/{'9' * 6000}",
        "/path-sets/%00",
        "/path-sets/..%2f..%2fetc",
        "/" + "x" * 12_000,
    ],
)
def test_what_is_not_there(network: Network, what: str) -> None:
    assert status(network[0], "GET", what) in (404, 422)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"Content-Length: -1", 400),
        (b"Content-Length: 1e3", 400),
        (b"Content-Length: 10000000", 413),
        (b"Content-Length: " + b"9" * 5000, 400),
        (b"Content-Length: 3\r\nContent-Length: 4", 400),
        (b"Transfer-Encoding: chunked", 413),
        (b"Origin: http://page.example.org\r\nContent-Length: 0", 403),
        (b"X: " + b"y" * 1_000_000, 400),
        (b"\r\n".join(b"X-%d: y" % n for n in range(20_000)), 400),
        (b"\0: \0", 400),
        (b"no header", 400),
    ],
)
def test_requests_that_are_none(network: Network, head: bytes, code: int) -> None:
    answer = raw(network[0], b"POST /path-sets HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % code), answer[:100]


@pytest.mark.parametrize(
    ("named", "code"),
    [
        (b"page.example.org", 403),
        (b"page.example.org:{port}", 403),
        (b"localhost.example.org", 403),
        (b"192.0.2.1", 403),
        (b"[", 403),
        (b"", 403),
        (b"LocalHost:{port}", 200),
        (b"127.0.0.1:{port}", 200),
        (b"127.9.9.9", 200),
        (b"[::1]:{port}", 200),
    ],
)
def test_a_page_that_is_named_as_this_host_sees_nothing(network: Network, named: bytes, code: int) -> None:
    """A name of its own can be made to mean 127.0.0.1, and its requests have no Origin then."""
    host = named.replace(b"{port}", str(network[0].api[1]).encode())
    answer = raw(network[0], b"GET /path-sets HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % code), answer[:100]


NO_REQUESTS = [
    b"\0\0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n<",
    b"POST /path-sets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
]


@pytest.mark.parametrize("data", NO_REQUESTS)
def test_what_callers_get_wrong_does_not_fill_the_log(tmp_path: Path, data: bytes) -> None:
    log = tmp_path / "log"
    with controller(tmp_path / "state.json", errors=log) as running:
        before = log.read_text()
        for _ in range(20):
            with socket.create_connection(running.api, 30) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        assert status(running, "GET", "/healthz") == 200
    assert log.read_text() == before


def test_who_is_gone_before_it_is_accepted_is_no_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with controller(tmp_path / "state.json", errors=log) as running:
        before = log.read_text()
        for _ in range(200):  # some of them are reset while they wait to be accepted
            with socket.create_connection(running.api, 30) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(running, "GET", "/healthz") == 200
    assert log.read_text() == before


def test_very_many_members_are_refused_at_once(network: Network) -> None:
    body = json.dumps(dict.fromkeys(map(str, range(500)))).encode()
    code, said = answered(network[0], body)
    assert code == 422 and b"may have at most 16 members" in said


def test_more_bytes_than_any_request_has_are_not_read(network: Network) -> None:
    ports = json.dumps({"ports": [60_000] * 256, "side": "source", "path": 1}, indent=4)
    assert answered(network[0], ports.encode())[0] == 422  # it is read
    assert answered(network[0], b" " * 9000)[0] == 413


def answered(running: Running, body: bytes) -> tuple[int, bytes]:
    """Return what a request for a path set is answered."""
    with contextlib.closing(http.client.HTTPConnection(*running.api, timeout=30)) as connection:
        connection.request("POST", "/path-sets", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_ten_megabytes_are_not_read(network: Network) -> None:
    running, _ = network
    with socket.create_connection(running.api, 30) as connection, pytest.raises(OSError):
        connection.sendall(b"POST /path-sets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"
        while True:
            connection.sendall(bytes(65536))


def test_two_at_once_ask_for_the_same_ports_and_one_gets_them(network: Network) -> None:
    running, _ = network
    numbers = [assigned(running) for _ in range(8)]
    codes: list[int] = []

    def ask(number: int) -> None:
        try:
            running.ask("POST", f"path-sets/{number}/streams", {"ports": [6000, 6001]})
            codes.append(200)
        except urllib.error.HTTPError as error:
            codes.append(error.code)

    asking = [threading.Thread(target=ask, args=(number,)) for number in numbers]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert sorted(codes) == [200] + [409] * 7
    holders = [each for each in running.get("path-sets") if "source:6000" in each["ports"]]
    assert len(holders) == 1
    back = running.ask("POST", "path-sets", {"source": DST, "sink": SRC})["id"]
    with pytest.raises(urllib.error.HTTPError) as refused:  # the same connections by their other end
        running.ask("POST", f"path-sets/{back}/streams", {"ports": [6000], "side": "sink"})
    assert refused.value.code == 409


@pytest.mark.parametrize(("config", "needed"), [("", 2), ("[forwarding]\non = false\ntable = 4\n", 5)])
def test_a_switch_with_too_few_tables_is_not_used(
    tmp_path: Path, eventually: Callable[..., None], config: str, needed: int
) -> None:
    log = tmp_path / "log"
    one = Graph.of([1], [])
    with controller(tmp_path / "state.json", 0, config, errors=log) as running:
        with wire_wan(running.port, one, {}, tables=needed - 1) as switches:
            eventually(lambda: not switches[1].is_connected)
        assert f"switch 1 has {needed - 1} tables and needs {needed}" in log.read_text()
        with wire_wan(running.port, one, {}, tables=needed):
            eventually(lambda: running.get("healthz") == {"switches": 1})
