"""`make demo`: copies a tree up and down through a path of 30 ms, with the tuner on, and shows what it did.

Starts `mpx serve` on loopback behind the delaying proxy, which caps each connection and all of them
together, so that one stream is not enough and too many bring no gain. Removes everything but the reports.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mpx.engine.path_set import DEFAULT_PATH
from mpx.errors import MpxError
from mpx.units import counted, format_duration, format_rate, format_size
from mpx_lab.proxy import DelayProxy

LARGE_BYTES = 1 << 30
SMALL_FILES = 50
ROOM_BYTES = 3 * LARGE_BYTES + (64 << 20)  # the tree, what is served, and what comes back
RTT_S = 0.03
RATE_BPS = 80e6  # of each connection
TOTAL_RATE_BPS = 640e6  # of all together
WINDOW_BYTES = 200_000  # a little more than the rate times RTT, so that no long queue builds up
REPORTS = Path("reports")

VERDICTS = {  # of both copies, as said at the end of each demo
    True: "both copies were compared with the original byte for byte: they are the same",
    False: "A COPY FAILED OR DIFFERS from the original",
}

Run = Callable[..., "subprocess.CompletedProcess[Any]"]  # takes what subprocess.run takes


def main() -> int:
    """Run the demo; return 0 when both copies are whole."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < ROOM_BYTES:
        print(
            f"demo: {tempfile.gettempdir()} has {format_size(free)} free and {format_size(ROOM_BYTES)} are "
            "needed; make room, or name another folder with TMPDIR",
            file=sys.stderr,
        )
        return 1
    REPORTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mpx-demo-") as name:
        folder = Path(name)
        print(
            f"making a tree: one file of {format_size(LARGE_BYTES)} and {SMALL_FILES} small ones", flush=True
        )
        make_tree(folder / "tree")
        (folder / "served").mkdir()
        with (
            Endpoint(folder / "served") as port,
            DelayProxy(
                ("127.0.0.1", port),
                rtt_s=RTT_S,
                rate_bps=RATE_BPS,
                total_rate_bps=TOTAL_RATE_BPS,
                window_bytes=WINDOW_BYTES,
            ) as proxy,
        ):
            url = f"ftp://127.0.0.1:{proxy.port}"
            print(
                f"the path to the server: RTT {format_duration(RTT_S)}, at most {format_rate(RATE_BPS)} for "
                f"each connection and {format_rate(TOTAL_RATE_BPS)} for all together",
                flush=True,
            )
            whole = True
            for way, source, target in (
                ("up", str(folder / "tree"), f"{url}/tree"),
                ("down", f"{url}/tree", str(folder / "back")),
            ):
                print(f"\n--- {way}: mpx copy -r {source} {target}", flush=True)
                whole &= copy(source, target, REPORTS / f"demo-{way}.json", folder / "state")
        whole &= same(folder / "tree", folder / "back")
    print(f"\n{VERDICTS[whole]}")
    return 0 if whole else 1


class Endpoint:
    """`mpx serve` as a process of its own, as a user would start it."""

    def __init__(self, root: Path) -> None:
        self._command = [sys.executable, "-m", "mpx", "serve", str(root), "--writable", "--port", "0"]

    def __enter__(self) -> int:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        print(ready.rstrip(), flush=True)
        return int(ready.split("127.0.0.1:")[1].split("/")[0])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def make_tree(root: Path) -> None:
    """Write files that do not compress."""
    (root / "small").mkdir(parents=True)
    make_file(root / "large.bin", LARGE_BYTES)
    for i in range(SMALL_FILES):
        (root / "small" / f"file {i:02}.dat").write_bytes(os.urandom(1000 * i))


def make_file(name: Path, size_bytes: int) -> None:
    """Write a file of whole MiB that does not compress."""
    with name.open("wb") as out:
        for _ in range(size_bytes >> 20):
            out.write(os.urandom(1 << 20))


def copy(
    source: str,
    target: str,
    report: Path,
    state: Path,
    run: Run = subprocess.run,
    options: Sequence[str] = (),
) -> bool:
    """Run `mpx copy` (through `run`, where it is given) and print what it decided."""
    progress = "auto" if sys.stderr.isatty() else "plain"
    command = [sys.executable, "-m", "mpx", "copy", "-r", "--progress", progress, "--report", str(report)]
    environment = {**os.environ, "MPX_STATE_DIR": str(state)}
    began = time.monotonic()
    done = run([*command, *options, source, target], env=environment, check=False)
    took = time.monotonic() - began
    if done.returncode:
        return False
    record: dict[str, Any] = json.loads(report.read_text())
    print(f"checksum {record['checksum']['algorithm']}: {record['checksum']['result']}")
    print("decisions: when, how many streams from then on, goodput since the decision before, and why")
    for event in record["timeline"]:
        rate = format_rate(event["goodput_bps"])
        path = "" if event["path"] == DEFAULT_PATH else f"  path {event['path']}"
        streams = counted(event["streams"], "stream")
        print(f"  {event['t_s']:6.2f} s{path}  {streams:>11}  {rate:>13}  {event['reason']}")
    print(f"{format_duration(took)} in all; the report: {report.resolve()}", flush=True)
    return True


def same(one: Path, other: Path) -> bool:
    """Compare two trees byte for byte."""
    names = sorted(str(path.relative_to(one)) for path in one.rglob("*") if path.is_file())
    others = sorted(str(path.relative_to(other)) for path in other.rglob("*") if path.is_file())
    if names != others:
        return False
    _, mismatch, errors = filecmp.cmpfiles(one, other, names, shallow=False)
    return not mismatch and not errors


def run_demo(name: str, demo: Callable[[], int]) -> NoReturn:
    """Run a demo as a program, and end with its exit code."""
    try:
        sys.exit(demo())
    except MpxError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; nothing is left but the reports", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    run_demo("demo", main)
