"""Floods, and callers that stall: each is bounded, and nobody else notices."""

import http.client
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from mpx_controller.api.guard import CONNECTIONS, REQUEST_S
from running_controller import Running
from switches import address, arp_from
from wire_switches import WireSwitch

Network = tuple[Running, dict[int, WireSwitch]]
PAIR = {"source": address("src"), "sink": address("dst")}
BEGUN = [b"", b"G", b"POST /path-sets HTTP/1.1\r\nContent-Length: 100\r\nHost: localhost\r\n\r\n{"]


def test_who_is_slow_is_not_waited_for(network: Network) -> None:
    """It is ended after `REQUEST_S` to twice that, however often a byte comes."""
    running, _ = network
    with ExitStack() as held:
        mine = [held.enter_context(socket.create_connection(running.api, 4 * REQUEST_S)) for _ in BEGUN]
        for connection, begins in zip(mine, BEGUN, strict=True):
            connection.sendall(begins)
        assert [connection.recv(1) for connection in mine] == [b""] * len(mine)


def test_who_comes_often_does_not_keep_others_out(network: Network) -> None:
    running, _ = network
    with ExitStack() as held:
        mine = [held.enter_context(socket.create_connection(running.api, 30)) for _ in range(2 * CONNECTIONS)]
        for connection in mine[-CONNECTIONS:]:
            assert ended(connection)
        mine[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert mine[0].recv(12) == b"HTTP/1.1 200"
        other = held.enter_context(socket.create_connection(running.api, 30, ("127.0.0.2", 0)))
        other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(12) == b"HTTP/1.1 200"


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_streams_of_events_are_bounded_and_given_back(
    network: Network, eventually: Callable[..., None]
) -> None:
    running, _ = network
    listening = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def code(held: ExitStack) -> bytes:
        connection = held.enter_context(socket.create_connection(running.api, 30))
        connection.sendall(listening)
        return connection.recv(12)

    with ExitStack() as held:
        codes = [code(held) for _ in range(65)]
        assert codes == [b"HTTP/1.1 200"] * 64 + [b"HTTP/1.1 429"]
    with ExitStack() as held:
        eventually(lambda: code(held) == b"HTTP/1.1 200")


def test_a_flood_of_requests_is_slowed_and_others_are_answered(
    network: Network, eventually: Callable[..., None]
) -> None:
    running, _ = network
    over = threading.Event()
    codes: list[int] = []

    def flood() -> None:
        while not over.is_set():
            codes.append(health(running, "127.0.0.3"))

    flooding = [threading.Thread(target=flood) for _ in range(20)]
    for each in flooding:
        each.start()
    try:
        eventually(lambda: 429 in codes)
        assert [health(running, "127.0.0.2") for _ in range(50)] == [200] * 50
    finally:
        over.set()
        for each in flooding:
            each.join()
    assert set(codes) == {200, 429} and running.metric("requests_refused_total") > 0


def health(running: Running, source: str) -> int:
    connection = http.client.HTTPConnection(*running.api, timeout=30, source_address=(source, 0))
    connection.request("GET", "/healthz")
    code = connection.getresponse().status
    connection.close()
    return code


def test_a_flood_of_frames_at_one_port_takes_from_nobody_else(network: Network) -> None:
    running, switches = network
    before = running.metric("frames_dropped_total")
    links = running.get("topology")["links"]
    over = threading.Event()

    def flood() -> None:
        while not over.wait(0.001):  # some 20,000 a second; the switch has others to send, too
            for _ in range(20):
                switches[1].frame_in(1000, arp_from("src"))

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        for port in range(5000, 5020):
            number = running.ask("POST", "path-sets", PAIR)["id"]
            placed = running.ask("POST", f"path-sets/{number}/streams", {"ports": [port]})
            assert len(placed["paths"]) == 1
        assert [ends(link) for link in running.get("topology")["links"]] == [ends(link) for link in links]
    finally:
        over.set()
        flooding.join()
    assert running.metric("frames_dropped_total") > before


def ends(link: dict[str, Any]) -> tuple[str, str]:
    return link["from"], link["to"]
