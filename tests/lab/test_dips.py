"""What dips tell of our share of a link, with real TCP: alone, and beside another stream."""

import csv
from pathlib import Path
from statistics import median

import pytest
from simulation import Run

BESIDE = """
    import time
    from contextlib import nullcontext
    from pathlib import Path
    from mpx_lab.lab import Lab
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    flows = Path("{folder}")
    link = wan("src", "dst", 40_000_000, 0.05)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "dips") as lab:
        where = (lab.host("src"), lab.host("dst"), "10.0.0.2", flows, time.monotonic())
        mix = "{mix}"
        with Background(mix, "mix", *where) if mix else nullcontext():
            time.sleep(25)
            with Background("gridftp(streams=1, congestion={congestion}, dips=1)", "ours", *where):
                time.sleep(30)
"""


@pytest.mark.parametrize(
    ("mix", "congestion", "least", "most"),
    [
        pytest.param("", "cubic", 0.9, 1.1, marks=pytest.mark.long),
        ("tcp(congestion=cubic)", "cubic", 0.1, 0.75),
        pytest.param("tcp(congestion=bbr)", "bbr", 0.1, 0.75, marks=pytest.mark.long),
    ],
)
def test_dips_tell_our_share(
    run: Run, tmp_path: Path, mix: str, congestion: str, least: float, most: float
) -> None:
    run(BESIDE.format(folder=tmp_path, mix=mix, congestion=congestion))
    with (tmp_path / "ours.dips.csv").open() as lines:
        told = [row for row in csv.DictReader(lines) if float(row["t_s"]) > (35 if mix else 10)]
    assert len(told) > 10
    assert least < median(float(row["share"]) for row in told) < most
    if congestion == "cubic":  # BBR's own pace changes from one round trip to the next
        assert least < median(float(row["kept"]) for row in told) < most


COPIES = """
    import json, subprocess, sys, time
    from contextlib import nullcontext
    from pathlib import Path
    from mpx.serve import Server
    from mpx_lab.lab import Lab
    from mpx_lab.namespace import inside
    from mpx_lab.topology import Topology, wan
    from mpx_lab.traffic.background import Background

    FOLDER = Path("{folder}")
    link = wan("src", "dst", 40_000_000, 0.05)
    with Lab.up(Topology("one", ("src",), ("dst",), (link,)), "dips") as lab:
        src, dst = lab.host("src"), lab.host("dst")
        opened = dict(host="10.0.0.2", writable=True, insecure=True, allow_from=["10.0.0.0/8"])
        ends = (src, dst, "10.0.0.2") if "{way}" == "up" else (dst, src, "10.0.0.1")
        with inside(dst.netns, lambda: Server(FOLDER, **opened)) as server:
            mix = Background("tcp(congestion=cubic)", "mix", *ends, FOLDER, time.monotonic())
            with mix if {beside} else nullcontext():
                time.sleep(25)
                words = (str(FOLDER / "zeros"), server.url + "there")
                words = words if "{way}" == "up" else (server.url + "zeros", str(FOLDER / "here"))
                done = src.run([sys.executable, "{program}", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
"""

PROGRAM = """
import sys, threading
import mpx
from mpx import ops_classifier
from mpx.recognition.mix import MIXES, likeliest
from mpx.options import CopyOptions

class Listens:
    "A model that says what dips told, and never anything for sure."
    name = "trees"

    def window_s(self, kind):
        return 5.0

    def classify(self, series, base_s, goodput, *, own, responses):
        assert own.dips
        self.told = [(response.share, response.kept) for response in responses]
        return likeliest([1 / len(MIXES)] * len(MIXES))

listens = Listens()
ops_classifier.load = lambda: listens
mpx.copy(*sys.argv[1:], CopyOptions(congestion="auto", streams=2, checksum="none"))
for share, kept in listens.told:
    print(share, kept)
"""


@pytest.mark.parametrize("beside", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("way", ["up", "down"])
def test_copies_in_both_directions_learn_their_share(
    run: Run, tmp_path: Path, way: str, beside: bool
) -> None:
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(130_000_000)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    told = run(COPIES.format(folder=tmp_path, way=way, beside=beside, program=program))
    shares, kept = zip(*(map(float, line.split()) for line in told if line), strict=True)
    assert len(shares) > 5
    least, most = (0.3, 0.88) if beside else (0.9, 1.15)
    assert least < median(shares) < most
    assert least < median(kept) < most
