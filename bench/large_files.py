"""A large file without holes, up and down between us and a stock server, byte for byte. Run by hand.

    .venv/3.11/bin/python bench/large_files.py [--folder /dev/shm] [--size 5GiB]

Needs twice the size in the folder. Prints what each copy took; exits 1 if a byte differs, or if what was
copied was not verified.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Verdict, concluded
from interop.stock_server import StockServer

import mpx
from mpx.units import format_rate, parse_size

VERIFIED = "verified"


def verdict(direction: str, result: str, *, is_same: bool) -> Verdict:
    """Say whether a copy is the same, byte for byte, and was shown to be by its checksum."""
    measured = f"{'the same' if is_same else 'another file'}, {result}"
    return Verdict(
        f"{direction}: byte for byte the same, and verified", measured, is_same and result == VERIFIED
    )


def main() -> int:
    """Return 0 when everything is the same."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--folder", default="/dev/shm")
    arguments.add_argument("--size", type=parse_size, default=parse_size("5GiB"))
    given = arguments.parse_args()
    said = []
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="mpx-large-") as folder:
        Path(folder).chmod(0o755)
        root, here = Path(folder) / "served", Path(folder) / "here"
        root.mkdir()
        with here.open("wb") as out:
            for _ in range(given.size // (1 << 24)):
                out.write(os.urandom(1 << 24))
            out.write(os.urandom(given.size % (1 << 24) + 1))
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
                said.append(verdict(words, str(report.checksum["result"]), is_same=is_same))
                if words == "up":
                    here.unlink()
    return concluded(said)


if __name__ == "__main__":
    sys.exit(main())
