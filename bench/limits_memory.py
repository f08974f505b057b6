"""Limits of memory: with 64 streams, and while a million names are listed."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from figures import Verdict
from interop.long_path import LongPath
from peers import own_server

MOST_BYTES = 150_000_000
STREAMS = 64

# Runs a command and tells what it used at most: the kernel's own count of its only child.
_MEASURE = (
    "import resource, subprocess, sys\n"
    "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n"
    "sys.exit(code)\n"
)


def peak_bytes(*arguments: object) -> int:
    """Return the peak resident memory of an `mpx` command."""
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-m", "mpx", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mpx {arguments} failed: {done.stderr}")
    return int(done.stdout)


def streams(folder: Path) -> dict[str, dict[str, float]]:
    """Copy with 64 streams, up and down."""
    found = {}
    for direction in ("up", "down"):
        work = folder / direction
        work.mkdir()
        way = LongPath(work, direction, 100_000_000, rate_bps=800e6)
        try:
            peak = peak_bytes("copy", "-q", *way.names, "--streams", STREAMS)
            record = way.proxy.record()
        finally:
            way.close()
        used = sum(c.kind == "data" and c.up_bytes + c.down_bytes > 0 for c in record.connections)
        found[direction] = {"peak_bytes": peak, "connections": used}
    return found


def judge_streams(found: Mapping[str, Mapping[str, float]]) -> Iterator[Verdict]:
    """Hold the memory of copies that did have so many streams against the limit."""
    for direction, seen in found.items():
        used, peak = seen["connections"], seen["peak_bytes"]
        limit = f"{STREAMS} streams {direction}: at most {MOST_BYTES / 1e6:.0f} MB"
        told = f"{peak / 1e6:.0f} MB, {used} connections"
        yield Verdict(limit, told, peak <= MOST_BYTES and used >= STREAMS)


def listings(folder: Path, names: int) -> dict[str, dict[str, float]]:
    """List so many names in one folder, and rehearse a copy of them, from this host and from a server."""
    found = {}
    root = folder / "served"
    many = make_names(root / "many", names)
    try:
        with own_server(root) as server:
            for where, source in (("local", str(many)), ("remote", f"{server.url}many")):
                for what, words in (
                    ("mpx list", ["list", source]),
                    ("mpx copy -r --dry-run", ["copy", "-r", "--dry-run", source, str(folder / "nowhere")]),
                ):
                    began = time.monotonic()
                    peak = peak_bytes(*words)
                    seconds = time.monotonic() - began
                    found[f"{what}, {names} names, {where}"] = {"peak_bytes": peak, "seconds": seconds}
            found[f"mpx serve, having listed {names} names twice"] = {"peak_bytes": server.peak_bytes}
    finally:
        shutil.rmtree(root)
    return found


def judge_listings(found: Mapping[str, Mapping[str, float]]) -> Iterator[Verdict]:
    """Hold the memory of listings against the limit."""
    for what, seen in found.items():
        peak = seen["peak_bytes"]
        more = f", {seen['seconds']:.0f} s" if "seconds" in seen else ""
        limit = f"{what}: at most {MOST_BYTES / 1e6:.0f} MB"
        yield Verdict(limit, f"{peak / 1e6:.0f} MB{more}", peak <= MOST_BYTES)


def make_names(folder: Path, names: int) -> Path:
    """Make a folder with so many empty files; return it."""
    folder.mkdir(parents=True)
    at = os.open(folder, os.O_RDONLY)
    for i in range(names):
        os.close(os.open(f"event-{i:07}.root", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at))
    os.close(at)
    return folder
