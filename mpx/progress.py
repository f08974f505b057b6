"""The live view of a copy: a line that is rewritten, plain lines, or JSON lines, on standard error."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from mpx.units import format_duration, format_rate, format_size
from mpx.watcher import OnProgress, Progress

LINE_INTERVAL_S = 0.2
PLAIN_INTERVAL_S = 5.0
JSON_INTERVAL_S = 1.0


@contextmanager
def view(kind: str) -> Iterator[OnProgress | None]:
    """Yield what copy() is to call; `kind` is auto, plain, json or none."""
    if kind == "auto":
        kind = "live" if sys.stderr.isatty() else "none"
    if kind == "none":
        yield None
        return
    interval_s = {"live": LINE_INTERVAL_S, "plain": PLAIN_INTERVAL_S, "json": JSON_INTERVAL_S}[kind]
    last_s = -interval_s

    def show(progress: Progress) -> None:
        nonlocal last_s
        now = time.monotonic()
        if now - last_s < interval_s:
            return
        last_s = now
        if kind == "json":
            print(json.dumps(asdict(progress)), file=sys.stderr, flush=True)
        elif kind == "plain":
            print(line_of(progress), file=sys.stderr, flush=True)
        else:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line_of(progress)[:width]:<{width}}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if kind == "live":
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)


def line_of(progress: Progress) -> str:
    """Return one line: how far, how fast, with how many streams and why, how long still."""
    share = progress.bytes_done / progress.bytes_total if progress.bytes_total else 0.0
    left = progress.bytes_total - progress.bytes_done
    remaining = format_duration(left * 8 / progress.goodput_bps) if progress.goodput_bps > 0 else "?"
    return (
        f"{share:4.0%}  {format_size(progress.bytes_done)} of {format_size(progress.bytes_total)}  "
        f"{format_rate(progress.goodput_bps)}  {progress.streams} streams  "
        f"{progress.files_done}/{progress.files_total} files  {remaining} left  {progress.reason}"
    )
