"""The number of streams changes while bytes of one file flow, and they never stop flowing.

Measured by the proxy's record of delivered bytes per 5 ms, in simulated time: no gap over 60 ms from first to
last byte.
"""

import json
from pathlib import Path

import pytest
from install_peers import find_peer
from simulation import Run

LONGEST_GAP_S = 0.060
STEPS = (12, 3, 8, 20, 2, 10)  # streams, after 4 to begin with, each for STEP_S
ELASTIC = """
    import json, os, re, socket, sys
    from pathlib import Path

    sys.path[:0] = {places}
    import mpx
    from interop.stock_server import StockServer
    from mpx.engine.tuner import Decision
    from mpx.transfer import tuner_choice
    from mpx_lab.proxy import DelayProxy, longest_gap_s

    RATE_BPS = 20e6  # of each connection
    STEP_S = 0.8
    STEPS = {steps}
    SIZE = 120_000_011


    class Script:
        played = []

        def observe(self, now_s, samples):
            (path,) = samples
            if len(self.played) < len(STEPS) and now_s >= STEP_S * (len(self.played) + 1):
                self.played.append(STEPS[len(self.played)])
                return [Decision(path, self.played[-1], "played from a script")]
            return []


    socket.sethostname("localhost")  # the server looks up its own name
    folder = Path("{folder}")
    os.environ["MPX_STATE_DIR"] = str(folder / "state")
    os.environ["HOME"] = str(folder)
    root = folder / "served"
    root.mkdir()
    near, far = folder / "near.bin", root / "far.bin"
    up = "{direction}" == "up"
    given, wanted = (near, far) if up else (far, near)
    content = os.urandom(SIZE)
    given.write_bytes(content)
    tuner_choice.tuner_for = lambda *_: Script()
    with StockServer(root) as server:
        with DelayProxy((server.host, server.port), rtt_s=0.03, rate_bps=RATE_BPS) as proxy:
            url = f"ftp://{{proxy.host}}:{{proxy.port}}{{far}}"
            report = mpx.copy(*((str(near), url) if up else (url, str(near))))
            record = proxy.record()
        logged = [int(n) for n in re.findall(r"STREAMS=(\\d+)", server.log_path.read_text(errors="replace"))]
    data = [each for each in record.connections if each.kind == "data"]
    print(json.dumps(dict(
        same=wanted.read_bytes() == content,
        notes=report.notes,
        played=Script.played,
        used=sum(each.up_bytes + each.down_bytes > 1000 for each in data),
        gap_s=longest_gap_s(record, "{direction}"),
        logged=logged,
    )))
"""


@pytest.mark.peers
@pytest.mark.parametrize("direction", ["up", "down"])
def test_streams_come_and_go_without_a_pause(run: Run, tmp_path: Path, direction: str) -> None:
    find_peer("globus-gridftp-server")
    tests = Path(__file__).parents[1]
    program = ELASTIC.format(places=[str(tests)], steps=STEPS, folder=tmp_path, direction=direction)
    (line,) = run(program)
    told = json.loads(line)
    print(f"\n{direction}: {told}")
    assert told["same"]
    assert not [note for note in told["notes"] if "again" in note]  # no session was lost
    assert max(told["played"]) == max(STEPS)
    assert told["used"] >= max(STEPS)  # all of them were there, and more came when others had gone
    if direction == "up":  # one STOR, many connections
        assert max(told["logged"]) >= max(STEPS)
    else:  # several sessions with partial retrieves
        assert len(told["logged"]) > max(STEPS)
    assert told["gap_s"] <= LONGEST_GAP_S
