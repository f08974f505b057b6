"""One copy in a lab, with a record of the acknowledged bytes of each stream."""

import contextlib
import json
import os
import pwd
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from many_paths import ManyPaths
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.series import Sample
from mpx_lab.stock_server import stock_server
from mpx_lab.traffic.socket_table import SocketTable

LOOK_S = 0.05
DATA_BYTES = 20_000  # a connection with less acknowledged is for commands
TEACHINGS = 30  # reports until the prediction has converged


class CopyFailed(RuntimeError):
    """The tool failed, or copied only a part."""


@dataclass(frozen=True)
class Copy:
    """One copy: seconds from the start of the tool to its end, and path and bytes of each stream.

    The seconds include the request to the controller and login; globus-url-copy verifies nothing.
    """

    seconds: float
    paths: Sequence[int | None]
    streams: Sequence[Sequence[Sample]]

    def save(self, file: Path) -> None:
        """Write it."""
        streams = [[(each.t_s, each.size_bytes) for each in stream] for stream in self.streams]
        file.write_text(json.dumps({"seconds": self.seconds, "paths": self.paths, "streams": streams}))

    @classmethod
    def load(cls, file: Path) -> "Copy":
        """Read what was written."""
        saved = json.loads(file.read_text())
        streams = [[Sample(t_s, size) for t_s, size in stream] for stream in saved["streams"]]
        return cls(saved["seconds"], saved["paths"], streams)


class Watcher:
    """Samples all connections from one host to another that begin in the block, until its end."""

    def __init__(self, netns: str, peer: str) -> None:
        self._table, self._peer = inside(netns, SocketTable), peer
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._acked: dict[int, list[tuple[float, int]]] = defaultdict(list)  # by port
        self._before: frozenset[int] = frozenset()  # ports of connections that have not quite ended

    def __enter__(self) -> "Watcher":
        self._look()
        self._before, self._acked = frozenset(self._acked), defaultdict(list)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._table.close()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()
        self._look()

    def _look(self) -> None:
        at_s = time.monotonic()
        for each in [*self._table.open(), *self._table.ended()]:
            ours = each.peer[0] == self._peer and each.local[1] not in self._before
            if ours and each.sample.bytes_acked > 0:
                self._acked[each.local[1]].append((at_s, each.sample.bytes_acked))

    def streams(self) -> dict[int, list[Sample]]:
        """Return what each brought over since the first began, by its port."""
        data = {port: looks for port, looks in self._acked.items() if looks[-1][1] > DATA_BYTES}
        if not data:
            raise CopyFailed("no stream was seen")
        began_s = min(looks[0][0] for looks in data.values()) - LOOK_S
        found = {}
        for port, looks in data.items():
            before, samples = 0, [Sample(looks[0][0] - LOOK_S - began_s, 0)]
            for at_s, acked in looks:
                samples.append(Sample(at_s - began_s, acked - before))
                before = acked
            found[port] = samples
        return found


def copy(site: ManyPaths | Lab, streams: int, size_bytes: int, paths: int, *, in_turn: bool) -> Copy:
    """Copy a file of holes from the first source to the first sink; raises CopyFailed.

    `paths` 0: the tool alone. What arrives is kept in memory.
    """
    lab = site if isinstance(site, Lab) else site.lab
    source, sink = (lab.host(names[0]) for names in (lab.topology.sources, lab.topology.sinks))
    with _place() as folder, stock_server(sink, folder) as url:
        sent = folder / "source"
        with sent.open("wb") as file:
            file.truncate(size_bytes)
        target = folder / "served" / "target"
        words = ["globus-url-copy", "-p", str(streams), f"file://{sent}", f"{url}{target}"]
        if paths:
            assert isinstance(site, ManyPaths)
            words = site.around(*site.addresses, paths, *(["--in-turn"] if in_turn else [])) + words
        with Watcher(source.netns, sink.addresses[0]) as watcher, tempfile.TemporaryFile("w+") as said:
            started_s = time.monotonic()
            process = source.popen(words, stdout=said, stderr=said)
            placed = _placed(site, process)
            ended_s = time.monotonic()
            if process.returncode or target.stat().st_size != size_bytes:
                said.seek(0)
                raise CopyFailed(f"{words} ended with {process.returncode}: {said.read()[-2000:]}")
        found = watcher.streams()
    return Copy(ended_s - started_s, [placed.get(port) for port in found], list(found.values()))


def teach(site: ManyPaths, a: float) -> list[int]:
    """Report measurements to the controller until it predicts with `a`; return its predictions."""
    source, sink = site.addresses
    for _ in range(TEACHINGS):
        made = site.ask("POST", "path-sets", {"source": source, "sink": sink})
        for number, path in enumerate(made["paths"]):
            rtt_s = max(path["rtt_s"], 1e-6)
            best = max(1, round(a * path["rate_bps"] / 1e6 * rtt_s * 1e3))
            feedback = {"path": number, "streams": best, "rate_bps": path["rate_bps"], "rtt_s": rtt_s}
            site.ask("POST", f"path-sets/{made['id']}/feedback", feedback)
        site.ask("DELETE", f"path-sets/{made['id']}")
    return [path["streams"] for path in made["paths"]]


def _placed(site: ManyPaths | Lab, process: "subprocess.Popen[bytes]") -> dict[int, int]:
    """Wait for the end, and return the paths of source ports, as the controller says meanwhile."""
    placed: dict[int, int] = {}
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            return placed
        if isinstance(site, ManyPaths):
            for known in site.ask("GET", "path-sets"):
                placed.update({int(key.partition(":")[2]): path for key, path in known["ports"].items()})


@contextlib.contextmanager
def _place() -> Iterator[Path]:
    """Yield a folder in memory that contains the server's folder."""
    with tempfile.TemporaryDirectory(prefix="mpx-huang-", dir="/dev/shm") as made:
        folder = Path(made)
        folder.chmod(0o711)
        (folder / "served").mkdir(mode=0o755)
        os.chown(folder / "served", pwd.getpwnam("nobody").pw_uid, -1)
        yield folder
