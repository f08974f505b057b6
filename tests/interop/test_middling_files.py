"""Streams come and go between the files of a session, over a long round trip, and none is left hanging.

A stock server stops listening for good when a connection comes between two STORs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_lab.proxy import DelayProxy
from random_bytes import random_bytes

import mpx
from mpx.engine.tuner import Decision, Sample
from mpx.transfer.congestion_plan import SERVER_CHOOSES

pytestmark = pytest.mark.peers

FILES = 32
SIZE = 6_000_011  # too large to be small
STEP_S = 0.3
STEPS = (8, 20, 3, 12, 1, 16, 5, 24, 2)


class Restless:
    """A tuner that wants another number of streams every 0.3 s."""

    def __init__(self) -> None:
        self._steps = 0

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        if now_s < STEP_S * (self._steps + 1):
            return []
        self._steps += 1
        return [Decision(path, STEPS[self._steps % len(STEPS)], "played by a test") for path in samples]


@pytest.mark.parametrize("sessions", [1, 4])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_streams_change_from_file_to_file(tmp_path: Path, monkeypatch, direction: str, sessions: int) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("mpx.transfer.tuner_choice.tuner_for", lambda *_: Restless())
    root, near = tmp_path / "served", tmp_path / "near"
    root.mkdir()
    far = root / "far"
    given, target = (near, far) if direction == "up" else (far, near)
    given.mkdir()
    content = random_bytes(SIZE)
    for i in range(FILES):
        (given / f"f{i}").write_bytes(content[i:] + content[:i])
    with (
        StockServer(root) as server,
        DelayProxy((server.host, server.port), rtt_s=0.1, rate_bps=100e6) as proxy,
    ):
        url = f"ftp://{proxy.host}:{proxy.port}{far}"
        pair = (str(near), url) if direction == "up" else (url, str(near))
        options = mpx.CopyOptions(recursive=True, max_sessions=sessions)
        report = mpx.copy(*pair, options)
    assert report.files.moved == FILES
    notes = [note for note in report.notes if not note.startswith("background classified")]  # if it lasts
    assert notes == ([SERVER_CHOOSES] if direction == "down" else [])
    for i in range(FILES):
        assert (target / f"f{i}").read_bytes() == content[i:] + content[:i]
