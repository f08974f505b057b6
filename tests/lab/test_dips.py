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
        ("", "cubic", 0.9, 1.1),
        ("tcp(congestion=cubic)", "cubic", 0.1, 0.75),
        ("tcp(congestion=bbr)", "bbr", 0.1, 0.75),
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
