"""Sockets of Multipath TCP on loopback: what the kernel tells of them, and of those that turn out plain."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.ftp.mode_e.channel_opening import listening
from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.engine.carrier import StreamSettings
from mpx.engine.stream import StreamCounters
from mpx.net import congestion_control, mptcp, pacing, tcp, tcp_info

HERE = "127.0.0.1"
MANY = 3_000_000


@pytest.fixture
def at_the_end() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def pair(
    at_the_end: contextlib.ExitStack, *, asks: bool = True, answers: bool = True
) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection."""
    listener = at_the_end.enter_context(tcp.listen(HERE, None, over_mptcp=answers))
    opened = at_the_end.enter_context(tcp.connect(listener.getsockname(), 10, over_mptcp=asks, paced=True))
    return opened, at_the_end.enter_context(listener.accept()[0])


@pytest.mark.parametrize(("asks", "answers"), [(True, True), (True, False), (False, True), (False, False)])
def test_who_speaks_it(at_the_end: contextlib.ExitStack, *, asks: bool, answers: bool) -> None:
    for end in pair(at_the_end, asks=asks, answers=answers):
        info = mptcp.mptcp_info(end)
        assert (info.subflows if info else 0) == (1 if asks and answers else 0)


def test_all_bytes_are_counted(at_the_end: contextlib.ExitStack) -> None:
    sender, receiver = pair(at_the_end)
    sender.setblocking(False)
    sent = got = 0
    while got < MANY:
        with contextlib.suppress(BlockingIOError):
            sent += sender.send(bytes(min(65536, MANY - sent))) if sent < MANY else 0
        with contextlib.suppress(BlockingIOError):
            got += len(receiver.recv(65536, socket.MSG_DONTWAIT))
    while tcp_info.unacknowledged_bytes(sender):
        pass
    info, peer = mptcp.mptcp_info(sender), mptcp.mptcp_info(receiver)
    assert info is not None and peer is not None
    assert info.bytes_acked == peer.bytes_received == MANY
    told = tcp_info.tcp_info(sender)
    assert told is not None and told.bytes_acked == told.delivered_bytes == MANY and told.rtt_s > 0


def test_what_streams_are_given_works_on_them(at_the_end: contextlib.ExitStack) -> None:
    for end in pair(at_the_end):
        congestion_control.set_congestion(end, "reno")
        assert congestion_control.congestion_of(end) == "reno"
        pacing.limit_unsent(end, 65536)
        pacing.pace(end)
        assert not congestion_control.is_congestion_fixed(end)


def test_a_stream_tells_at_its_end_what_it_had(at_the_end: contextlib.ExitStack) -> None:
    told: list[int] = []
    for answers in (True, False):
        opened, _ = pair(at_the_end, answers=answers)
        stream = StreamCounters(told.append)
        stream.opened(opened)
        stream.closed(clean=True)
        stream.closed(clean=True)
    assert told == [1, 0]


def test_a_kernel_without_it(monkeypatch: pytest.MonkeyPatch, at_the_end: contextlib.ExitStack) -> None:
    monkeypatch.setattr(mptcp, "PROTOCOL", 263)  # nobody's
    mptcp.why_not.cache_clear()
    try:
        assert "net.mptcp.enabled" in mptcp.why_not()
        for end in pair(at_the_end):
            assert mptcp.mptcp_info(end) is None and tcp_info.tcp_info(end) is not None
    finally:
        mptcp.why_not.cache_clear()


@pytest.mark.parametrize("over_mptcp", [True, False])
def test_a_port_stays_open_for_further_subflows_only(*, over_mptcp: bool) -> None:
    """The kernel lets them in at a port that listens; nobody else is accepted there."""
    context = replace(a_context(), streams=StreamSettings(over_mptcp=over_mptcp))
    channel = DownloadDataChannel(context, 0, HERE)
    channel.start(listening(channel, tcp.listen(HERE, None, over_mptcp=over_mptcp), HERE))
    try:
        if not over_mptcp:
            channel._inbound.join(20)
            with pytest.raises(OSError):
                socket.create_connection(channel.address, timeout=20)
        else:
            socket.create_connection(channel.address, timeout=20).close()
            assert not channel.reached
    finally:
        channel.cut()
        channel.join()
    with pytest.raises(OSError):
        socket.create_connection(channel.address, timeout=20)
