"""Which address is believed when a server names one for data, and how we connect to it."""

import socket

import pytest
from free_ports import free_ports

from mpx.endpoints.ftp.data_address import believed_host
from mpx.errors import ConnectionLost, UsageError
from mpx.location import parse_location
from mpx.net import tcp
from mpx.options import CopyOptions
from mpx.serve import Server
from mpx.transfer.registry import open_endpoint

PUBLIC, OTHER_PUBLIC = "8.8.8.8", "9.9.9.9"


@pytest.mark.parametrize(
    ("named", "peer", "believed"),
    [
        (PUBLIC, PUBLIC, PUBLIC),
        (OTHER_PUBLIC, PUBLIC, OTHER_PUBLIC),  # a server may have its data elsewhere
        ("0.0.0.0", PUBLIC, PUBLIC),
        ("0.0.0.0", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", PUBLIC, PUBLIC),
        ("192.168.1.7", PUBLIC, PUBLIC),
        ("169.254.1.1", "10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("224.0.0.1", PUBLIC, PUBLIC),
        ("10.0.0.2", "10.0.0.1", "10.0.0.2"),
        ("192.168.1.7", "10.0.0.1", "192.168.1.7"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("10.0.0.2", "127.0.0.1", "10.0.0.2"),  # we reach it through a tunnel or a proxy
        (PUBLIC, "10.0.0.1", PUBLIC),
        ("10.0.0.1", "::ffff:8.8.8.8", "::ffff:8.8.8.8"),
    ],
)
def test_who_is_believed(named: str, peer: str, believed: str) -> None:
    assert believed_host(named, peer) == believed


def test_source_ports_serve_again_and_again() -> None:
    ports = free_ports(2)
    for _ in range(20):  # each leaves its port lingering here, since we close first
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = tcp.connect(server.getsockname()[:2], 5.0, source_ports=ports)
            theirs, address = server.accept()
            assert ports[0] <= address[1] <= ports[1]
            ours.close()
            assert theirs.recv(1) == b""
            theirs.close()


def test_when_no_port_is_free() -> None:
    ports = free_ports(2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.1", ports[0])),
        socket.create_server(("127.0.0.1", ports[1])),
    ):
        with pytest.raises(UsageError, match=f"no free port between {ports[0]} and {ports[1]}"):
            tcp.connect(server.getsockname()[:2], 5.0, source_ports=ports)
        with pytest.raises(UsageError, match=f"no free port between {ports[0]} and {ports[1]}"):
            tcp.listen("127.0.0.1", ports)


def test_a_refusal_is_no_lack_of_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()[:2]
    with pytest.raises(ConnectionLost, match="refused"):
        tcp.connect(address, 5.0, source_ports=free_ports(2))


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7", "localhost", "127.0.0.256", ""])
def test_what_is_no_address_of_ours(address: str) -> None:
    with pytest.raises(UsageError, match=f"{address} is not an address"):
        tcp.check_address(address)


def test_listings_keep_to_the_source_ports_too(server: Server) -> None:
    ports = free_ports(1)
    options = CopyOptions(source_ports=f"{ports[0]}-{ports[1]}")
    end = open_endpoint(parse_location(server.url), options, lambda: False, writing=False)
    try:
        assert [name for name, _ in end.entries(end.location.name)] == ["file"]
        with (
            socket.create_server(("127.0.0.1", ports[0])),
            pytest.raises(UsageError, match="no free port"),
        ):
            list(end.entries(end.location.name))
    finally:
        end.close()


def test_a_data_address_of_another_family(server: Server) -> None:
    options = CopyOptions(data_address="::1")
    end = open_endpoint(parse_location(server.url), options, lambda: False, writing=False)
    with pytest.raises(UsageError, match="--data-address ::1"):
        end.measure_rtt()
