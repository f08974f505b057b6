"""Handshakes that one host forges with two hardware addresses of its own take nobody else's connections."""

import pytest
from graphs import THESIS_A
from mptcp_frames import capable, segment
from mptcp_wans import BETWEEN, KEY_B, MORE, connect, of, spread, steering, way
from mpx_controller.mptcp.segment import ACK, FIN, RST, SYN
from mpx_controller.state_file import read_state, state_text
from switches import Wan, address, arp_from
from wans import ENDS

PORTS = (4000, 5001)


def with_a_forger() -> Wan:
    """Return a network where src speaks to dst, and evil (at the switch of src) is its own peer, twin."""
    wan = spread(THESIS_A, {**ENDS, "evil": 1})
    for name in ("evil", "twin"):
        wan.send("evil", arp_from(name))
    return wan


def forge(wan: Wan, source: str, sink: str, key: int = KEY_B, ports: tuple[int, int] = PORTS) -> None:
    """Have evil and twin connect to each other as these addresses."""
    asks, answer = capable(1), capable(1, key)
    wan.send("evil", segment("evil", "twin", ports, SYN, asks, (source, sink)))
    wan.send("evil", segment("twin", "evil", ports[::-1], SYN | ACK, answer, (sink, source)))
    wan.received.clear()


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        (address("src"), address("dst")),
        (address("dst"), address("src")),
        (MORE[0], address("dst")),
        (address("src"), MORE[0]),
    ],
)
def test_addresses_of_others_are_not_believed(source: str, sink: str) -> None:
    wan = with_a_forger()
    forge(wan, source, sink)
    assert not steering(wan) and not of(wan).connections.all
    assert way(wan) == BETWEEN[0] and [host for host, _ in wan.received] == ["dst", "src"]


def test_addresses_that_nobody_is_known_to_have_catch_no_frames_of_others() -> None:
    wan = with_a_forger()
    forge(wan, MORE[0], MORE[1])
    assert len(steering(wan)) == 6
    for data in (
        segment("src", "dst", PORTS, ACK, b"", (MORE[0], MORE[1])),
        segment("src", "dst", PORTS, FIN | ACK, b"", (MORE[0], MORE[1])),
        segment("src", "dst", PORTS, RST, b"", (MORE[0], MORE[1])),
    ):
        wan.received.clear()
        assert wan.switches_passed("src", data) == BETWEEN[0][0]
        assert [host for host, _ in wan.received] == ["dst"]
    assert len(steering(wan)) == 6


def test_a_connection_that_is_there_stays_whoever_opens_it_again() -> None:
    wan = with_a_forger()
    asks, answer = capable(1), capable(1, KEY_B)
    wan.send("src", segment("src", "dst", PORTS, SYN, asks, (MORE[0], MORE[1])))
    wan.send("dst", segment("dst", "src", PORTS[::-1], SYN | ACK, answer, (MORE[1], MORE[0])))
    there, known = steering(wan), of(wan).subflows
    assert len(there) == 10
    forge(wan, MORE[0], MORE[1], key=99)
    forge(wan, MORE[1], MORE[0], key=99, ports=PORTS[::-1])
    assert steering(wan) == there and of(wan).subflows == known


def test_hardware_addresses_that_cannot_be_are_not_restored() -> None:
    wan = spread(THESIS_A)
    connect(wan)
    text = state_text([], 0, [], wan.now_s, wan.mptcp)
    (subflow,) = of(wan).subflows.values()
    assert read_state(text, wan.now_s).mptcp is not None
    with pytest.raises(ValueError, match="hardware address"):
        read_state(text.replace(subflow.hardware[0], "somewhere"), wan.now_s)
