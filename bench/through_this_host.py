"""Copies between two servers, one or both of them with SFTP only, which pass through this host.

    mpx lab simulate python bench/through_this_host.py        (needs root, sshd and scp)

One large file, and many of 10 kB, from one folder of a host to another, both 60 ms away: mpx over SFTP at
both ends, and with `mpx://` at one, beside `scp -3` and tar from one ssh into another. Whole commands count,
from start to end; mpx compares every file and syncs it, the others do neither.
Goals, over SFTP at both ends: no longer than `scp -3` with the large file, and a tenth of it with many files.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

import harness
from encrypted_small import FILE_BYTES, RTT_S, served
from figures import Verdict, machine
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.private_sshd import HOST
from mpx_lab.topology import Topology, wan
from race_loopback import MPX, make

from mpx.units import parse_rate, parse_size

BOTH, FROM, INTO = "SFTP to SFTP", "SFTP to mpx://", "mpx:// to SFTP"
SCP, TAR = "scp -3", "tar | tar"
LARGE, MANY = "large", "many"
MOST = {LARGE: 1.0, MANY: 0.1}  # of scp -3

Results = Mapping[str, Mapping[str, float]]  # seconds, by what is copied and by tool


def measure(options: argparse.Namespace) -> Results:
    """Copy a large file and many small ones with each tool; print the table."""
    harness.require_root()
    print(machine())
    found: dict[str, dict[str, float]] = {LARGE: {}, MANY: {}}
    link = wan("src", "dst", rate_bps=options.rate, rtt_s=RTT_S)
    with (
        harness.work_folder("through-this-host", "/tmp") as folder,
        Lab.up(Topology("through", ("src",), ("dst",), links=(link,)), "through") as lab,
        served(lab.host("dst"), folder) as url,
    ):
        (folder / LARGE).mkdir()
        make(folder / LARGE / "file", options.size)
        (folder / MANY).mkdir()
        for number in range(options.files):
            (folder / MANY / f"f{number:07}").write_bytes(os.urandom(FILE_BYTES))
        for what, took_s in found.items():
            for tool in (BOTH, FROM, INTO, SCP, TAR):
                took_s[tool] = _timed(lab.host("src"), folder / what, folder / "target", tool, url)
                sys.stderr.write(f"{what}, {tool}: {took_s[tool]:.2f} s\n")
    print("\n".join(table(found)))
    return found


def table(results: Results) -> Iterator[str]:
    """Each tool, in seconds."""
    yield "| tool | one large file, s | many files, s |"
    yield "|---|---|---|"
    for tool in results[LARGE]:
        yield f"| {tool} | {results[LARGE][tool]:.2f} | {results[MANY][tool]:.2f} |"


def _words(source: Path, target: Path, tool: str, url: str) -> list[str]:
    if tool == SCP:
        return ["scp", "-q", "-3", "-r", f"scp://{HOST}/{source}", f"scp://{HOST}/{target}"]
    if tool == TAR:
        pack = shlex.join(["tar", "-C", str(source), "-cf", "-", "."])
        unpack = f"mkdir {target} && {shlex.join(['tar', '-C', str(target), '-xf', '-'])}"
        return ["sh", "-c", f"{shlex.join(['ssh', HOST, pack])} | {shlex.join(['ssh', HOST, unpack])}"]
    near = url + source.name if tool == INTO else f"ssh://{HOST}{source}"
    far = url + target.name if tool == FROM else f"ssh://root@{HOST}{target}"
    return [MPX, "copy", "-q", "-r", near, far]


def _timed(host: LabHost, source: Path, target: Path, tool: str, url: str) -> float:
    words = _words(source, target, tool, url)
    began_s = time.monotonic()
    host.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took_s = time.monotonic() - began_s
    if subprocess.run(["diff", "-r", source, target], stdout=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit(f"{shlex.join(words)}: {target} is not the source")
    shutil.rmtree(target)
    return took_s


def judge(measured: Results) -> Iterable[Verdict]:
    """Hold SFTP at both ends against `scp -3`."""
    for what, most in MOST.items():
        ratio = measured[what][BOTH] / measured[what][SCP]
        yield Verdict(f"{what}: at most {most:g} of {SCP}", f"{ratio:.2f}", ratio <= most)


def main() -> None:
    """Measure and judge."""
    parser = harness.command(__doc__)
    parser.add_argument("--size", type=harness.argument(parse_size), default=300_000_000)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--rate", type=harness.argument(parse_rate), default=1e9)
    harness.run(parser, measure, judge)


if __name__ == "__main__":
    main()
