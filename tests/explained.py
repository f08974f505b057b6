"""Reports of real copies for tests of `mpx explain`, and changes of them.

Those in `reports/` were written by copies in simulated time (real kernels, docs/lab.md), with names made up
and intervals joined, four or so to one:

    background   50 Mbit/s, 40 ms, beside a CUBIC stream from 12 s on and a BBR stream from 45 s on
    download     50 Mbit/s, 50 ms, from a stock server with --policy fast, beside a CUBIC stream from 8 s on
    four_paths   four of 100 Mbit/s from a controller, one cut at 18 s, beside a BBR and a CUBIC stream
    outage       50 Mbit/s, 30 ms, cut from 8 to 16 s
    rate         100 Mbit/s, 30 ms, with --rate 20Mbit/s
    window       200 Mbit/s, 60 ms, with receive windows of 64 KiB
"""

import json
from pathlib import Path
from typing import Any

from mpx.explain.record import CopyRecord, read_report
from mpx.explain.story import tell

REPORTS = Path(__file__).parent / "reports"
NAMES = tuple(sorted(file.stem for file in REPORTS.glob("*.json")))


def stored(name: str) -> dict[str, Any]:
    """Return a report as JSON has it."""
    report: dict[str, Any] = json.loads((REPORTS / f"{name}.json").read_text())
    return report


def record(report: dict[str, Any]) -> CopyRecord:
    """Return what is read of it."""
    return read_report(json.dumps(report).encode(), "r.json")


def told(report: dict[str, Any]) -> dict[str, list[str]]:
    """Return what is told of it, by chapter."""
    return {
        chapter.title: [f"{finding.kind}: {finding.text}" for finding in chapter.findings]
        for chapter in tell(record(report))
    }
