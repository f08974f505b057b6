"""The delaying proxy when connections end, and the faults it makes."""

import contextlib
import random
import select
import socket

import pytest
from mpx_lab.proxy import DelayProxy
from unit.proxied import (
    PATIENCE_S,
    RESET_ON_CLOSE,
    accept,
    assert_nothing_has_come,
    assert_reset,
    is_refused,
    listen,
    read_all,
    read_line,
    send_and_end,
    world,
)


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
    with DelayProxy(address, rtt_s=0.01) as proxy:
        try:
            client = socket.create_connection((proxy.host, proxy.port), PATIENCE_S)
        except ConnectionResetError:  # so early
            return
        with client:
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
