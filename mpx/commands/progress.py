"""The live view of a copy: a line that is rewritten, plain lines, or JSON lines, on standard error."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from mpx.report import OnProgress, Progress
from mpx.units import counted, format_duration, format_rate, format_size

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
    unshown: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal last_s, unshown
        now = time.monotonic()
        unshown = progress
        if now - last_s < interval_s:
            return
        last_s, unshown = now, None
        _print(kind, progress)

    try:
        yield show
    finally:
        if kind == "live":
            width = _columns() - 1
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)
        elif unshown is not None:  # whoever reads lines is to see how it ended
            _print(kind, unshown)


def _print(kind: str, progress: Progress) -> None:
    if kind == "json":
        values = asdict(progress) | {
            "elapsed_s": round(progress.elapsed_s, 3),
            "goodput_bps": round(progress.goodput_bps),
        }
        print(json.dumps(values), file=sys.stderr, flush=True)
    elif kind == "plain":
        print(line_of(progress), file=sys.stderr, flush=True)
    else:
        width = _columns() - 1
        print(f"\r{line_of(progress)[:width]:<{width}}", end="", file=sys.stderr, flush=True)


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


def line_of(progress: Progress) -> str:
    """Return one line: how far, how fast, with how many streams and why, how long still."""
    is_begun = progress.files_total or progress.is_listed or progress.streams
    if not is_begun and (progress.outage or progress.reason):
        return progress.outage or progress.reason  # what comes before files are looked for
    done, total = progress.bytes_done, progress.bytes_total
    files = f"{progress.files_done}/{progress.files_total} files"
    if progress.files_failed:
        files += f", {progress.files_failed} failed"
    parts = [f"{format_size(done)} of {format_size(total)}", files]
    if not progress.is_listed:
        parts.append("still listing")
    elif total:
        parts.insert(0, f"{done / total:4.0%}")
    if progress.outage:
        parts.insert(-1 if progress.is_listed else -2, progress.outage)  # a line may be cut at its end
    elif done < total or not progress.is_listed:
        parts.append(format_rate(progress.goodput_bps))
        parts.append(counted(progress.streams, "stream"))
        if progress.goodput_bps > 0 and progress.is_listed:
            left_s = max(1, round((total - done) * 8 / progress.goodput_bps))
            parts.append(f"{format_duration(left_s)} left")
        parts.append(progress.reason)
    elif progress.files_done + progress.files_failed < progress.files_total:
        parts.append("verifying")
    return "  ".join(parts)
