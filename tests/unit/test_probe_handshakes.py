"""Probing by TCP handshakes against real sockets: open, closed and silent ports, and firewalls."""

import os
import socket
import struct
import time
from contextlib import closing

import pytest
from probe_peers import (
    HOSTS,
    WITHIN_S,
    answered,
    asks_many,
    family,
)

from mpx.rtt.methods.handshake import MANY_UNANSWERED, HandshakeMethod
from mpx.rtt.methods.icmp import checksum


@pytest.mark.parametrize("host", HOSTS)
def test_an_open_port_answers_handshakes(host: str) -> None:
    with socket.create_server((host, 0), family=family(host), backlog=50) as listening:
        with closing(HandshakeMethod(listening.getsockname()[:2])) as way:
            asks_many(way)
            assert way.is_open
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):  # no program hears of them, nor logs them
            listening.accept()


@pytest.mark.parametrize("host", HOSTS)
def test_the_reset_of_a_closed_port_is_an_answer(host: str) -> None:
    with socket.socket(family(host), socket.SOCK_STREAM) as closed:
        closed.bind((host, 0))
        with closing(HandshakeMethod(closed.getsockname()[:2])) as way:
            asks_many(way)
            assert not way.is_open


def test_a_port_that_is_silent_is_no_answer_and_holds_nobody_up() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)  # the kernel leaves what it has no room for unanswered
        with (
            socket.create_connection(deaf.getsockname()),
            closing(HandshakeMethod(deaf.getsockname())) as way,
        ):
            for number in range(5):
                way.ask(number)
            assert way.answers(time.monotonic()) == []
            assert way.trouble == ""


def test_a_handshake_that_took_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with (
            socket.create_connection(deaf.getsockname()),
            closing(HandshakeMethod(deaf.getsockname())) as way,
        ):
            monkeypatch.setattr(way, "lost_after_s", 0.0)
            way.ask(0)
            descriptors = len(os.listdir("/proc/self/fd"))
            for number in range(1, 5):
                way.ask(number)
            assert len(os.listdir("/proc/self/fd")) == descriptors


def test_where_no_way_leads_the_system_says_so() -> None:
    with closing(HandshakeMethod(("255.255.255.255", 9))) as way:
        way.ask(0)
        assert way.answers(time.monotonic()) == []
        assert "unreachable" in way.trouble.lower() or "permission" in way.trouble.lower()


def test_a_port_where_nobody_accepts_and_that_stops_answering_is_told() -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        closing(HandshakeMethod(full.getsockname())) as way,
    ):
        way.ask(0)
        answered(way, 1)
        with socket.create_connection(full.getsockname()):  # which nobody accepts
            for number in range(1, MANY_UNANSWERED + 1):
                assert way.trouble == ""
                way.ask(number)
            assert way.answers(time.monotonic()) == []
        assert way.is_open
        assert "does not accept connections" in way.trouble


# --- refused on the way ----------------------------------------------------------------------------


class Firewall:
    """Refuses by ICMP what a port is asked."""

    def __init__(self, host: str) -> None:
        self._version = 6 if ":" in host else 4
        protocol = socket.IPPROTO_ICMPV6 if self._version == 6 else socket.IPPROTO_ICMP
        try:
            self._seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            self._said = socket.socket(family(host), socket.SOCK_RAW, protocol)
        except PermissionError:
            pytest.skip("needs root, to be a firewall")
        self._seen.settimeout(WITHIN_S)

    def refuse(self, host: str, port: int) -> None:
        """Wait for the next SYN to that port and refuse it: destination unreachable, port."""
        while True:
            packet = self._seen.recv(2000)
            header = 40 if self._version == 6 else 4 * (packet[0] & 0xF)
            is_tcp = packet[6 if self._version == 6 else 9] == socket.IPPROTO_TCP
            if packet[0] >> 4 == self._version and is_tcp:
                _, asked = struct.unpack_from("!HH", packet, header)
                if asked == port and packet[header + 13] & 0x12 == 0x02:
                    break
        kind, code = (1, 4) if self._version == 6 else (3, 3)
        rest = bytes(4) + packet[: header + 20] + bytes((header + 20) % 2)
        sum_ = checksum(struct.pack("!BBH", kind, code, 0) + rest)  # of IPv6 the kernel puts it right
        self._said.sendto(struct.pack("!BBH", kind, code, sum_) + rest, (host, 0))

    def close(self) -> None:
        self._seen.close()
        self._said.close()


@pytest.mark.parametrize("host", HOSTS)
def test_a_firewall_that_refuses_by_icmp_is_no_answer(host: str) -> None:
    """Its address is not the target's, and kernels limit how often it says so: no RTT, and false loss."""
    with socket.socket(family(host)) as deaf:
        deaf.bind((host, 0))
        deaf.listen(0)  # the kernel leaves what it has no room for unanswered
        address = deaf.getsockname()[:2]
        with (
            socket.create_connection(address),
            closing(Firewall(host)) as firewall,
            closing(HandshakeMethod(address)) as way,
        ):
            way.ask(0)
            way.ask(1)
            firewall.refuse(host, address[1])
            assert way.answers(time.monotonic() + 0.5) == []
            assert way.trouble == f"a firewall refuses (ICMP from {host})"
            assert not way.is_open
