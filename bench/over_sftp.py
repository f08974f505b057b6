"""Copies to and from a host with ssh and without mpx: mpx over SFTP, scp, and tar through ssh, in turns.

    python bench/over_sftp.py --size 1GiB --files 10000 --rtt 60ms

One large file over loopback, and many of 10 kB behind a relay that delays what it passes on.
A private sshd, tmpfs on both sides; whole commands count, from start to end. mpx verifies every file by
SHA-256 and syncs it, unless it says `none`; the others do neither. Goals: a large file unverified takes no
longer than 1.5 times what scp takes; many files take less than a quarter of a round trip each.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from figures import Spread, Verdict, machine
from free_ports import free_ports
from harness import argument, command, run, work_folder
from interop.sshd import HOST, private_sshd
from race_loopback import MPX, make

from mpx.units import parse_duration, parse_size

FILE_BYTES = 10_000
CHUNK_BYTES = 65536
UP, DOWN = "up", "down"
VERIFIED, UNVERIFIED, SCP, TAR = "mpx", "mpx, none", "scp", "tar through ssh"
MOST_OF_SCP = 1.5
MOST_OF_RTT = 0.25  # for each file


class Relay:
    """Passes on what comes, half a round trip later."""

    def __init__(self, to_port: int, rtt_s: float) -> None:
        self.port = free_ports(1)[0]
        self._to_port, self._half_s = to_port, rtt_s / 2
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=CHUNK_BYTES)
        self._ready.set()
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to_port)
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(4096)

        async def deliver() -> None:
            while True:
                due_s, chunk = await waiting.get()
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                if not chunk:
                    writer.close()
                    return
                writer.write(chunk)
                await writer.drain()

        delivering = asyncio.create_task(deliver())
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await waiting.put((time.monotonic() + self._half_s, chunk))
        await waiting.put((time.monotonic() + self._half_s, b""))
        with contextlib.suppress(OSError):
            await delivering


@contextlib.contextmanager
def host(rtt_s: float) -> Iterator[None]:
    """Have a host with ssh, that far away."""
    with private_sshd() as sshd:
        if rtt_s:
            relay = Relay(sshd.port, rtt_s)
            settings = sshd.client_config.read_text().replace(f"Port {sshd.port}", f"Port {relay.port}")
            sshd.client_config.write_text(f"{settings} StrictHostKeyChecking no\n")
        yield


def words_of(tool: str, source: Path, target: Path, direction: str) -> list[str]:
    """Return the command that copies a file or a tree."""
    ends = [str(source), f"{HOST}:{target}"] if direction == UP else [f"{HOST}:{source}", str(target)]
    if tool in (VERIFIED, UNVERIFIED):
        unverified = ["--checksum", "none"] if tool == UNVERIFIED else []
        return [str(MPX), "copy", "-q", "-r", *unverified, *ends]
    if tool == SCP:
        return ["scp", "-q", *ends]
    pack = f"tar -C {source.parent} -cf - {source.name}"
    unpack = f"tar -C {target.parent} -xf - --transform s/^{source.name}/{target.name}/"
    there, here = (f"ssh {HOST} '{unpack}'", pack) if direction == UP else (unpack, f"ssh {HOST} '{pack}'")
    return ["sh", "-c", f"{here} | {there}"]


Runs = dict[str, dict[str, list[float]]]  # seconds, by direction and tool


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Copy one large file over loopback, and many small ones over the longer path; print a row for each."""
    print(machine(None))
    with work_folder("sftp") as folder:
        os.environ["MPX_STATE_DIR"] = str(folder / "state")
        make(folder / "large", options.size)
        with host(0.0):
            large = copied(folder / "large", (VERIFIED, UNVERIFIED, SCP), options.runs)
        (folder / "large").unlink()
        (folder / "many").mkdir()
        for number in range(options.files):
            (folder / "many" / f"f{number:07}").write_bytes(os.urandom(FILE_BYTES))
        with host(options.rtt):
            many = copied(folder / "many", (VERIFIED, UNVERIFIED, TAR), options.runs)
    return {"files": options.files, "rtt_s": options.rtt, "large": large, "many": many}


def copied(
    source: Path,
    tools: Sequence[str],
    times: int,
    words_of: Callable[[str, Path, Path, str], list[str]] = words_of,
) -> Runs:
    """Run each tool in both directions, in turns, and print a row for each."""
    runs: Runs = {UP: {}, DOWN: {}}
    target = source.with_name("target")
    for _ in range(times):
        for direction, by_tool in runs.items():
            for tool in tools:
                began_s = time.perf_counter()
                words = words_of(tool, source, target, direction)
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
                by_tool.setdefault(tool, []).append(time.perf_counter() - began_s)
                check(source, target)
                shutil.rmtree(target) if target.is_dir() else target.unlink()
    print(f"| {source.name}: tool | direction | s |\n|---|---|---|")
    for direction, by_tool in runs.items():
        for tool, took in by_tool.items():
            print(f"| {tool} | {direction} | {Spread(took):.2f} |")
    return runs


def check(source: Path, target: Path) -> None:
    """End where a copy is not the same."""
    if subprocess.run(["diff", "-r", source, target], stdout=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit(f"{target} is not {source}")


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold a large file against scp, and many files against a round trip for each."""
    for direction, by_tool in measured["large"].items():
        ratio = Spread(by_tool[UNVERIFIED]).median / Spread(by_tool[SCP]).median
        limit = f"{direction}, unverified: at most {MOST_OF_SCP:g} times what scp takes"
        yield Verdict(limit, f"{ratio:.2f}", ratio <= MOST_OF_SCP)
    for direction, by_tool in measured["many"].items():
        trips = Spread(by_tool[VERIFIED]).median / measured["files"] / measured["rtt_s"]
        limit = f"{direction}: at most {MOST_OF_RTT:g} round trips for each of many files"
        yield Verdict(limit, f"{trips:.3f}", trips <= MOST_OF_RTT)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--size", type=argument(parse_size), default=1 << 30, help="of the large file")
    parser.add_argument("--files", type=int, default=10_000, help="how many of 10 kB")
    parser.add_argument("--rtt", type=argument(parse_duration), default=0.06, help="of the longer path")
    parser.add_argument("--runs", type=int, default=3)
    run(parser, measure, judge)
