"""The number of streams changes while bytes of one file flow, and they never stop flowing.

Measured by the proxy's record of delivered bytes per 5 ms: no gap over 60 ms from first to last byte.
On a machine that stalls everything the measurement is repeated; every figure is printed.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_lab.proxy import DelayProxy, longest_gap_s

import mpx
from mpx.engine.tuner import Decision, Sample
from mpx.transfer.congestion_plan import SERVER_CHOOSES

pytestmark = [pytest.mark.peers, pytest.mark.alone]

LONGEST_GAP_S = 0.060
ATTEMPTS = 4
RATE_BPS = 80e6  # of each connection
STEP_S = 0.8
STEPS = (12, 3, 8, 20, 2, 10)  # after 4 to begin with
SIZE = 300_000_011


class Script:
    """A tuner that plays a list of numbers of streams, one each 0.8 s."""

    def __init__(self) -> None:
        self.played: list[int] = []

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        (path,) = samples
        if len(self.played) < len(STEPS) and now_s >= STEP_S * (len(self.played) + 1):
            self.played.append(STEPS[len(self.played)])
            return [Decision(path, self.played[-1], "played from a script")]
        return []


@pytest.mark.parametrize("direction", ["up", "down"])
def test_streams_come_and_go_without_a_pause(tmp_path: Path, monkeypatch, direction: str) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "served"
    root.mkdir()
    near, far = tmp_path / "near.bin", root / "far.bin"
    given, wanted = (near, far) if direction == "up" else (far, near)
    content = os.urandom(1 << 20)
    content = (content * (SIZE // len(content) + 1))[:SIZE]
    given.write_bytes(content)
    figures = []
    with StockServer(root) as server:
        for _ in range(ATTEMPTS):
            script = Script()
            monkeypatch.setattr("mpx.transfer.tuner_choice.tuner_for", lambda _, script=script: script)
            wanted.unlink(missing_ok=True)
            with DelayProxy((server.host, server.port), rtt_s=0.03, rate_bps=RATE_BPS) as proxy:
                url = f"ftp://{proxy.host}:{proxy.port}{far}"
                report = mpx.copy(*((str(near), url) if direction == "up" else (url, str(near))))
                record = proxy.record()
            assert wanted.read_bytes() == content
            assert report.notes == ([SERVER_CHOOSES] if direction == "down" else [])
            assert len(script.played) >= 3
            used = [c for c in record.connections if c.kind == "data" and c.up_bytes + c.down_bytes > 1000]
            most = max(script.played[:-1])
            assert len(used) >= most  # all of them were there, and more came when others had gone
            gap_s = longest_gap_s(record, "up" if direction == "up" else "down")
            figures.append(gap_s)
            print(
                f"\n{direction}: {[4, *script.played]} streams, {len(used)} connections, "
                f"{report.goodput_bps / 1e6:.0f} Mbit/s, longest gap {gap_s * 1e3:.0f} ms"
            )
            if gap_s <= LONGEST_GAP_S:
                break
        logged = [int(n) for n in re.findall(r"STREAMS=(\d+)", server.log_path.read_text(errors="replace"))]
    print(f"{direction}: the server's log tells of STREAMS={logged[:40]}")
    if direction == "up":  # one STOR, many connections
        assert max(logged) >= 20
    else:  # several sessions with partial retrieves
        assert len(logged) > 20
    assert min(figures) <= LONGEST_GAP_S, figures
