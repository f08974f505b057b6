"""How long whole programs take for copies that end: of one file, of many small ones, over several paths.

As a program, in simulated time: python bench/apt/race_copies.py FILE KIND up|down
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

BENCH = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))

from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.own_controller import OWN
from mpx_lab.stock_server import stock_server
from mpx_lab.topologies import THESIS_A
from mpx_lab.topology import Topology, wan

from apt.race_links import OTHERS, RATE_BPS, RTT_S
from apt.tools import DOWN, command_of

OURS, OURS_FAST = "mpx", "mpx fast"
WITHIN_S = 900.0  # a copy that takes longer is given up
LOOK_S = 0.05
IN_MEMORY = "/dev/shm"
DYING = "s1-s4"  # a link of one of the four paths
DIES_BYTES = 10_000_000  # of that path, when it dies
PATHS_BPS = (50_000_000,) * 4
UNEQUAL_BPS = (80_000_000, 60_000_000, 40_000_000, 20_000_000)


@dataclass(frozen=True)
class Kind:
    """What is copied, and over what: one path, or several of these rates."""

    size_bytes: int
    files: int = 1
    paths_bps: tuple[int, ...] = ()
    dies: bool = False  # one of the paths, in the middle of the copy

    @property
    def least_s(self) -> float:
        """How long it takes at least over several paths, seconds."""
        size_bytes, rates_bps = self.size_bytes * self.files, list(self.paths_bps)
        if self.dies:
            rates_bps.pop()
            size_bytes -= DIES_BYTES
        return 8 * size_bytes / sum(rates_bps)

    @property
    def topology(self) -> Topology:
        """Return the network."""
        if not self.paths_bps:
            link = wan("src", "dst", rate_bps=RATE_BPS, rtt_s=RTT_S, bdp=1.0)
            return Topology("race", ("src",), ("dst",), links=(link,))
        rates = iter(self.paths_bps)
        links = (
            wan(link.a, link.b, next(rates), RTT_S, name=link.name) if link.rate_bps else link
            for link in THESIS_A.links
        )
        return replace(THESIS_A, links=tuple(links))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "1 MB": Kind(1_000_000),
        "100 MB": Kind(100_000_000),
        "10,000 files of 10 KB": Kind(10_000, files=10_000),
        "500 MB, four paths": Kind(500_000_000, paths_bps=PATHS_BPS),
        "500 MB, four unequal paths": Kind(500_000_000, paths_bps=UNEQUAL_BPS),
        "500 MB, a path that dies": Kind(500_000_000, paths_bps=PATHS_BPS, dies=True),
    }
)


def commands(kind: Kind, *, up: bool) -> Mapping[str, Callable[[str, str], list[str]]]:
    """Return what each tool runs, by its name: for a local name and the URL of the same at the server."""

    def mpx(*options: str) -> Callable[[str, str], list[str]]:
        many = ["-r"] if kind.files > 1 else []
        steered = ["--controller", str(OWN.rest)] if kind.paths_bps else []
        words = [sys.executable, "-m", "mpx", "copy", "-q", *many, *steered, *options]
        return lambda here, there: words + ([here, there] if up else [there, here])

    ours = {OURS: mpx(), OURS_FAST: mpx("--policy", "fast")}
    if kind.paths_bps:
        return ours
    if kind.files > 1:
        return ours | {"guc": _folder(up=up)}
    down = "" if up else DOWN

    def other(tool: str) -> Callable[[str, str], list[str]]:
        return lambda here, there: command_of(f"{tool}{down}", here, there, "")

    return ours | {tool: other(tool) for tool in OTHERS[down]}


def _folder(*, up: bool) -> Callable[[str, str], list[str]]:
    plain = ["globus-url-copy", "-r", "-cc", "4", "-pp", "-fast", "-cd"]

    def words(here: str, there: str) -> list[str]:
        ends = (f"file://{here}/", f"{there}/")
        return [*plain, *(ends if up else reversed(ends))]

    return words


def measure(kind: Kind, *, up: bool) -> dict[str, float | None]:
    """Return how long each tool took, seconds; None where it failed, or was given up."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name:  # of a machine's own: there folders have owners
        folder = Path(name)
        folder.chmod(0o755)
        served = folder / "served"
        source = (folder if up else served) / "source"
        served.mkdir()
        _make(source, kind)
        for each in (served, *served.rglob("*")):
            each.chmod(0o777)
        found: dict[str, float | None] = {}
        for tool, command in commands(kind, up=up).items():
            # A network of its own for each: what a path has been through shows in the kernel's caches.
            steered = bool(kind.paths_bps)
            with (
                Lab.up(kind.topology, "race", controller=OWN if steered else None) as lab,
                _serving(lab, served, steered=steered) as url,
            ):
                target = (served if up else folder) / tool.replace(" ", "-")
                here, there = (source, target) if up else (target, source)
                found[tool] = _took_s(lab, kind, command(str(here), f"{url}/{there.relative_to(served)}"))
    return found


@contextmanager
def _serving(lab: Lab, served: Path, *, steered: bool) -> Iterator[str]:
    """Serve a folder, stock but where streams are steered; yield the URL of what is in it."""
    host = lab.host("dst")
    if steered:
        with mpx_server(host, served) as url:
            yield url
    else:
        with stock_server(host, served) as url:
            yield f"{url}{served}"


def _make(source: Path, kind: Kind) -> None:
    if kind.files == 1:
        with source.open("wb") as file:
            for begin in range(0, kind.size_bytes, 1 << 20):
                file.write(os.urandom(min(1 << 20, kind.size_bytes - begin)))
        return
    for number in range(kind.files):
        home = source / f"d{number // 1000:02}"
        home.mkdir(parents=True, exist_ok=True)
        (home / f"f{number:05}").write_bytes(os.urandom(kind.size_bytes))


def _took_s(lab: Lab, kind: Kind, words: list[str]) -> float | None:
    began_s = time.monotonic()
    process = lab.host("src").popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    killer = threading.Thread(target=_die, args=(lab, process))
    if kind.dies:
        killer.start()
    try:
        said = process.communicate(timeout=WITHIN_S)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    finally:
        if kind.dies:
            killer.join()  # it ends with the process, at the latest
    if process.returncode:
        sys.stderr.write(f"{words[0]}: {said.decode(errors='replace')[-500:]}\n")
        return None
    return time.monotonic() - began_s


def _die(lab: Lab, process: "subprocess.Popen[bytes]") -> None:
    """Have a path lose everything, once some has gone over it."""
    link = lab.link(DYING)

    def carried() -> int:
        stats = link.stats()
        return stats.a_to_b.delivered.bytes + stats.b_to_a.delivered.bytes

    while process.poll() is None:
        if carried() >= DIES_BYTES:
            link.change(loss=1.0)
            return
        time.sleep(LOOK_S)  # a link has no event for what it has carried


def main(file: str, kind: str, direction: str) -> None:
    """Measure, and write what was found."""
    Path(file).write_text(json.dumps(measure(KINDS[kind], up=direction == "up")))


if __name__ == "__main__":
    main(*sys.argv[1:])
