"""When a session of a download in MODE E that brings nothing is given up."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from mpx.endpoints.ftp.mode_e.download_watch import STALL_BYTES, STALL_S, DownloadWatch
from mpx.engine.stream import StreamTotals
from mpx.errors import TransferTimeout


class MadeUpFile:
    source = "f"

    def has_arrived(self, start: int, end: int) -> bool:
        return False


@dataclass
class MadeUpRetrieve:
    file: MadeUpFile = field(default_factory=MadeUpFile)
    start: int = 0
    end: int = 10


class MadeUpSession:
    has_connected = True
    data_port = 1
    retrieves = (MadeUpRetrieve(),)

    def __init__(self, rtt_s: float) -> None:
        self.rtt_s = rtt_s


@pytest.mark.parametrize(
    ("silent_s", "rtt_s", "others_bytes", "is_given_up"),
    [
        (1.2 * STALL_S, 0.01, STALL_BYTES, True),
        (1.2 * STALL_S, 0.01, STALL_BYTES - 1, False),  # the path is slow
        (0.8 * STALL_S, 0.01, STALL_BYTES, False),
        (1.2 * STALL_S, 0.5, STALL_BYTES, False),  # its round trips are long
        (61.0, 0.01, 0, True),
    ],
)
def test_a_silent_session_is_given_up_where_others_bring_much(
    monkeypatch: pytest.MonkeyPatch, silent_s: float, rtt_s: float, others_bytes: int, is_given_up: bool
) -> None:
    now_s, brought = 1000.0, 5 * STALL_BYTES
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    watch = DownloadWatch("host", 60.0, lambda: brought, lambda: True)
    session: Any = MadeUpSession(rtt_s)
    totals = StreamTotals(new_bytes=1)
    watch.look(session, totals)
    now_s += 2.0
    watch.look(session, totals)
    now_s += silent_s - 2.0
    brought += others_bytes
    if is_given_up:
        with pytest.raises(TransferTimeout, match="no data from host"):
            watch.look(session, totals)
    else:
        watch.look(session, totals)
