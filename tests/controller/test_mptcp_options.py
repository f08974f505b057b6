"""What frames of Multipath TCP say: those of Linux, those of the thesis, and any bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mptcp_frames import (
    ALL,
    ANSWER,
    DATA,
    FINISH,
    JOIN,
    JOIN_ANSWER,
    JOIN_THIRD,
    KEYS,
    SYN_IPV6,
    THIRD,
    WITH_DATA,
)
from mptcp_frames import SYN as FIRST
from mpx_controller.mptcp.option import Capable, Join, mptcp_option, token_of
from mpx_controller.mptcp.segment import FIN, SYN, FourTuple, is_tcp, read_segment

OF_THESIS = bytes.fromhex("1e0c00819ae77d36b25a7538")  # of nakasan, figure 3.4


def option_of(frame: bytes) -> Capable | Join | None:
    read = read_segment(frame)
    assert read is not None
    return read.option


def test_the_packet_of_the_thesis() -> None:
    assert mptcp_option(OF_THESIS) == Capable(0, 11162027875335042360)
    assert token_of(11162027875335042360, 0) == 0xEBC169A0


def test_a_connection_of_linux() -> None:
    mine, others = KEYS
    assert option_of(FIRST) == Capable(1)
    assert option_of(ANSWER) == Capable(1, others)
    assert option_of(THIRD) == option_of(WITH_DATA) == Capable(1, mine, others)
    assert option_of(JOIN) == Join(token_of(others, 1))
    assert option_of(JOIN_ANSWER) == option_of(JOIN_THIRD) == Join()
    assert option_of(DATA) is None and option_of(FINISH) is None
    assert option_of(SYN_IPV6) == Capable(1)


def test_whose_they_are() -> None:
    read = read_segment(FIRST)
    assert read is not None and read.flags == SYN
    assert (read.sender, read.receiver) == ("02:00:00:00:00:0a", "02:00:00:00:00:0b")
    assert read.ends == FourTuple("10.9.0.1", 59834, "10.9.0.2", 5001)
    back = read_segment(ANSWER)
    assert back is not None and back.ends == read.ends.reverse
    finished = read_segment(FINISH)
    assert finished is not None and finished.ends == read.ends and finished.flags & FIN
    other = read_segment(SYN_IPV6)
    assert other is not None and other.ends == FourTuple("fd09::1", 42084, "fd09::2", 5001)


def test_what_is_no_beginning_of_a_segment() -> None:
    udp, later_fragment = bytearray(FIRST), bytearray(FIRST)
    udp[23] = 17
    later_fragment[21] = 1
    for frame in (bytes(udp), bytes(later_fragment), FIRST[:40], b""):
        assert read_segment(frame) is None


def test_a_checksum_beside_the_keys() -> None:
    keys = (5).to_bytes(8, "big") + (6).to_bytes(8, "big")
    for more in (b"", b"\0\5", b"\0\5\1\2"):
        assert mptcp_option(bytes([30, 20 + len(more), 1, 1]) + keys + more) == Capable(1, 5, 6)


@pytest.mark.parametrize(
    "options",
    [
        b"",
        b"\x02\x04\x05\xb4",
        b"\x00" + OF_THESIS,  # after the end of all
        b"\x02\x00" + OF_THESIS,  # of no length
        b"\x02\x01" + OF_THESIS,
        OF_THESIS[:-1],  # cut off
        b"\x1e",
        b"\x1e\x02",
        b"\x1e\x05\x01\x01\x01",  # of a length that it has not
        b"\x1e\x08\x20\x01\x00\x00\x00\x00",  # a DSS
    ],
)
def test_options_without_one(options: bytes) -> None:
    assert mptcp_option(options) is None


def test_it_is_found_among_others() -> None:
    others = b"\x02\x04\x05\xb4\x01\x01\x08\x0a12345678" + b"\x1e\x08\x20\x01\x00\x00\x00\x00"
    assert mptcp_option(others + OF_THESIS + b"\x01") == mptcp_option(OF_THESIS)


@given(st.binary(max_size=40))
@example(b"\x01" * 40)
def test_any_options_are_read(options: bytes) -> None:
    assert isinstance(mptcp_option(options), Capable | Join | None)


@given(st.binary(max_size=120))
def test_any_frame_is_read(data: bytes) -> None:
    read_segment(data)
    is_tcp(data)


@given(
    st.sampled_from(ALL),
    st.lists(st.tuples(st.integers(0, 130), st.integers(0, 255)), max_size=6),
    st.integers(0, 130),
)
def test_broken_frames_are_read(frame: bytes, changes: list[tuple[int, int]], length: int) -> None:
    broken = bytearray(frame)
    for at, value in changes:
        broken[at % len(broken)] = value
    for data in (bytes(broken), bytes(broken[:length])):
        read = read_segment(data)
        assert read is None or isinstance(read.option, Capable | Join | None)


@given(st.sampled_from(ALL))
def test_frames_with_tcp_are_known(frame: bytes) -> None:
    assert is_tcp(frame) and not is_tcp(frame[:12] + b"\x08\x06" + frame[14:]) and not is_tcp(frame[:20])
