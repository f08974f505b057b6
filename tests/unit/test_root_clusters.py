"""Which cluster a server of XRootD is of: by names of its managers, as it tells."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mpx.endpoints.xrootd.clusters import cluster, is_of, only_manager, plain_address, plain_host


@pytest.mark.parametrize(
    ("answer", "host"),
    [
        (b"1213localhost\n", "localhost"),
        (b"1213Head.Example.ORG\n\0", "head.example.org"),
        (b"1213head1.example.org\n", "head1.example.org"),
        (b"1213head21213head1.example.org\n", "head21213head1.example.org"),  # no host
        (b"cid\n", ""),
        (b"anon\xff\n", ""),
        (b"", ""),
    ],
)
def test_the_manager(answer: bytes, host: str) -> None:
    assert only_manager(cluster(answer)) == host


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
    ("told", "trusted", "expected"),
    [
        ("1213head.example.org", "head.example.org", True),
        ("1213m1.example.org", "xrootd.example.org", True),  # an alias of the head
        ("1213m21213m1.example.org", "xrootd.example.org", True),
        ("1213m1.grid.example.org", "xrootd.example.org", False),
        ("1213m1.other.org", "xrootd.example.org", False),
        ("1213m1.other.org", "example.org", False),  # `org` is no domain of one owner
        ("1213head", "head", True),
        ("1213head", "head2", False),
        ("1213head", "ead", False),
        ("121327.0.0.1", "27.0.0.1", False),  # or 7.0.0.1
        ("cid", "cid", False),
        ("anon.example.org", "head.example.org", False),  # of no cluster
        ("1213", "", False),
        ("", "", False),
    ],
)
def test_of_which_cluster_a_server_is(told: str, trusted: str, expected: bool) -> None:
    assert is_of(told, ["somewhere.example.net", trusted]) is expected


@given(some.binary())
def test_anything_may_be_answered(answer: bytes) -> None:
    assert not is_of(cluster(answer), ["head.example.invalid", "head", "192.0.2.1"])
    assert not only_manager(cluster(answer)).startswith("-")
