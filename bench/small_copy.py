"""One small file up and down over a long path: how many round trips the whole program takes, and its rivals.

In simulated time: mpx lab simulate python bench/small_copy.py [SIZE_BYTES [RTT_S]]
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.mpx_server import mpx_server
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Topology, wan

RATE_BPS = 200_000_000


def rows(folder: Path, size_bytes: int, rtt_s: float) -> Iterator[str]:
    """Copy with each tool in both directions; yield a line for each copy."""
    served, here = folder / "served", folder / "here"
    for each in (served, here):
        each.mkdir()
        each.chmod(0o777)
        (each / "file").write_bytes(os.urandom(size_bytes))
        (each / "file").chmod(0o644)
    link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=rtt_s, bdp=1.0)
    with Lab.up(Topology("small-copy", ("src",), ("dst",), links=(link,)), "small-copy") as lab:
        client, host = lab.host("src"), lab.host("dst")
        with stock_server(host, served) as url:
            base = f"{url}{served}"
            yield from _both(client, "stock", _MPX, here, base, rtt_s)
            yield from _both(client, "stock", ["globus-url-copy"], here, base, rtt_s)
        with mpx_server(host, served) as url:
            yield from _both(client, "mpx serve", _MPX, here, url, rtt_s)


_MPX = [sys.executable, "-m", "mpx", "copy", "-q"]


def _both(client: LabHost, server: str, tool: list[str], here: Path, url: str, rtt_s: float) -> Iterator[str]:
    new = f"{tool[-1].strip('-')}-{server.split()[0]}"
    for way, source, target in (
        ("up", f"file://{here}/file", f"{url}/{new}"),
        ("down", f"{url}/file", f"file://{here}/{new}"),
    ):
        began_s = time.monotonic()
        client.run([*tool, source, target], stdout=subprocess.DEVNULL, check=True)
        took_s = time.monotonic() - began_s
        name = "mpx" if tool is _MPX else tool[0]
        yield f"{name:16} {server:10} {way:5} {took_s * 1000:6.0f} ms {took_s / rtt_s:5.1f} round trips"


def main(size_bytes: str = "1000000", rtt_s: str = "0.06") -> None:
    """Print a line for each copy."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for row in rows(Path(folder), int(size_bytes), float(rtt_s)):
            print(row, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
