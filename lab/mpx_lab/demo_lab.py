"""`make demo-lab`: copies 256 MiB up and down across 200 Mbit/s and 60 ms, between two hosts of a lab.

What `make demo` shows with a proxy this shows with the kernel's own TCP over an emulated link: slow start,
a queue that fills, losses. Needs root; removes everything but the reports, which get the owner of this
folder.
"""

import filecmp
import os
import tempfile
from pathlib import Path

from mpx.units import format_size
from mpx_lab.demo import REPORTS, VERDICTS, copy, make_file, run_demo
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.topologies import named

LAB_ID = "demo"
SIZE_BYTES = 256 << 20


def main() -> int:
    """Run the demo; return 0 when both copies are whole."""
    topology = named("path")
    REPORTS.mkdir(exist_ok=True)
    hand_over(REPORTS)
    with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name, Lab.up(topology, LAB_ID) as lab:
        folder = Path(name)
        print(f"two hosts, src and dst: {topology.text}; {format_size(SIZE_BYTES)} to copy", flush=True)
        make_file(folder / "large.bin", SIZE_BYTES)
        (folder / "served").mkdir()
        source, sink = lab.host("src"), lab.host("dst")
        whole = True
        with mpx_server(sink, folder / "served", port=2811, allow_from=f"{source.addresses[0]}/32") as url:
            print(f"mpx serve: {url}/", flush=True)
            for way, original, target in (
                ("up", str(folder / "large.bin"), "ftp://dst/large.bin"),
                ("down", "ftp://dst/large.bin", str(folder / "back.bin")),
            ):
                print(f"\n--- {way}: mpx copy {original} {target}", flush=True)
                report = REPORTS / f"demo-lab-{way}.json"
                whole &= copy(original, target, report, folder / "state", source.run)
                hand_over(report)
        whole = whole and filecmp.cmp(folder / "large.bin", folder / "back.bin", shallow=False)
        print(f"\nthe link: {_account(lab)}")
    print(VERDICTS[whole])
    return 0 if whole else 1


def hand_over(made: Path) -> None:
    """Give the reports, which root wrote, to the owner of this folder."""
    if made.exists():  # a copy that did not begin has no report
        here = Path.cwd().stat()
        os.chown(made, here.st_uid, here.st_gid)


def _account(lab: Lab) -> str:
    stats = lab.link("wan").stats()
    delivered = stats.a_to_b.delivered + stats.b_to_a.delivered
    dropped = stats.a_to_b.dropped_queue + stats.b_to_a.dropped_queue
    late_ms = max(each.late.quantile_s(0.99) for each in (stats.a_to_b, stats.b_to_a)) * 1e3
    return (
        f"{delivered.frames} frames delivered, {dropped.frames} dropped as its queue was full, "
        f"{lab.lost_elsewhere()} lost anywhere else; 99% at most {late_ms:.2f} ms late"
    )


if __name__ == "__main__":
    run_demo("demo-lab", main)
