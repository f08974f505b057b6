"""`make demo-one-transfer`: all that mpx does, in one copy, over two paths that others use.

It probes the round-trip time of each path, classifies what fills it by DTW and nearest neighbours, has its
path set and the predicted streams from an OpenFlow controller, and refines the streams of each path by
golden-section search over chunks. One BBR stream is on the first path, and one CUBIC stream on the second.
Needs root; removes everything but the report.
"""

import filecmp
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from mpx.units import format_duration, format_rate, format_size
from mpx_lab.demo import REPORTS, copy, make_file, run_demo
from mpx_lab.demo_lab import hand_over
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import OWN
from mpx_lab.topology import Link, Topology, wan
from mpx_lab.traffic.background import Background

LAB_ID = "demo-one"
RATE_BPS, RTT_S = 40_000_000, 0.040
SIZE_BYTES = 96 << 20
SETTLES_S = 15.0  # until those beside it share their paths with nobody as they will
NEIGHBOURS = {"s2": "tcp(congestion=bbr)", "s3": "tcp(congestion=cubic)"}  # by the switch where each leaves
MPX = (sys.executable, "-m", "mpx")
VERDICTS = {
    True: "the copy was compared with the original byte for byte: it is the same",
    False: "THE COPY FAILED OR DIFFERS from the original",
}
OPTIONS = (
    *("--controller", str(OWN.rest)),
    *("--probe-first", "10s", "--classifier", "knn-dtw"),
    *("--tuner", "paper", "--chunk-time", "1.5s"),
)


def topology() -> Topology:
    """Return two paths from src to dst, each with a stream of others that goes on beside it."""
    paths = [
        link
        for switch in NEIGHBOURS
        for link in (wan("s1", switch, RATE_BPS, RTT_S, name=f"s1-{switch}"), Link(switch, "s4"))
    ]
    others = [
        link
        for number, switch in enumerate(NEIGHBOURS)
        for link in (Link(f"n{number}", "s1"), Link(switch, f"m{number}"))
    ]
    numbers = range(len(NEIGHBOURS))
    return Topology(
        "demo-one",
        ("src", *(f"n{number}" for number in numbers)),
        ("dst", *(f"m{number}" for number in numbers)),
        (Link("src", "s1"), Link("s4", "dst"), *paths, *others),
        ("s1", "s2", "s3", "s4"),
        f"two paths of {format_rate(RATE_BPS)}, RTT {format_duration(RTT_S)}",
    )


def main() -> int:
    """Run the demo; return 0 when the copy is whole."""
    REPORTS.mkdir(exist_ok=True)
    hand_over(REPORTS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mpx-demo-")))
        made = topology()
        lab = stack.enter_context(Lab.up(made, LAB_ID, controller=OWN))
        print(f"hosts src and dst, {made.text}; {format_size(SIZE_BYTES)} to copy", flush=True)
        flows = folder / "flows"
        flows.mkdir(mode=0o777)
        for number, (switch, spec) in enumerate(NEIGHBOURS.items()):
            source, sink = lab.host(f"n{number}"), lab.host(f"m{number}")
            beside = Background(
                spec, f"beside-{number}", source, sink, sink.addresses[0], flows, time.monotonic()
            )
            stack.enter_context(beside)
            print(f"beside it on the path through {switch}: {spec}", flush=True)
        make_file(folder / "large.bin", SIZE_BYTES)
        (folder / "served").mkdir()
        source, sink = lab.host("src"), lab.host("dst")
        url = stack.enter_context(
            mpx_server(sink, folder / "served", port=2811, allow_from=f"{source.addresses[0]}/32")
        )
        print(f"the controller: {OWN.rest}; mpx serve: {url}/", flush=True)
        time.sleep(SETTLES_S)
        report = REPORTS / "demo-one-transfer.json"
        target = "ftp://dst/large.bin"
        print(f"\n--- mpx copy {' '.join([*OPTIONS, str(folder / 'large.bin'), target])}", flush=True)
        whole = copy(str(folder / "large.bin"), target, report, folder / "state", source.run, OPTIONS)
        hand_over(report)
        whole = whole and filecmp.cmp(folder / "large.bin", folder / "served" / "large.bin", shallow=False)
        if report.exists():
            page = report.with_suffix(".html")
            print(f"\n--- mpx explain {report} --html {page}", flush=True)
            subprocess.run([*MPX, "explain", str(report), "--html", str(page)], check=False)
            hand_over(page)
    print(f"\n{VERDICTS[whole]}")
    return 0 if whole else 1


if __name__ == "__main__":
    run_demo("demo-one-transfer", main)
