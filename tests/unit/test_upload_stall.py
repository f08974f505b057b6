"""When one stream of an upload is taken for dead, as others have moved something, and a server for slow."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from mpx.endpoints.ftp.data_address import DataPort
from mpx.endpoints.ftp.mode_e import upload_watch
from mpx.endpoints.ftp.mode_e.upload_watch import UploadWatch
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.stream import StreamTotals
from mpx.errors import TransferTimeout


class Port:
    """Two streams: one that moves, and one whose data nobody answers from the begin on."""

    port = DataPort(("192.0.2.7", 2811))

    def __init__(self, bps: float) -> None:
        self.now_s, self.failed_s = 1000.0, 0.0
        self._began_s, self._bps = self.now_s, bps

    def live_streams(self) -> list[Any]:
        cut, connection = lambda: None, object()
        idle_s = self.now_s - self._began_s
        return [
            SimpleNamespace(connection=connection, at=0, cut=cut, unanswered_s=lambda each=each: each)
            for each in (0.0, idle_s)
        ]

    def totals(self) -> dict[str, StreamTotals]:
        return {DEFAULT_PATH: StreamTotals(bytes=round(self._bps * (self.now_s - self._began_s) / 8))}

    def fail(self, error: Exception, _: object) -> None:
        assert "no progress on a data connection" in str(error)
        self.failed_s = self.failed_s or self.now_s - self._began_s


@pytest.mark.parametrize(
    ("bps", "todo_bytes", "expected_s"),
    [(100e6, 0, 5.0), (100e6, 1 << 40, 15.0), (400e3, 1 << 40, 21.0), (160e3, 1 << 40, 52.4)],
)
def test_the_slower_the_others_the_longer_it_is_waited_for(
    bps: float, todo_bytes: int, expected_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where all else has been sent not as long, as everything waits for it."""
    channel: Any = Port(bps)
    file = SimpleNamespace(todo_bytes=todo_bytes, final="x")
    transfer: Any = SimpleNamespace(number=0, source=None, file=file)
    monkeypatch.setattr(upload_watch, "time", SimpleNamespace(monotonic=lambda: channel.now_s))
    watch = UploadWatch(60.0, 0.01)
    while channel.now_s < 1059:
        channel.now_s += 0.05
        watch.look(channel, transfer)
    assert channel.failed_s == pytest.approx(expected_s, abs=1.2)


@pytest.mark.parametrize(
    ("is_waiting", "owed", "is_late"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_a_server_that_has_all_there_is_of_a_pipe_is_not_slow(
    is_waiting: bool, owed: bool, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel: Any = Port(0.0)
    began_s = channel.now_s
    stream = SimpleNamespace(
        connection=object(), at=0, unanswered_s=lambda: channel.now_s - began_s if owed else None
    )
    channel.live_streams = lambda: [stream]
    transfer: Any = SimpleNamespace(
        number=0,
        source=SimpleNamespace(is_waiting=is_waiting),
        file=SimpleNamespace(todo_bytes=0, final="x"),
    )
    stream.cut = channel.fail = lambda *_: None
    monkeypatch.setattr(upload_watch, "time", SimpleNamespace(monotonic=lambda: channel.now_s))
    watch = UploadWatch(60.0, 0.01)
    channel.now_s += 61
    with pytest.raises(TransferTimeout) if is_late else contextlib.nullcontext():
        watch.look(channel, transfer)
