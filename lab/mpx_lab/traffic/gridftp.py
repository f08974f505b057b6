"""A real copy as background: `mpx serve` on one side, `mpx copy --streams N` on the other, until it is ended.

One copy brings very many files of 64 MiB, so that its streams stay open; the source is a file of zeros that
takes no room, and what has arrived whole is removed at once.
"""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mpx.errors import ConnectionLost, MpxError
from mpx.net import tcp
from mpx.recognition.pulses.local_pacing import LocalPacer
from mpx.recognition.pulses.maker import PulseMaker
from mpx.recognition.watch import RttWatch
from mpx_lab.traffic.borrowed import Borrowed, sockets_of
from mpx_lab.traffic.ending import Ending
from mpx_lab.traffic.log import Log, next_tick, now_s
from mpx_lab.traffic.private_memory import private_memory
from mpx_lab.traffic.socket_table import Connection
from mpx_lab.traffic.watch import COLUMNS, Watch, write

FILE_BYTES = 64 << 20
DIPS = ("t_s", "share", "kept")  # when a rate pulse began, and the share of the link that it showed
TELL_S, TINY_S = 1.0, 1e-6
FILES_PER_COPY = 1000
_FILE = "zeros-"
_ENDS_WITHIN_S = 5.0


class GridFtpSink:
    """A server in a folder of its own; counts what its connections receive, and keeps nothing."""

    def __init__(self, address: tcp.Address, store: Path) -> None:
        self._ending = contextlib.ExitStack()
        self._folder = self._ending.enter_context(private_memory(store))
        anybody = "::/0" if ":" in address[0] else "0.0.0.0/0"  # of the namespace it runs in
        words = ["--host", address[0], "--port", str(address[1]), "--writable", "--insecure"]
        words += ["--allow-from", anybody]
        command = _mpx("serve", *words, str(self._folder))
        self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        said = self._server.stdout.readline().decode().strip()
        served = re.search(r"ftp://\S+:(\d+)/", said)
        if served is None:
            self.close()
            raise MpxError(f"mpx serve did not start at {tcp.show(address)}; it said {said!r}")
        self.port = int(served[1])
        self._watch = _WatchOf(self._server)

    def totals(self) -> dict[int, int]:
        """Return the bytes that arrived so far, by connection; the control connections are among them."""
        for file in self._folder.glob(f"{_FILE}*"):
            file.unlink(missing_ok=True)
        return self._watch.totals()

    def failure(self) -> str:
        """Return why it has failed; empty while it works."""
        code = self._server.poll()
        return "" if code is None else f"mpx serve has ended with exit code {code}; see its messages"

    def close(self) -> None:
        """End the server, which removes its folder."""
        _end(self._server)
        self._ending.close()


class _WatchOf(Watch):
    """Watches the connections of one process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(self._is_ours)
        self._process = process
        self._inodes: frozenset[int] = frozenset()

    def look(self) -> list[tuple[int, Connection]]:
        self._inodes = frozenset(sockets_of(self._process.pid))
        return super().look()

    def _is_ours(self, connection: Connection) -> bool:
        return connection.inode in self._inodes


class GridFtpSender:
    """One copy after the other; the counter is complete once `run` has returned."""

    def __init__(
        self, address: tcp.Address, streams: int, congestion: str, epoch_s: float, *, dips: bool = False
    ) -> None:
        self.copies = 0  # begun
        self._address = address
        self._dips = dips
        self._words = ["--streams", str(streams), "--checksum", "none", "--overwrite", "always", "--quiet"]
        if congestion:
            self._words += ["--congestion", congestion]
        self._epoch_s = epoch_s

    def run(self, began_s: float, ending: Ending, folder: Path, name: str) -> None:
        """Copy from a time on until told to end; raises ConnectionLost when a copy failed."""
        with (
            private_memory(folder / f"{name}.source") as scratch,
            Log(folder / f"{name}.phases.csv", ["t_s", "stream", "on"], self._epoch_s) as edges,
        ):
            with (scratch / "zeros").open("wb") as source:
                source.truncate(FILE_BYTES)
            with contextlib.ExitStack() as logs:
                log = logs.enter_context(Log(folder / f"{name}.tcp.csv", COLUMNS, self._epoch_s))
                pulses = None
                if self._dips:
                    pulses = logs.enter_context(Log(folder / f"{name}.dips.csv", DIPS, self._epoch_s))
                while not ending():
                    self._copy(began_s, ending, scratch, log, edges, pulses)

    def _copy(
        self, began_s: float, ending: Ending, scratch: Path, log: Log, edges: Log, pulses: Log | None
    ) -> None:
        """Start the program, which takes seconds on a busy machine, and then tell it what to copy."""
        to = f"ftp://{tcp.show(self._address)}/"
        command = _mpx("copy", *self._words, "--from-file", "-", to)
        environment = {**os.environ, "MPX_STATE_DIR": str(scratch / "state")}
        files = (f"{scratch}/zeros\t{_FILE}{number}\n" for number in range(FILES_PER_COPY))
        with (scratch / "said").open("w+b") as said:
            copy = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said, env=environment)
            assert copy.stdin is not None
            watch = _WatchOf(copy)
            try:
                if ending.wait(began_s):
                    return
                self.copies += 1
                edges.line(now_s(), 0, 1)
                with (
                    contextlib.suppress(BrokenPipeError),
                    copy.stdin as names,
                ):  # its message says why it ended
                    names.write("".join(files).encode())
                with self._pulsing(copy.pid, pulses) as tell:
                    while copy.poll() is None and not ending.wait(next_tick(now_s(), self._epoch_s)):
                        write(log, watch.look())
                        tell()
                edges.line(now_s(), 0, 0)
            finally:
                watch.close()
                _end(copy)
            if copy.returncode and not ending():
                said.seek(0)
                raise ConnectionLost(f"the copy in the background failed: {said.read().decode().strip()}")

    @contextlib.contextmanager
    def _pulsing(self, pid: int, log: Log | None) -> Iterator[Callable[[], None]]:
        """Make rate pulses on the connections of a copy, if so configured; yields their log."""
        if log is None:
            yield lambda: None
            return
        asked_s = logged_s = 0.0

        def tell() -> None:
            nonlocal asked_s, logged_s
            if now_s() < asked_s + TELL_S:
                return
            asked_s = now_s()
            for response in watch.responses(logged_s) or ():
                logged_s = max(logged_s, response.t_s + TINY_S)
                log.line(response.t_s, f"{response.share:.4f}", f"{response.kept:.4f}")

        with Borrowed(pid, self._address[1]) as borrowed:
            watch = RttWatch(
                self._address[0], self._address, pulses=PulseMaker(LocalPacer(borrowed.connections))
            )
            watch.begin()
            try:
                yield tell
            finally:
                watch.end()


def _mpx(*words: str) -> list[str]:
    """Return a command that runs mpx, and is killed when this process ends however it does."""
    python = [sys.executable, "-P", "-m"]  # -P: nothing is imported from the current folder
    return [*python, "mpx_lab.traffic.with_parent", str(os.getpid()), *python, "mpx", *words]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
