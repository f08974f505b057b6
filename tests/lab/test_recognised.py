"""The model that comes with mpx, beside real streams: `mpx probe` names them, and a copy goes with them.

On machines with simulated time, so that a busy one adds nothing to round trips.
"""

import filecmp
import json
from pathlib import Path
from typing import Any

import pytest
from random_bytes import random_bytes
from simulation import Run

BESIDE = """
    import json, subprocess, sys, tempfile, time
    from contextlib import nullcontext
    from pathlib import Path
    from mpx.serve import Server
    from mpx_lab.lab import Lab
    from mpx_lab.namespace import inside
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    FOLDER = Path("{folder}")
    flows = FOLDER / "flows"
    flows.mkdir()
    link = wan("src", "dst", 40_000_000, 0.0734)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "beside") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        opened = dict(host="10.0.0.2", writable=True, insecure=True, allow_from=["10.0.0.0/8"])
        with inside(dst.netns, lambda: Server(FOLDER, **opened)) as server:
            mix = "{mix}"
            where = ("mix", src, dst, "10.0.0.2", flows, time.monotonic())
            with Background(mix, *where) if mix else nullcontext():
                time.sleep(30)
                words = [word.replace("SERVER/", server.url) for word in {words}]
                done = src.run([sys.executable, "-m", "mpx", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
"""


def beside(run: Run, folder: Path, congestion: str, *words: str) -> str:
    """What mpx says on a path of 40 Mbit/s and 73.4 ms beside a stream that has been there for 30 s."""
    mix = f"tcp(congestion={congestion})" if congestion else ""
    return "\n".join(run(BESIDE.format(folder=folder, mix=mix, words=list(words))))


def probed(run: Run, folder: Path, congestion: str) -> dict[str, Any]:
    """What `mpx probe` says after 20 s."""
    told: dict[str, Any] = json.loads(
        beside(run, folder, congestion, "probe", "--json", "--window", "20s", "SERVER/")
    )
    return told


@pytest.mark.parametrize(
    ("congestion", "group", "decided"),
    [
        pytest.param("", "none", "cubic", marks=pytest.mark.long),
        pytest.param("cubic", "cubic only", "cubic", marks=pytest.mark.long),
        ("bbr", "any bbr", "bbr"),
    ],
)
def test_who_is_there_is_named(run: Run, tmp_path: Path, congestion: str, group: str, decided: str) -> None:
    told = probed(run, tmp_path, congestion)
    assert max(told["mix"]["groups"], key=told["mix"]["groups"].get) == group
    assert told["decision"]["congestion"] == decided


def test_a_copy_beside_bbr_turns_to_bbr_and_arrives(run: Run, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(random_bytes(80_000_000))
    report = tmp_path / "report.json"
    words = ("copy", "-q", "--congestion", "auto", "--report", str(report), str(tmp_path / "source"))
    beside(run, tmp_path, "bbr", *words, "SERVER/there")
    assert filecmp.cmp(tmp_path / "source", tmp_path / "there", shallow=False)
    timeline = json.loads(report.read_text())["timeline"]
    assert timeline[0]["congestion"] == "cubic" and timeline[-1]["congestion"] == "bbr"
    assert any(event["reason"].startswith("switched to bbr") for event in timeline)
