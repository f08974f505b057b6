"""A server that admits few sessions: whatever is given up, what has moved is verified and committed."""

import os
from pathlib import Path

import pytest
from interop.stock_server import StockServer

import mpx
from mpx.congestion_plan import SERVER_CHOOSES

pytestmark = pytest.mark.peers

FILES = 24


@pytest.mark.parametrize("sessions", [3, 5])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_server_that_admits_few(tmp_path: Path, monkeypatch, direction: str, sessions: int) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))
    root, near = tmp_path / "served", tmp_path / "near"
    root.mkdir()
    far = root / "far"
    given, target = (near, far) if direction == "up" else (far, near)
    given.mkdir()
    content = os.urandom(2_000_003)
    for i in range(FILES):
        (given / f"f{i}").write_bytes(content[i:])
    with StockServer(root, arguments=("-connections-max", str(sessions))) as server:
        url = f"{server.url}far"
        pair = (str(near), url) if direction == "up" else (url, str(near))
        report = mpx.copy(*pair, mpx.CopyOptions(recursive=True, rate_bps=300e6, retries=2))
    assert report.files.moved == FILES
    notes = set(report.notes) - {SERVER_CHOOSES}
    assert all("no further session" in note for note in notes), notes
    for i in range(FILES):
        assert (target / f"f{i}").read_bytes() == content[i:]
