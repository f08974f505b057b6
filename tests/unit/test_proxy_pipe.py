"""One direction of the emulated path without sockets: bytes, buffers, window and turns."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mpx_lab.proxy.loop import READABLE, WRITABLE
from mpx_lab.proxy.path import LARGEST_CHUNK_BYTES, Line, PathOptions
from mpx_lab.proxy.pipe import Pipe


class FakeLoop:
    """Keeps timers until the test fires them."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], None]] = []

    def at(self, due_s: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def fire(self) -> None:
        due, self.timers = self.timers, []
        for callback in due:
            callback()


class FakeEnd:
    """Gives `pieces` one by one and takes as many bytes as `room` says, a number for each call."""

    def __init__(self, pieces: Sequence[bytes] = (), room: Sequence[int] = ()) -> None:
        self.pieces, self.room = list(pieces), list(room)
        self.arrived = bytearray()
        self.ended = False
        self.wants: set[int] = set()

    def want(self, event: int, wanted: bool) -> None:
        (self.wants.add if wanted else self.wants.discard)(event)

    def receive_into(self, buffer: memoryview, size_bytes: int) -> int:
        if not self.pieces:
            return 0
        piece = self.pieces.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)

    def send(self, data: memoryview) -> int:
        allowed = self.room.pop(0) if self.room else len(data)
        if not allowed:
            raise BlockingIOError
        self.arrived += data[:allowed]
        return min(allowed, len(data))

    def end_writing(self) -> None:
        self.ended = True


def pipe_between(loop: Any, source: FakeEnd, sink: FakeEnd, **path: float) -> Pipe:
    pipe = Pipe(
        loop,
        PathOptions(**path),  # type: ignore[arg-type]
        [],
        opens_s=0,
        on_delivered=lambda count: None,
        on_end=lambda: None,
        on_failure=lambda: None,
    )
    pipe.connect(source, sink)
    return pipe


SIZES = st.sampled_from([1, 17, 1000, LARGEST_CHUNK_BYTES // 2, LARGEST_CHUNK_BYTES - 1, LARGEST_CHUNK_BYTES])


@given(
    sizes=st.lists(SIZES, max_size=12),
    room=st.lists(st.sampled_from([0, 1, 5000, LARGEST_CHUNK_BYTES]), max_size=20),
    deliver_after=st.lists(st.booleans(), max_size=40),
)
def test_every_byte_arrives_once_and_in_order(
    sizes: list[int], room: list[int], deliver_after: list[bool]
) -> None:
    pieces = [bytes([number]) * size for number, size in enumerate(sizes, start=1)]
    loop, source, sink = FakeLoop(), FakeEnd(pieces), FakeEnd(room=room)
    pipe = pipe_between(loop, source, sink, rtt_s=0, window_bytes=4 * LARGEST_CHUNK_BYTES)
    pipe.start()
    while not sink.ended:
        if READABLE in source.wants:
            pipe.read()
        if READABLE not in source.wants or (deliver_after and deliver_after.pop()):
            loop.fire()
            if WRITABLE in sink.wants:
                pipe.deliver()
    assert bytes(sink.arrived) == b"".join(pieces)


def test_no_more_than_the_window_is_taken_before_it_is_delivered() -> None:
    window = 4 * LARGEST_CHUNK_BYTES
    source, sink = FakeEnd([bytes(LARGEST_CHUNK_BYTES)] * 10), FakeEnd()
    pipe = pipe_between(FakeLoop(), source, sink, rtt_s=1e6, window_bytes=window)
    for _ in range(10):
        pipe.read()
    assert len(source.pieces) == 6
    assert READABLE not in source.wants


def test_a_newcomer_does_not_overtake_who_waits_for_the_line() -> None:
    loop: Any = FakeLoop()
    line = Line(loop, rate_bps=8e6)
    first, second = (pipe_between(loop, FakeEnd([b"x"]), FakeEnd()) for _ in range(2))
    free_s = line.carry(0.0, 1_000_000)
    assert not line.admits(first, 0.0)
    assert not line.admits(second, free_s + 1)
    assert (first.queues_for_line, second.queues_for_line) == (True, True)


def test_the_default_window_is_twice_rate_times_round_trip() -> None:
    assert PathOptions(rtt_s=0.03, rate_bps=80e6).effective_window_bytes == 600_000
    assert PathOptions(rtt_s=0.03).effective_window_bytes == 1 << 20
    assert PathOptions(rtt_s=0.03, rate_bps=80e6, window_bytes=5).effective_window_bytes == 5
