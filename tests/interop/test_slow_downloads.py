"""Downloads that are slow for long, as by --rate: streams are replaced after what is queued at the server."""

from pathlib import Path

from random_bytes import random_bytes

import mpx
from mpx.serve import Server

MOST = 16
SIZE, SLOWLY = 120_000_000, 90e6  # eleven seconds, and twice what so many sessions queue at first


def test_there_are_never_more_streams_than_may_be(tmp_path: Path) -> None:
    """The paper's search tries other numbers at any goodput; ours adds none where `rate_bps` is reached."""
    (tmp_path / "served").mkdir()
    content = random_bytes(SIZE)
    (tmp_path / "served" / "there").write_bytes(content)
    seen: set[int] = set()
    with Server(tmp_path / "served") as server:
        report = mpx.copy(
            f"{server.url}there",
            str(tmp_path / "here"),
            mpx.CopyOptions(tuner="paper", chunk_time_s=1.0, rate_bps=SLOWLY, max_streams=MOST),
            on_progress=lambda progress: seen.add(progress.streams),
        )
    assert (tmp_path / "here").read_bytes() == content
    assert len(seen) > 1 and max(seen) <= MOST
    assert len(report.timeline) > 2 and max(event.streams for event in report.timeline) <= MOST
    assert not [event.reason for event in report.timeline if event.reason.startswith("only")]
