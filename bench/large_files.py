"""A large file without holes, up to and down from a stock server, compared byte by byte. Run by hand.

    .venv/3.11/bin/python bench/large_files.py [--folder /dev/shm] [--size 5GiB]

Needs twice the size in the folder. Prints what each copy took; exits 1 if a byte differs, or if what was
copied was not verified.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Verdict
from harness import argument, command, run, work_folder
from interop.stock_server import StockServer

import mpx
from mpx.units import format_rate, parse_size

VERIFIED = "verified"


def judge(copies: Mapping[str, Mapping[str, Any]]) -> Iterator[Verdict]:
    """Say whether each copy is the same, byte for byte, and was shown to be by its checksum."""
    for direction, copy in copies.items():
        told = f"{'the same' if copy['is_same'] else 'another file'}, {copy['checksum']}"
        kept = copy["is_same"] and copy["checksum"] == VERIFIED
        yield Verdict(f"{direction}: byte for byte the same, and verified", told, kept)


def measure(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Copy a large file up and down, and compare."""
    measured = {}
    with work_folder("large", options.folder) as folder:
        root, here = folder / "served", folder / "here"
        root.mkdir()
        with here.open("wb") as out:
            for _ in range(options.size // (1 << 24)):
                out.write(os.urandom(1 << 24))
            out.write(os.urandom(options.size % (1 << 24) + 1))
        with StockServer(root) as server:
            there = root / "a"
            for words, source, target in (
                ("up", str(here), f"{server.url}a"),
                ("down", f"{server.url}a", f"{here}2"),
            ):
                report = mpx.copy(source, target)
                rate = format_rate(report.goodput_bps)
                print(f"{words}: {report.duration_s:.1f} s, {rate}", flush=True)
                copied = here if words == "up" else f"{here}2"
                is_same = subprocess.run(["cmp", copied, there], check=False).returncode == 0
                measured[words] = {"is_same": is_same, "checksum": str(report.checksum["result"])}
                if words == "up":
                    here.unlink()
    return measured


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--size", type=argument(parse_size), default=parse_size("5GiB"))
    run(parser, measure, judge)
