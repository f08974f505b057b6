"""The delaying proxy between plain sockets: every time is checked from below only, bytes exactly."""

import contextlib
import hashlib
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mpx_lab.proxy import BUCKET_S, ConnectionRecord, DelayProxy, Record, longest_gap_s
from mpx_lab.proxy.path import CREDIT_S
from mpx_lab.proxy.session import MOST_LISTENERS

PATIENCE_S = 30
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class World:
    """A client and a server with a control connection through the proxy; the server's side is ours."""

    proxy: DelayProxy
    client: socket.socket
    server: socket.socket
    opened: list[socket.socket] = field(default_factory=list)

    def passive(self) -> tuple[socket.socket, tuple[str, int]]:
        """Have the server announce a port; return its listener and the address the client is told."""
        listener = self.keep(listen(self.server.getsockname()[0]))
        port = listener.getsockname()[1]
        self.server.sendall(b"229 Entering Extended Passive Mode (|||%d|)\r\n" % port)
        told = re.search(rb"\|\|\|(\d+)\|", read_line(self.client))
        assert told
        assert int(told[1]) != port
        return listener, (self.proxy.host, int(told[1]))

    def data(self, passive: tuple[socket.socket, tuple[str, int]]) -> tuple[socket.socket, socket.socket]:
        """Open a data connection from the client; return the client's and the server's socket."""
        listener, address = passive
        client = self.keep(socket.create_connection(address, PATIENCE_S))
        return client, self.keep(accept(listener))

    def keep(self, sock: socket.socket) -> socket.socket:
        self.opened.append(sock)
        return sock


def listen(host: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family, backlog=64)
    listener.settimeout(PATIENCE_S)
    return listener


def accept(listener: socket.socket) -> socket.socket:
    accepted, _ = listener.accept()
    accepted.settimeout(PATIENCE_S)
    return accepted


def read_line(sock: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = sock.recv(1)
        assert byte, f"the connection ended after {line!r}"
        line += byte
    return line


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(1 << 20), b""))


@contextlib.contextmanager
def world(host: str = "127.0.0.1", **options: float) -> Iterator[World]:
    with (
        listen(host) as front,
        DelayProxy((host, front.getsockname()[1]), host=host, **{"rtt_s": 0.0, **options}) as proxy,
        socket.create_connection((host, proxy.port), PATIENCE_S) as client,
        accept(front) as server,
    ):
        made = World(proxy, client, server)
        try:
            yield made
        finally:
            for sock in made.opened:
                sock.close()


def assert_nothing_has_come(sock: socket.socket) -> None:
    assert select.select([sock], [], [], 0) == ([], [], [])


def assert_reset(sock: socket.socket) -> None:
    with pytest.raises(ConnectionResetError):
        while sock.recv(1 << 20):
            pass


# Delay and rate


def test_the_handshake_and_every_answer_take_their_time() -> None:
    rtt_s = 0.06
    with listen() as front, DelayProxy(front.getsockname(), rtt_s=rtt_s) as proxy:
        began_s = time.monotonic()
        with (
            socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as client,
            accept(front) as server,
        ):
            assert time.monotonic() - began_s >= rtt_s / 2
            server.sendall(b"220 ready\r\n")
            assert read_line(client) == b"220 ready\r\n"
            assert time.monotonic() - began_s >= 2 * rtt_s
            for _ in range(3):
                began_s = time.monotonic()
                client.sendall(b"NOOP\r\n")
                assert read_line(server) == b"NOOP\r\n"
                assert time.monotonic() - began_s >= rtt_s / 2
                server.sendall(b"200 \r\n")
                assert read_line(client) == b"200 \r\n"
                assert time.monotonic() - began_s >= rtt_s


def test_what_the_client_says_first_arrives_after_one_and_a_half_round_trips() -> None:
    with listen() as front, DelayProxy(front.getsockname(), rtt_s=0.06) as proxy:
        began_s = time.monotonic()
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as client:
            client.sendall(b"FEAT\r\n")
            with accept(front) as server:
                assert read_line(server) == b"FEAT\r\n"
                assert time.monotonic() - began_s >= 0.09


@pytest.mark.parametrize(("options", "connections"), [({"rate_bps": 16e6}, 1), ({"total_rate_bps": 16e6}, 3)])
def test_no_more_passes_than_the_rate_allows(options: dict[str, float], connections: int) -> None:
    size, rate_bps = 600_000, 16e6
    with world(**options) as path:
        passive = path.passive()
        pairs = [path.data(passive) for _ in range(connections)]
        senders = [threading.Thread(target=send_and_end, args=(pair[0], bytes(size))) for pair in pairs]
        began_s = time.monotonic()
        for sender in senders:
            sender.start()
        for _, server in pairs:
            assert len(read_all(server)) == size
        took_s = time.monotonic() - began_s
        for sender in senders:
            sender.join(PATIENCE_S)
        record = path.proxy.record()
    assert took_s >= size * connections * 8 / rate_bps - CREDIT_S
    assert record.up_bytes == size * connections
    first_s = min(connection.opened_s for connection in record.connections if connection.kind == "data")
    so_far = 0
    for bucket, count in sorted(record.up.items()):
        so_far += count
        assert so_far * 8 <= rate_bps * ((bucket + 1) * BUCKET_S - first_s + CREDIT_S)


def send_and_end(sock: socket.socket, data: bytes) -> None:
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def test_a_total_rate_is_shared_by_all_connections() -> None:
    with world(total_rate_bps=40e6) as path:
        passive = path.passive()
        pairs = [path.data(passive) for _ in range(4)]
        stop = threading.Event()
        senders = [threading.Thread(target=send_until, args=(client, stop)) for client, _ in pairs]
        readers = [threading.Thread(target=read_until_end, args=(server,)) for _, server in pairs]
        for thread in senders + readers:
            thread.start()
        while path.proxy.record().up_bytes < 4_000_000:
            time.sleep(0.01)
        record = path.proxy.record()
        stop.set()
        for thread in senders + readers:
            thread.join(PATIENCE_S)
    shares = [connection.up_bytes for connection in record.connections if connection.kind == "data"]
    assert min(shares) >= 0.25 * sum(shares) / len(shares)


def send_until(sock: socket.socket, stop: threading.Event) -> None:
    while not stop.is_set():
        sock.sendall(bytes(100_000))
    sock.close()


def read_until_end(sock: socket.socket) -> None:
    while sock.recv(1 << 20):
        pass


# Bytes


def test_50_mb_each_way_arrive_as_they_were_sent() -> None:
    up, down = os.urandom(50_000_000), os.urandom(50_000_000)
    with world(rtt_s=0.004) as path:
        client, server = path.data(path.passive())
        arrived: dict[str, str] = {}

        def read(name: str, sock: socket.socket) -> None:
            arrived[name] = hashlib.sha256(read_all(sock)).hexdigest()

        threads = [
            threading.Thread(target=send_and_end, args=pair) for pair in ((client, up), (server, down))
        ]
        threads += [threading.Thread(target=read, args=pair) for pair in (("up", server), ("down", client))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        record = path.proxy.record()
    assert arrived == {"up": hashlib.sha256(up).hexdigest(), "down": hashlib.sha256(down).hexdigest()}
    assert (record.up_bytes, record.down_bytes) == (len(up), len(down))


def test_many_small_writes_keep_their_order() -> None:
    with world(rtt_s=0.002) as path:
        client, server = path.data(path.passive())
        pieces = [b"%d," % number for number in range(3000)]
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        assert read_all(server) == b"".join(pieces)


def test_a_window_holds_the_sender_back() -> None:
    window = 64 * 1024
    with world(rtt_s=0.05, window_bytes=window) as path:
        client, server = path.data(path.passive())
        sent = 40 * window
        sender = threading.Thread(target=send_and_end, args=(client, bytes(sent)))
        began_s = time.monotonic()
        sender.start()
        assert len(read_all(server)) == sent
        # One window at most in each one-way delay; the last has left before the time is up.
        assert time.monotonic() - began_s >= (sent / window - 1) * 0.025
        sender.join(PATIENCE_S)


# Data connections


def test_one_announced_port_takes_connections_as_long_as_the_session_lives() -> None:
    with world() as path:
        passive = path.passive()
        first = [path.data(passive) for _ in range(5)]
        for client, server in first:
            client.close()
            assert read_all(server) == b""
            server.close()
        client, server = path.data(passive)
        client.sendall(b"later")
        assert server.recv(5) == b"later"


def test_the_server_connects_to_the_client_through_the_proxy() -> None:
    with world() as path:
        listener = path.keep(listen())
        port = listener.getsockname()[1]
        path.client.sendall(b"PORT 127,0,0,1,%d,%d\r\n" % divmod(port, 256))
        line = read_line(path.server)
        numbers = [int(number) for number in line.split()[1].split(b",")]
        told = numbers[4] * 256 + numbers[5]
        assert told != port
        server = path.keep(socket.create_connection(("127.0.0.1", told), PATIENCE_S))
        client = path.keep(accept(listener))
        server.sendall(b"download")
        assert client.recv(8) == b"download"
        record = path.proxy.record()
    assert (record.up_bytes, record.down_bytes) == (0, 8)
    assert [connection.opened_by for connection in record.connections] == ["client", "server"]


def test_ipv6_both_ways() -> None:
    with world(host="::1") as path:
        client, server = path.data(path.passive())
        client.sendall(b"up")
        assert server.recv(2) == b"up"
        listener = path.keep(listen("::1"))
        path.client.sendall(b"EPRT |2|::1|%d|\r\n" % listener.getsockname()[1])
        command = read_line(path.server)
        told = re.fullmatch(rb"EPRT \|2\|::1\|(\d+)\|\r\n", command)
        assert told
        server = path.keep(socket.create_connection(("::1", int(told[1])), PATIENCE_S))
        client = path.keep(accept(listener))
        server.sendall(b"down")
        assert client.recv(4) == b"down"


def test_listeners_close_with_the_session_but_not_before_its_data_connections(eventually) -> None:
    with world() as path:
        passive = path.passive()
        client, server = path.data(passive)
        path.client.close()
        assert path.server.recv(1) == b""
        path.server.close()
        eventually(lambda: path.proxy.record().connections[0].ended_by == "close")
        client.sendall(b"still here")
        assert server.recv(10) == b"still here"
        another = path.data(passive)
        for sock in (client, server, *another):
            sock.close()
        eventually(lambda: path.proxy.open_data_connections() == [])
        assert is_refused(passive[1])


def is_refused(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, PATIENCE_S).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_client_that_asks_for_a_port_per_file_does_not_exhaust_us() -> None:
    with world() as path:
        announced = [path.passive() for _ in range(MOST_LISTENERS + 1)]
        assert is_refused(announced[0][1])
        path.data(announced[1])
        path.data(announced[-1])


# Ends


def test_a_half_close_follows_the_bytes_and_leaves_the_other_direction_open() -> None:
    with world(rtt_s=0.02) as path:
        client, server = path.data(path.passive())
        send_and_end(client, b"question")
        assert read_all(server) == b"question"
        send_and_end(server, b"answer")
        assert read_all(client) == b"answer"
        client.close()
        server.close()


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_reset_is_passed_on_without_waiting_for_bytes(who: str, eventually) -> None:
    with world(rate_bps=400e3) as path:
        client, server = path.data(path.passive())
        victim, other = (client, server) if who == "client" else (server, client)
        victim.setblocking(False)
        queued = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                queued += victim.send(bytes(65536))
        assert queued * 8 / 400e3 > 2  # seconds it would take
        victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        victim.close()
        assert_reset(other)
        eventually(lambda: path.proxy.record().connections[-1].ended_by == "reset")
        log = path.proxy.record().connections[-1]
        assert log.up_bytes + log.down_bytes < queued
        path.data(path.passive())  # the session lives on


def test_a_reset_is_noticed_while_nobody_reads(eventually) -> None:
    with world() as path:
        client, _ = path.data(path.passive())
        client.setblocking(False)
        while select.select([], [client], [], 0.3)[1]:  # no room for a while: the window is full
            client.send(bytes(65536))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        client.close()
        eventually(lambda: path.proxy.record().connections[-1].ended_by == "reset")


def test_nobody_behind_the_proxy_is_a_reset() -> None:
    with listen() as front:
        address = front.getsockname()
    with (
        DelayProxy(address, rtt_s=0.01) as proxy,
        socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as client,
    ):
        assert_reset(client)


def test_stopping_resets_what_is_open_and_keeps_the_record() -> None:
    with world() as path:
        client, server = path.data(path.passive())
        client.sendall(b"12345")
        assert server.recv(5) == b"12345"
        path.proxy.stop()
        assert_reset(client)
        assert_reset(server)
        assert_reset(path.client)
        record = path.proxy.record()
        assert record.up_bytes == 5
        assert [connection.ended_by for connection in record.connections] == ["reset", "reset"]
        assert path.proxy.open_data_connections() == []


# Faults


def test_resetting_one_connection_leaves_the_others() -> None:
    with world() as path:
        passive = path.passive()
        pairs = [path.data(passive) for _ in range(3)]
        numbers = path.proxy.open_data_connections()
        assert numbers == [1, 2, 3]
        assert path.proxy.reset_data_connection(2) == 2
        for sock in pairs[1]:
            assert_reset(sock)
        for client, server in (pairs[0], pairs[2]):
            client.sendall(b"x")
            assert server.recv(1) == b"x"
        chosen = random.Random(7).choice([1, 3])
        assert path.proxy.reset_data_connection(rng=random.Random(7)) == chosen
        with pytest.raises(LookupError, match="no data connection number 2 is open"):
            path.proxy.reset_data_connection(2)


def test_a_stalled_connection_says_nothing_until_it_is_resumed() -> None:
    with world() as path:
        passive = path.passive()
        stalled, healthy = path.data(passive), path.data(passive)
        assert path.proxy.stall_data_connection(1) == 1
        stalled[0].sendall(b"late")
        healthy[0].sendall(b"on time")
        assert healthy[1].recv(7) == b"on time"
        assert_nothing_has_come(stalled[1])
        path.proxy.drop_everything()
        path.proxy.restore()
        healthy[0].sendall(b"again")
        assert healthy[1].recv(5) == b"again"
        assert_nothing_has_come(stalled[1])
        path.proxy.resume_data_connection(1)
        assert stalled[1].recv(4) == b"late"


def test_a_lost_network_freezes_everything_and_forgets_nothing() -> None:
    with world() as path:
        passive = path.passive()
        client, server = path.data(passive)
        path.proxy.drop_everything()
        client.sendall(b"data")
        path.client.sendall(b"NOOP\r\n")
        newcomer = path.keep(socket.create_connection(passive[1], PATIENCE_S))
        newcomer.sendall(b"new")
        gone = path.keep(socket.create_connection((path.proxy.host, path.proxy.port), PATIENCE_S))
        gone.close()
        for _ in range(20):
            path.proxy.record()  # each answer is another round of the proxy's loop
        assert_nothing_has_come(server)
        assert_nothing_has_come(path.server)
        path.proxy.restore()
        assert server.recv(4) == b"data"
        assert read_line(path.server) == b"NOOP\r\n"
        assert path.keep(accept(passive[0])).recv(3) == b"new"


def test_new_connections_are_refused_and_old_ones_go_on() -> None:
    with world() as path:
        passive = path.passive()
        client, server = path.data(passive)
        path.proxy.refuse_new(True)
        assert is_refused((path.proxy.host, path.proxy.port))
        assert is_refused(passive[1])
        client.sendall(b"old")
        assert server.recv(3) == b"old"
        assert is_refused(path.passive()[1])
        path.proxy.refuse_new(False)
        path.data(passive)


# Record


def test_the_longest_gap_is_between_bytes_and_in_the_chosen_direction() -> None:
    record = Record(0, up={10: 1, 11: 1, 15: 1, 40: 1}, down={20: 9, 22: 9})
    assert longest_gap_s(record, "up") == pytest.approx(24 * BUCKET_S)
    assert longest_gap_s(record, "down") == pytest.approx(BUCKET_S)
    assert longest_gap_s(record) == pytest.approx(17 * BUCKET_S)
    assert longest_gap_s(Record(0)) == 0
    assert longest_gap_s(Record(0, up={3: 1})) == 0


def test_the_record_as_json() -> None:
    record = Record(12.5, {3: 7, 1: 5}, {}, [ConnectionRecord(0, "data", "client", 0.5, 1.0, "close", 12, 0)])
    assert json.loads(record.to_json()) == {
        "bucket_s": 0.005,
        "up_bytes": 12,
        "down_bytes": 0,
        "started_unix_s": 12.5,
        "up": [[1, 5], [3, 7]],
        "down": [],
        "connections": [
            {
                "number": 0,
                "kind": "data",
                "opened_by": "client",
                "opened_s": 0.5,
                "closed_s": 1.0,
                "ended_by": "close",
                "up_bytes": 12,
                "down_bytes": 0,
            }
        ],
    }


# Command


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_a_signal_and_writes_its_record(
    ending: signal.Signals, tmp_path: Path
) -> None:
    record = tmp_path / "record.json"
    with listen() as front:
        arguments = ["--to", f"127.0.0.1:{front.getsockname()[1]}", "--rtt", "2ms", "--rate", "800Mbit/s"]
        arguments += ["--total-rate", "1Gbit/s", "--window", "1MiB", "--record", str(record)]
        command = [sys.executable, "-m", "mpx_lab.proxy", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ready = re.fullmatch(r"proxy ready: ftp://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
            assert ready
            with (
                socket.create_connection(("127.0.0.1", int(ready[1])), PATIENCE_S) as client,
                accept(front) as server,
            ):
                server.sendall(b"220 hello\r\n")
                assert read_line(client) == b"220 hello\r\n"
            process.send_signal(ending)
            assert process.wait(PATIENCE_S) == 0
    assert json.loads(record.read_text())["connections"][0]["down_bytes"] == len(b"220 hello\r\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--to", "nowhere"], "127.0.0.1:2811"), (["--to", "127.0.0.1:1", "--rtt", "30"], "30s or 250ms")],
)
def test_the_command_says_how_to_write_it(arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "mpx_lab.proxy", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert words in done.stderr
