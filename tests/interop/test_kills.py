"""SIGKILL at random moments, of the client and of the server: nothing is lost that had arrived.

MPX_KILLS says how often for each direction and victim (`make kills` for twenty), MPX_KILL_SEED repeats
a run whose seed was printed.
"""

import os
import random
import time
from pathlib import Path

import pytest
from interop.mpx_process import Copy, assert_clear, copy
from interop.stock_server import StockServer
from mpx_lab.proxy import BUCKET_S, DelayProxy, Record

pytestmark = pytest.mark.peers

KILLS = int(os.environ.get("MPX_KILLS", "1"))
SEED = int(os.environ.get("MPX_KILL_SEED", random.randrange(1 << 32)))
SIZE = 96_000_007
RATE_BPS = 240e6  # so the whole takes about 3.2 s
STREAMS = ("1", "2", "3", "5", "8", "16", "auto")
KEPT_FROM_S = 2.0  # a kill later than this after the first byte must keep KEPT of what had arrived
KEPT = 0.9 if "MPX_KILLS" in os.environ else 0.5  # beside other tests what has arrived is confirmed later
PATIENCE = ("--retries", "1", "--timeout", "5s")


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(1).randbytes(SIZE)


@pytest.mark.parametrize("number", range(1, KILLS + 1))
@pytest.mark.parametrize("victim", ["client", "server"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_kill(tmp_path: Path, eventually, content: bytes, direction: str, victim: str, number: int) -> None:
    rng = random.Random(f"{SEED} {direction} {victim} {number}")
    streams = rng.choice(STREAMS)
    # Every other kill comes late enough to count, the first too.
    share = rng.uniform(0.65, 0.97) if number % 2 else rng.uniform(0.01, 0.97)
    root = tmp_path / "served"
    root.mkdir()
    near, far = tmp_path / "near.bin", root / "far.bin"
    given, wanted = (near, far) if direction == "up" else (far, near)
    given.write_bytes(content)
    with (
        StockServer(root) as server,
        DelayProxy((server.host, server.port), rtt_s=0.03, total_rate_bps=RATE_BPS) as proxy,
    ):
        url = f"ftp://{proxy.host}:{proxy.port}{far}"
        names = (near, url) if direction == "up" else (url, near)

        def delivered() -> int:
            record = proxy.record()
            return record.up_bytes if direction == "up" else record.down_bytes

        first = Copy(tmp_path, *names, "--streams", streams, *PATIENCE)
        eventually(lambda: delivered() >= share * SIZE or first.process.poll() is not None)
        if victim == "client":
            first.kill()
        else:
            server.kill()
        killed_s = time.time()
        eventually(lambda: not proxy.open_data_connections())
        record = proxy.record()
        arrived = min(SIZE, delivered())
        after_s = killed_s - record.started_unix_s - first_byte_s(record, direction)
        done = first.end()
        if victim == "client":
            assert done.code == -9, done
        else:
            assert_clear(done, 6)
            server.start()
        assert not wanted.exists()
        again = copy(tmp_path, *names, "--streams", streams)
        assert again.code == 0, again.stderr
        assert wanted.read_bytes() == content
        assert list(wanted.parent.glob(".*.part")) == []
        kept = again.resumed_bytes / arrived
        print(
            f"\nkill {direction} {victim} {number} seed {SEED}: streams {streams}, {after_s:.2f} s after the "
            f"first byte, {arrived / 1e6:.1f} MB arrived, {again.resumed_bytes / 1e6:.1f} MB kept: {kept:.1%}"
        )
        assert again.resumed_bytes + again.moved_bytes == SIZE
        if after_s >= KEPT_FROM_S:
            assert kept >= KEPT


def first_byte_s(record: Record, direction: str) -> float:
    return BUCKET_S * min(record.up if direction == "up" else record.down)
