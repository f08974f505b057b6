"""The delaying proxy between plain sockets: every time is checked from below only, bytes exactly."""

import hashlib
import re
import socket
import threading
import time

import pytest
from mpx_lab.proxy import BUCKET_S, DelayProxy
from mpx_lab.proxy.path import CREDIT_S
from mpx_lab.proxy.session import MOST_LISTENERS
from random_bytes import random_bytes
from unit.proxied import PATIENCE_S, accept, is_refused, listen, read_all, read_line, send_and_end, world

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
    up, down = random_bytes(50_000_000), random_bytes(50_000_000)
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


def test_a_client_that_asks_for_a_port_per_file_does_not_exhaust_us() -> None:
    with world() as path:
        announced = [path.passive() for _ in range(MOST_LISTENERS + 1)]
        assert is_refused(announced[0][1])
        path.data(announced[1])
        path.data(announced[-1])
