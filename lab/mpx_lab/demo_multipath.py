"""`make demo-multipath`: a copy over four paths of 20 Mbit/s at once, steered by an OpenFlow controller.

It brings up the network (real Open vSwitch, the kernel's own TCP), `mpx controller` and `mpx serve`, copies
up over one path and over all that the controller gives, and shows what each path carried. Needs root;
removes everything but the reports.
"""

import filecmp
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpx.units import format_rate, format_size
from mpx_lab.demo import REPORTS, VERDICTS, copy, make_file, run_demo
from mpx_lab.demo_lab import hand_over
from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import OWN
from mpx_lab.topologies import named

LAB_ID = "demo-multipath"
SIZE_BYTES = 64 << 20
SCALE = 0.2  # low enough for a small machine to forward every frame through three switches in time
PATHS = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")  # the first link of each
EVERY_S = 0.5


class PathRates:
    """The rate of each path, sampled every half second."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.most_bps = [0.0] * len(PATHS)

    def _carried(self) -> list[int]:
        return [self._lab.link(name).stats().a_to_b.delivered.bytes for name in PATHS]

    def _watch(self) -> None:
        """Keep the three seconds with the highest total rate: slow start and the end are left out."""
        rows = [(time.monotonic(), self._carried())]
        most = 0.0
        while not self._ended.wait(EVERY_S):
            rows.append((time.monotonic(), self._carried()))
            (since_s, before), (now_s, after) = rows[max(0, len(rows) - 7)], rows[-1]
            rates = [8 * (b - a) / (now_s - since_s) for a, b in zip(before, after, strict=True)]
            if sum(rates) > most:
                most, self.most_bps = sum(rates), rates

    @contextmanager
    def during(self) -> Iterator[None]:
        """Watch while something else goes on."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()


def main() -> int:
    """Run the demo; return 0 when both copies are whole."""
    topology = named("thesis-a")
    REPORTS.mkdir(exist_ok=True)
    hand_over(REPORTS)
    with (
        tempfile.TemporaryDirectory(prefix="mpx-demo-") as name,
        Lab.up(topology, LAB_ID, scale=SCALE, controller=OWN) as lab,
    ):
        folder = Path(name)
        print(f"two hosts, src and dst: {topology.text}, here at {SCALE:.0%} of that rate", flush=True)
        print(f"{format_size(SIZE_BYTES)} to copy", flush=True)
        print(f"the controller: {OWN.rest}", flush=True)
        make_file(folder / "large.bin", SIZE_BYTES)
        (folder / "served").mkdir()
        source, sink = lab.host("src"), lab.host("dst")
        whole = True
        with mpx_server(sink, folder / "served", port=2811, allow_from=f"{source.addresses[0]}/32") as url:
            print(f"mpx serve: {url}/", flush=True)
            ways: dict[str, list[str]] = {"one": [], "four": ["--controller", str(OWN.rest)]}
            for way, options in ways.items():
                target = f"ftp://dst/{way}.bin"
                said = " ".join(["mpx copy", *options, str(folder / "large.bin"), target])
                print(f"\n--- over {way} path{'' if way == 'one' else 's'}: {said}", flush=True)
                report = REPORTS / f"demo-multipath-{way}.json"
                rates = PathRates(lab)
                with rates.during():
                    whole &= copy(
                        str(folder / "large.bin"), target, report, folder / "state", source.run, options
                    )
                hand_over(report)
                print("carried by the first link of each path, in the three seconds with most in all:")
                for link, rate_bps in zip(PATHS, rates.most_bps, strict=True):
                    print(f"{link}: {format_rate(rate_bps):>14} {'#' * round(rate_bps / 0.5e6)}")
                whole = whole and filecmp.cmp(
                    folder / "large.bin", folder / "served" / f"{way}.bin", shallow=False
                )
    print(f"\n{VERDICTS[whole]}")
    return 0 if whole else 1


if __name__ == "__main__":
    run_demo("demo-multipath", main)
