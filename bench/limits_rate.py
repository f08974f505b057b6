"""The limit of `--rate`: within 3 % over any 5 s, over all streams, watched from outside of mpx.

The bytes that have arrived are the pages that the partial file takes on tmpfs, as the file system counts.
"""

import os
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from figures import Verdict
from interop.stock_server import StockServer

RATE_BPS = 800e6
WINDOW_S = 5.0
WITHIN = 0.03
LASTS_S = 14
LOOK_S = 0.02

Seen = tuple[float, int]  # seconds, bytes that have arrived by then


def rates(folder: Path) -> dict[str, list[float]]:
    """Copy at a given rate: up, down and local; over 1 and 16 streams (local: files at once).

    Returns the lowest and the highest rate of each.
    """
    found = {}
    root = folder / "served"
    root.mkdir()
    size = int(RATE_BPS / 8 * LASTS_S)
    with StockServer(root) as server:
        for streams in (1, 16):
            for words, source, target, url in (
                ("up", folder / "source", root / "target", True),
                ("down", root / "source", folder / "target", True),
                ("local", folder / "tree", folder / "back", False),
            ):
                how = ["--streams", str(streams)] if url else ["-r", "--files", str(streams)]
                files = 1 if url else streams
                _make(source, size, files)
                names = [str(source), str(target)]
                if words == "up":
                    names[1] = f"{server.url}target"
                if words == "down":
                    names[0] = f"{server.url}source"
                seen = watch(["--rate", f"{RATE_BPS / 1e6:g}Mbit/s", *how, *names], target, files)
                unit = f"{'stream' if url else 'file'}{'s' * (streams > 1)}{'' if url else ' at once'}"
                found[f"{words}, {streams} {unit}"] = list(extremes(seen, WINDOW_S))
                subprocess.run(["rm", "-rf", str(source), str(target)], check=True)
    return found


def judge_rates(found: Mapping[str, Sequence[float]]) -> Iterator[Verdict]:
    """Hold the lowest and the highest rate of each copy against what was asked for."""
    for what, (lowest, highest) in found.items():
        off = max(abs(lowest - RATE_BPS), abs(highest - RATE_BPS)) / RATE_BPS
        limit = f"--rate {RATE_BPS / 1e6:g}Mbit/s, {what}: within {WITHIN:.0%} over any {WINDOW_S:g} s"
        told = f"{lowest / 1e6:.1f} to {highest / 1e6:.1f} Mbit/s, at most {off:.1%} off"
        yield Verdict(limit, told, off <= WITHIN)


def watch(words: Sequence[str], target: Path, files: int) -> list[Seen]:
    """Run `mpx copy` and return what had arrived when, from the first byte to the last."""
    command = [sys.executable, "-m", "mpx", "copy", "-q", *words]
    partials: dict[str, int] = {}
    seen: list[Seen] = []
    where = target if files > 1 or "-r" in words else target.parent
    with subprocess.Popen(command) as process:
        try:
            while process.poll() is None:
                if len(partials) < files:
                    for path in where.glob(".*.part"):
                        partials.setdefault(path.name, os.open(path, os.O_RDONLY))
                now, stats = time.monotonic(), [os.fstat(fd) for fd in partials.values()]
                seen.append((now, sum(512 * status.st_blocks for status in stats)))
                time.sleep(LOOK_S)
        finally:
            for fd in partials.values():
                os.close(fd)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return moving(seen)


def moving(seen: Sequence[Seen]) -> list[Seen]:
    """Leave out what was seen before the first byte had come, and after the last had."""
    return [
        (at, arrived) for (_, before), (at, arrived) in pairwise(seen) if arrived and before < seen[-1][1]
    ]


def extremes(seen: Sequence[Seen], window_s: float) -> tuple[float, float]:
    """Return the lowest and the highest rate in bit/s over any `window_s` that what was seen covers.

    Between two looks bytes are taken to have come evenly. Raises ValueError if less than that was seen.
    """
    times = [at for at, _ in seen]
    rates = []
    for begin, before in seen:
        after = bisect_left(times, begin + window_s)
        if after == len(times):
            break
        (earlier, low), (later, high) = seen[after - 1], seen[after]
        share = (begin + window_s - earlier) / (later - earlier)
        rates.append((low + share * (high - low) - before) * 8 / window_s)
    if not rates:
        raise ValueError(f"what was seen lasts less than {window_s:g} s")
    return min(rates), max(rates)


def _make(source: Path, size: int, files: int) -> None:
    """Write what is to be copied: one file, or a folder of several that have the size together."""
    block = os.urandom(1 << 20)
    names = [source] if source.name != "tree" else [source / f"{i}" for i in range(files)]
    for name in names:
        name.parent.mkdir(exist_ok=True)
        with name.open("wb") as out:
            for _ in range((size // files) >> 20):
                out.write(block)
        name.chmod(0o644)
