"""MODE E framing as literal bytes: headers, ends of data and of files, markers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.framing import (
    CLOSE,
    EOD,
    LEAST_STEP_BYTES,
    MOST_STEPS,
    BlockHeader,
    MarkerProgress,
    ReceivedEnds,
    checksum_marker,
    end_of_data,
    marker_bytes,
    performance_marker,
    range_marker,
    restart_marker,
    unpack_header,
)
from mpx.endpoints.ftp.wire import Reply, ReplyReader


def test_block_headers_on_the_wire():
    assert BlockHeader(0, 262144, 1048576).pack() == bytes.fromhex("0000000000000400000000000000100000")
    end = end_of_data(9)
    assert end.pack() == bytes.fromhex("4800000000000000000000000000000009")
    assert unpack_header(end.pack()).total_streams == 9
    assert unpack_header(end.pack()).ends_data
    assert unpack_header(bytes.fromhex("4000000000000000ff0000000000000003")).count == 0
    assert unpack_header(BlockHeader(EOD, 10, 5).pack()).total_streams is None


def test_blocks_out_of_step_are_refused():
    with pytest.raises(ValueError, match="out of range"):
        unpack_header(b"\x00" + b"\xff" * 16)
    with pytest.raises(ValueError, match="CLOSE"):
        unpack_header(BlockHeader(CLOSE, 1, 0).pack())


@given(st.integers(1, 8), st.integers(0, 8), st.randoms())
def test_a_transfer_is_whole_with_its_last_eod_wherever_the_eof_comes(streams, place, random):
    events = ["eod"] * streams
    events.insert(min(place, streams), "eof")
    end = ReceivedEnds()
    for i, event in enumerate(events):
        assert not end.is_complete
        if event == "eod":
            end.end_of_data()
        else:
            end.end_of_file(streams)
        assert end.is_complete == (i == streams)


def test_an_eof_that_announces_too_few_ends_the_transfer_and_too_many_do_not():
    few, many = ReceivedEnds(), ReceivedEnds()
    few.end_of_data()
    few.end_of_data()
    few.end_of_file(1)
    assert few.is_complete
    many.end_of_data()
    many.end_of_file(2)
    assert not many.is_complete


def test_markers_as_bytes():
    assert performance_marker(1795222114.94, 17825792) == (
        b"112-Perf Marker\r\n Timestamp:  1795222114.9\r\n Stripe Index: 0\r\n"
        b" Stripe Bytes Transferred: 17825792\r\n Total Stripe Count: 1\r\n112 End.\r\n"
    )
    assert restart_marker([(0, 100), (200, 300)]) == b"111 Range Marker 0-100,200-300\r\n"
    assert checksum_marker(1.25, 5) == (
        b"113-Status Marker\r\n Timestamp: 1.2\r\n Bytes Processed: 5\r\n113 End.\r\n"
    )


def test_restart_markers():
    (reply,) = ReplyReader().feed(b"111 Range Marker 0-682622976,682885120-683671552\r\n")
    assert reply.is_marker
    assert range_marker(reply) == [(0, 682622976), (682885120, 683671552)]


def test_how_far_markers_say_that_it_is():
    (perf,) = ReplyReader().feed(
        b"112-Perf Marker\r\n Timestamp:  1795222114.9\r\n Stripe Index: 0\r\n"
        b" Stripe Bytes Transferred: 17825792\r\n Total Stripe Count: 1\r\n112 End.\r\n"
    )
    (summing,) = ReplyReader().feed(
        b"113-Status Marker\r\n Timestamp: 1\r\n Bytes Processed: 7\r\n113 End.\r\n"
    )
    assert marker_bytes(perf) == 17825792
    assert marker_bytes(summing) == 7
    assert marker_bytes(Reply(111, ("Range Marker 0-5,9-12",))) == 12
    assert marker_bytes(Reply(111, ("Range Marker",))) == 0


def claims(work_bytes, step_bytes):
    """Return how many of the markers of a server that claims more without end show progress."""
    progress = MarkerProgress(work_bytes)
    marker = "Range Marker 0-{}".format
    told = range(step_bytes, 2 * work_bytes + 100 * step_bytes, step_bytes)
    return sum(progress.is_made(Reply(111, (marker(come),))) for come in told)


@pytest.mark.parametrize(
    ("work_bytes", "step_bytes", "most"),
    [
        (0, LEAST_STEP_BYTES, 0),
        (LEAST_STEP_BYTES - 1, 1000, 0),
        (64 << 20, 1 << 20, 64),
        (64 << 20, 1000, 64),
        (1 << 40, 1 << 27, MOST_STEPS),
    ],
)
def test_markers_show_progress_no_more_often_than_there_is_any(work_bytes, step_bytes, most):
    assert 0.9 * most <= claims(work_bytes, step_bytes) <= most
