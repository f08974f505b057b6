"""Programs that make and remove labs, to be killed on the way."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mpx_lab.topology import Link, Topology

# One of each: a direct link, a cable, switches in a circle.
ALL_KINDS = Topology(
    "all-kinds",
    ("a",),
    ("b",),
    (
        Link("a", "b", "direct", delay_s=0.001),
        Link("a", "s1"),
        Link("s1", "s2", rate_bps=100_000_000),
        Link("s1", "s2", "spare", rate_bps=100_000_000),
        Link("s2", "b", rate_bps=100_000_000),
    ),
    ("s1", "s2"),
)
# The same but for the circle, for which the spanning tree takes its time.
NO_CIRCLE = Topology(
    "no-circle",
    ("a",),
    ("b",),
    (Link("a", "b", "direct", delay_s=0.001), Link("a", "s"), Link("s", "b", rate_bps=100_000_000)),
    ("s",),
)


@contextmanager
def python(code: str, *words: object) -> Iterator["subprocess.Popen[str]"]:
    """A program that can import what this test can; killed at the end."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def first_line(process: "subprocess.Popen[str]") -> str:
    """What it says first."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
