"""Which cluster a server of XRootD is of: by names of its managers, as it tells them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mpx.endpoints.xrootd.clusters import is_of, managers, plain_address, plain_host


@pytest.mark.parametrize(
    ("answer", "hosts"),
    [
        (b"localhost:0/a\n", ["localhost"]),
        (b"Head.Example.ORG:1213/c other.example.org:1213/a\n\0", ["head.example.org", "other.example.org"]),
        (b"[::192.0.2.1]:1213/a", ["192.0.2.1"]),
        (b"none\n", []),
        (b"cms\n", []),
        (b"", []),
    ],
)
def test_managers(answer: bytes, hosts: list[str]) -> None:
    assert managers(answer) == hosts


@given(some.ip_addresses(v=4), some.integers(1, 65535))
def test_one_address_is_written_in_several_ways(address: ipaddress.IPv4Address, port: int) -> None:
    written = [f"{address}", f"[::{address}]", f"[::ffff:{address}]", f"user@{address}"]
    if int(address) > 0xFFFF:
        assert {plain_host(f"{each}:{port}") for each in written} == {str(address)}
        assert {plain_address(f"{each}:{port}") for each in written} == {f"{address}:{port}"}


@given(some.ip_addresses(v=6))
def test_addresses_of_six(address: ipaddress.IPv6Address) -> None:
    assert plain_host(f"[{address}]:1094") == plain_host(f"[{address.exploded}]") == plain_host(f"{address}")


@pytest.mark.parametrize(
    ("manager", "trusted", "expected"),
    [
        ("head.example.org", "head.example.org", True),
        ("m1.example.org", "xrootd.example.org", True),  # an alias of the head
        ("m1.grid.example.org", "xrootd.example.org", False),
        ("m1.other.org", "xrootd.example.org", False),
        ("example.org", "other.org", False),  # no domain of one owner
        ("head", "head2", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", False),
    ],
)
def test_whom_a_server_names(manager: str, trusted: str, expected: bool) -> None:
    assert is_of([manager], ["somewhere.example.net", trusted]) is expected
    assert not is_of([], [trusted])


@given(some.binary())
def test_anything_may_be_answered(answer: bytes) -> None:
    assert not is_of(managers(answer), ["head.example.invalid"])
