"""Copies over ssh to and from a host without mpx: by its GridFTP server (sshftp), by SFTP, and other tools.

    sudo .venv/3.11/bin/python bench/over_sshftp.py --size 500MB --files 10000 --rtt 60ms

Two hosts of a lab, that far apart: one large file, and many of 10 kB, in turns. Whole commands count, from
start to end, with the login. mpx verifies every file and sshftp encrypts its data, as ssh does.
Goal: sshftp takes no longer than SFTP, with the large file and with many.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Spread, Verdict, machine
from free_ports import free_ports
from harness import argument, command, run, work_folder
from install_peers import find_peer
from interop.sshftp_account import SshftpAccount, sshftp_account
from mpx_lab import namespace
from mpx_lab import private_sshd as lab_sshd
from mpx_lab.lab import Lab
from mpx_lab.private_sshd import PrivateSshd
from mpx_lab.topology import Topology, wan
from over_sftp import FILE_BYTES, TAR, VERIFIED, copied, words_of
from race_loopback import make

from mpx.units import parse_duration, parse_rate, parse_size

SSHFTP, SFTP = "mpx, sshftp", "mpx, SFTP"


@contextlib.contextmanager
def account(rate_bps: float, rtt_s: float) -> Iterator[tuple[str, SshftpAccount]]:
    """Have two hosts, and at the second an account; the network of the first is named."""
    link = wan("src", "dst", rate_bps=rate_bps, rtt_s=rtt_s)
    with Lab.up(Topology("sshftp", ("src",), ("dst",), links=(link,)), "sshftp") as lab:
        client, server = lab.host("src"), lab.host("dst")
        there = partial(namespace.inside, server.netns)

        def start(*settings: str) -> contextlib.AbstractContextManager[PrivateSshd]:
            port = free_ports(1)[0]
            return lab_sshd.private_sshd(find_peer("sshd"), port, settings, server.addresses[0], there)

        with sshftp_account(start=start) as enabled:
            enabled.enable()
            yield client.netns, enabled


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Copy one large file, and many small ones; print a row for each."""
    print(machine(None))
    found: dict[str, Any] = {"files": options.files, "rtt_s": options.rtt, "rate_bps": options.rate}
    with work_folder("sshftp") as folder, account(options.rate, options.rtt) as (here, there):
        os.environ["MPX_STATE_DIR"] = str(folder / "state")
        make(folder / "large", options.size)
        (folder / "many").mkdir()
        for number in range(options.files):
            (folder / "many" / f"f{number:07}").write_bytes(os.urandom(FILE_BYTES))
        tools, words = (SSHFTP, SFTP, TAR), partial(words_for, there)
        for name in ("large", "many"):
            found[name] = namespace.inside(here, partial(copied, folder / name, tools, options.runs, words))
    return found


def words_for(there: SshftpAccount, tool: str, source: Path, target: Path, direction: str) -> list[str]:
    """Return the command that copies a file or a tree; only for one tool the GridFTP server is there."""
    there.script.chmod(0o755 if tool == SSHFTP else 0o644)
    return words_of(TAR if tool == TAR else VERIFIED, source, target, direction)


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold sshftp against SFTP."""
    for name in ("large", "many"):
        for direction, by_tool in measured[name].items():
            ratio = Spread(by_tool[SSHFTP]).median / Spread(by_tool[SFTP]).median
            yield Verdict(f"{name}, {direction}: at most what SFTP takes", f"{ratio:.2f}", ratio <= 1.0)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--size", type=argument(parse_size), default=500_000_000, help="of the large file")
    parser.add_argument("--files", type=int, default=10_000, help="how many of 10 kB")
    parser.add_argument("--rtt", type=argument(parse_duration), default=0.06, help="of the path")
    parser.add_argument("--rate", type=argument(parse_rate), default=1e9, help="of the path")
    parser.add_argument("--runs", type=int, default=3)
    run(parser, measure, judge)
