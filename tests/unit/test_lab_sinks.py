"""Receivers of background traffic say so when they can take no more."""

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from mpx_lab.traffic.sinks import TcpSink
from mpx_lab.traffic.tcp_sender import STREAM

Eventually = Callable[..., None]


@contextmanager
def no_descriptors() -> Iterator[None]:
    """No file or socket can be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextmanager
def no_threads() -> Iterator[None]:
    """No thread can be started: there is no room for a stack of 64 TiB."""
    before = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(before)


@pytest.mark.parametrize("without", [no_descriptors, no_threads])
def test_a_sink_that_can_take_no_more_connections_says_so(
    eventually: Eventually, without: Callable[[], AbstractContextManager[None]]
) -> None:
    before = threading.stack_size()
    sink = TcpSink(("127.0.0.1", 0))
    try:
        with socket.create_connection(("127.0.0.1", sink.port)) as first, socket.socket() as second:
            first.sendall(STREAM.pack(3))
            eventually(lambda: sink.totals() == {3: STREAM.size})
            assert not sink.failure()
            with without():
                second.connect(("127.0.0.1", sink.port))
                eventually(sink.failure)
            assert sink.failure().startswith("it cannot accept more connections: ")
    finally:
        sink.close()
        threading.stack_size(before)
