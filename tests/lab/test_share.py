"""How many streams a copy keeps on a path that is full, in simulated time."""

import json

import pytest
from simulation import Run

FULL = """
    import json, os, subprocess, sys, tempfile, time
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    direction = "DIRECTION"
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (folder / "far").mkdir()
    near, far = folder / "near", folder / "far" / "file"
    (near if direction == "up" else far).write_bytes(os.urandom(120_000_000))
    link = wan("src", "dst", 50_000_000, 0.03)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "share") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        mpx = [sys.executable, "-m", "mpx"]
        address = dst.addresses[0]
        serve = ["serve", "--host", address, "--port", "2811", "--writable", "--insecure"]
        server = dst.popen(
            [*mpx, *serve, "--allow-from", "10.0.0.0/8", str(folder / "far")], stdout=subprocess.PIPE
        )
        server.stdout.readline()
        names = [str(near), f"ftp://{address}:2811/file"]
        streams = ["--initial-streams", "6", "--share", "2", "--congestion", "kernel"]
        report = ["--report", str(folder / "report")]
        ends = names if direction == "up" else names[::-1]
        src.run([*mpx, "copy", "-q", *streams, *report, *ends], check=True)
        print(near.read_bytes() == far.read_bytes())
        print(json.dumps(json.loads((folder / "report").read_text())["timeline"]))
        server.terminate()
        server.wait()
"""


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_copy_closes_streams_while_a_queue_stands_down_to_its_share(run: Run, direction: str) -> None:
    same, told = run(FULL.replace("DIRECTION", direction))
    timeline = json.loads(told)
    assert same == "True"
    assert timeline[0]["streams"] == 6 and timeline[-1]["streams"] == 2
    assert all("a queue for" in event["reason"] for event in timeline[1:])
