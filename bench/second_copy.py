"""What a copy gains by what an earlier one found of its path, and what it loses where that has changed since.

    mpx lab simulate python bench/second_copy.py

200 Mbit/s and 60 ms unless said, uploads to a stock server. A first copy of 25 s goes over the path as it is
before; then one with that memory and one without (`--no-history`) each carry 300 MB over the path as it is
after, with the same losses and neighbours. `--effort full`: three seeds.

Goals: where the path is as before, at least 0.98 of the goodput without the memory, and more where many
streams are needed. Where it has changed, at least 0.98 in the median, and 0.9 in each run. Others keep 0.9 of
what they have beside a copy without the memory.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import harness
from figures import Spread, Verdict
from mpx_lab.lab import Lab
from mpx_lab.shape import Direction
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan
from mpx_lab.traffic.background import Background

RATE_BPS, RTT_S = 200_000_000, 0.060
FIRST_S, SIZE_BYTES, SPARSE_BYTES = 25.0, 300_000_000, 20 * 10**9
COMES_UP_S = 8.0  # of what is beside the second copy
TURNS = {"quick": 1, "full": 3}
SMALL_WINDOW_BYTES = 65535
CUBIC, BBR = "tcp(congestion=cubic)", "tcp(congestion=bbr)"
GAINS, MEDIAN, WORST = 1.0, 0.98, 0.9


@dataclass(frozen=True)
class Conditions:
    """A path at one time: share of frames that it loses, windows (None: as large as needed), others on it."""

    loss: float = 0.0
    window_bytes: int | None = None
    beside: str = ""


@dataclass(frozen=True)
class Timed:
    """Two copies of one turn, with the memory and without: seconds, and what others had meanwhile, bit/s."""

    case: str
    is_same: bool
    with_s: float
    without_s: float
    with_others_bps: float
    without_others_bps: float
    expected: int


CASES: Mapping[str, tuple[Conditions, Conditions]] = MappingProxyType(
    {
        "clean": (Conditions(), Conditions()),
        "windows of 64 KiB": (Conditions(window_bytes=SMALL_WINDOW_BYTES),) * 2,
        "0.1 % loss": (Conditions(0.001),) * 2,
        "0.5 % loss": (Conditions(0.005),) * 2,
        "beside CUBIC": (Conditions(beside=CUBIC),) * 2,
        "0.5 % loss, then none": (Conditions(0.005), Conditions()),
        "0.5 % loss, then beside CUBIC": (Conditions(0.005), Conditions(beside=CUBIC)),
        "0.5 % loss, then beside BBR": (Conditions(0.005), Conditions(beside=BBR)),
        "windows of 64 KiB, then large ones": (Conditions(window_bytes=SMALL_WINDOW_BYTES), Conditions()),
        "clean, then 0.5 % loss": (Conditions(), Conditions(0.005)),
    }
)


class SecondCopy(harness.Row[Sequence[Timed]]):
    """See the head of this file."""

    name = "second-copy"
    folder = "reports/second-copy"

    def results(self, options: argparse.Namespace) -> Sequence[Timed]:
        """Copy over every path, and print the table."""
        harness.require_root()
        found = []
        for case, (before, after) in CASES.items():
            for turn in range(1, TURNS[options.effort] + 1):
                with tempfile.TemporaryDirectory() as folder:
                    found.append(_measure(case, before, after, turn, Path(folder)))
                sys.stderr.write(f"{found[-1]}\n")
        print("\n".join(self.table(found)))
        return found

    def table(self, results: Sequence[Timed]) -> Sequence[str]:
        """Each case: Mbit/s of ours and of others, with the memory and without."""
        lines = [
            "| path | expects streams | with memory, Mbit/s | without | others | others without |",
            "|---|---|---|---|---|---|",
        ]
        for case in CASES:
            runs = [run for run in results if run.case == case]
            values = (
                [_mbps(run.with_s) for run in runs],
                [_mbps(run.without_s) for run in runs],
                [run.with_others_bps / 1e6 for run in runs],
                [run.without_others_bps / 1e6 for run in runs],
            )
            streams = ", ".join(str(run.expected) for run in runs)
            lines.append(f"| {case} | {streams} | {' | '.join(f'{Spread(each):.1f}' for each in values)} |")
        return lines

    def measured(self, results: Sequence[Timed]) -> list[dict[str, Any]]:
        """Return all runs, as JSON holds them."""
        return [asdict(run) for run in results]

    def draw(self, results: Sequence[Timed], axes: Any) -> None:
        """Goodput with the memory over that without, by case."""
        axes.axvline(1.0, linewidth=0.5)
        axes.plot([run.without_s / run.with_s for run in results], [run.case for run in results], "o")
        axes.set_xlabel("goodput with the memory, over that without")


def _mbps(took_s: float) -> float:
    return SIZE_BYTES * 8 / took_s / 1e6


def _measure(case: str, before: Conditions, after: Conditions, turn: int, folder: Path) -> Timed:
    folder.chmod(0o755)
    served = folder / "served"
    served.mkdir()
    served.chmod(0o777)
    for name, size_bytes in (("long", SPARSE_BYTES), ("file", SIZE_BYTES)):
        with (folder / name).open("wb") as file:
            file.truncate(size_bytes)
    link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=RTT_S, bdp=1.0)
    topology = Topology("second-copy", ("src",), ("dst",), links=(link,))
    with Lab.up(topology, "second-copy") as lab, stock_server(lab.host("dst"), served) as url:
        copies = _Copies(lab, folder, f"{url}{served}", turn)
        copies.first(before)
        others = [copies.timed(after, *options) for options in ((), ("--no-history",))]
    (with_s, with_bps), (without_s, without_bps) = others
    return Timed(case, before == after, with_s, without_s, with_bps, without_bps, copies.expected)


class _Copies:
    """The copies over one lab, from its first host to its second."""

    def __init__(self, lab: Lab, folder: Path, url: str, turn: int) -> None:
        self._lab, self._folder, self._url, self._turn = lab, folder, url, turn
        self._environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
        self.expected = 0

    def first(self, path: Conditions) -> None:
        """Copy for FIRST_S."""
        with self._over(path):
            process = self._lab.host("src").popen(self._command("long"), env=self._environment)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(FIRST_S)
            process.send_signal(signal.SIGINT)
            process.wait()
        (self._folder / "served" / "long").unlink(missing_ok=True)

    def timed(self, path: Conditions, *options: str) -> tuple[float, float]:
        """Copy SIZE_BYTES; return how long the program took, seconds, and what others had, bit/s."""
        report, there = self._folder / "report.json", self._folder / "served" / "file"
        with self._over(path):
            before, began_s = self._carried_bytes(), time.monotonic()
            words = self._command("file", "--report", str(report), *options)
            self._lab.host("src").run(words, env=self._environment, check=True)
            took_s = time.monotonic() - began_s
            all_bytes = self._carried_bytes() - before
        if not options:
            notes = " ".join(json.loads(report.read_text())["notes"])
            found = re.search(r"expects to need (\d+) streams", notes)
            self.expected = int(found[1]) if found else 0
        there.unlink()
        beside = bool(path.beside)
        return took_s, max(0.0, all_bytes - SIZE_BYTES) * 8 / took_s if beside else 0.0

    def _command(self, name: str, *options: str) -> list[str]:
        mpx = [sys.executable, "-m", "mpx", "copy", "-q", "--checksum", "none", "--no-continue"]
        return [*mpx, *options, str(self._folder / name), f"{self._url}/{name}"]

    def _carried_bytes(self) -> int:
        return self._lab.link("wan").stats().a_to_b.delivered.bytes

    @contextlib.contextmanager
    def _over(self, path: Conditions) -> Iterator[None]:
        source, sink = self._lab.host("src"), self._lab.host("dst")
        for host in (source, sink):
            host.set_route(congestion="cubic", window_bytes=path.window_bytes)
        with contextlib.ExitStack() as stack:
            if path.beside:
                flows = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                address = sink.addresses[1]
                stack.enter_context(
                    Background(path.beside, "beside", source, sink, address, flows, time.monotonic())
                )
                time.sleep(COMES_UP_S)  # it fills the link, whatever comes after it
            self._lab.link("wan").change(Direction.A_TO_B, loss=path.loss, seed=self._turn)
            try:
                yield
            finally:
                self._lab.link("wan").change(Direction.A_TO_B, loss=0.0)


def judge(stored: Sequence[Mapping[str, Any]]) -> Iterable[Verdict]:
    """Say whether the memory pays where the path is the same, and does no harm where it has changed."""
    for case in {each["case"]: None for each in stored}:
        runs = [each for each in stored if each["case"] == case]
        ratios = [each["without_s"] / each["with_s"] for each in runs]
        median = statistics.median(ratios)
        if runs[0]["is_same"]:
            yield Verdict(f"{case}: {MEDIAN} with the memory", f"{median:.3f}", median >= MEDIAN)
        if all(each["without_others_bps"] for each in runs):
            kept = statistics.median(each["with_others_bps"] / each["without_others_bps"] for each in runs)
            yield Verdict(f"{case}: others keep {WORST}", f"{kept:.2f}", kept >= WORST)
    changed = [each["without_s"] / each["with_s"] for each in stored if not each["is_same"]]
    gained = [each["without_s"] / each["with_s"] for each in stored if each["is_same"] and each["expected"]]
    if gained:
        median = statistics.median(gained)
        yield Verdict("same paths that need more streams: gains", f"{median:.3f}", median > GAINS)
    if changed:
        median = statistics.median(changed)
        yield Verdict(f"changed paths: {MEDIAN} in the median", f"{median:.3f}", median >= MEDIAN)
        yield Verdict(f"changed paths: {WORST} in each", f"{min(changed):.3f}", min(changed) >= WORST)


if __name__ == "__main__":
    harness.run_row(SecondCopy(), judge)
