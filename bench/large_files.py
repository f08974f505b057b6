"""A large file without holes, up and down between us and a stock server, byte for byte. Run by hand.

    .venv/3.11/bin/python bench/large_files.py [--folder /dev/shm] [--size 5GiB]

Needs twice the size in the folder. Prints what each copy took; exits 1 if a byte differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from interop.stock_server import StockServer

import mpx
from mpx.units import format_rate, parse_size


def main() -> int:
    """Return 0 when everything is the same."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--folder", default="/dev/shm")
    arguments.add_argument("--size", type=parse_size, default=parse_size("5GiB"))
    given = arguments.parse_args()
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
                print(f"{words}: {report.duration_s:.1f} s, {rate}, {report.checksum['result']}")
                if words == "up":
                    if subprocess.run(["cmp", here, there], check=False).returncode:
                        return 1
                    here.unlink()
            return subprocess.run(["cmp", f"{here}2", there], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
