"""One transfer of a cell: a stock server at the sink, the tool at the source, a watcher of what arrives."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.mpx_server import mpx_server
from mpx_lab.record import Run
from mpx_lab.stock_server import stock_server
from mpx_lab.traffic.background import Background, Watched

from apt.cell import MPX
from apt.tools import DOWN, command_of, plain_spec, started_file

SOURCE_BYTES = 50 * 10**9  # the paper's size; a sparse file
FETCHED_BYTES = 4 * 10**9  # downloads are stored in memory
ENDS_WITHIN_S = 20.0


class ToolFailed(RuntimeError):
    """A tool ended before it was interrupted, or did not end when it was."""


class Tool:
    """A tool that copies, and its output."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    def wait_until(self, time_s: float) -> None:
        """Let it work until a time of the monotonic clock; raises ToolFailed if it ends before."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, time_s - time.monotonic()))
            raise ToolFailed(self._described(f"ended with {self._process.returncode}"))

    def interrupt(self) -> None:
        """End it with SIGINT; raises ToolFailed if it has to be killed, as it would still have sent data."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ToolFailed(self._described(f"did not end within {ENDS_WITHIN_S:g} s of SIGINT")) from None

    def _described(self, what: str) -> str:
        return f"{self._process.args!r} {what}: {self._log.read_text()[-2000:]}"


class Plain:
    """A TCP stream that sends without a pause."""

    def __init__(self, flow: Background) -> None:
        self._flow = flow

    def wait_until(self, time_s: float) -> None:
        """Let it send until a time of the monotonic clock; raises ToolFailed if it has ended before."""
        time.sleep(max(0.0, time_s - time.monotonic()))  # the schedule of the experiment
        if not self._flow.running:
            raise ToolFailed("the plain stream has ended")


@contextlib.contextmanager
def place(slot: int) -> Iterator[Path]:
    """Yield an empty folder in memory, of root alone; what an interrupted run left there is removed."""
    folder = Path(f"/dev/shm/mpx-apt-{slot}")
    if folder.is_symlink() or (folder.exists() and folder.stat().st_uid != os.getuid()):
        raise RuntimeError(f"{folder} belongs to another user; remove it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def transfer(
    tool: str, number: int, lab: Lab, run: Run, root: Path, served_by: str
) -> Iterator[Tool | Plain]:
    """Copy from the source of that number to its sink until the end of the block; `root` is a place.

    The tool runs at the source, or at the sink if it fetches; a server of that kind at the other end.
    """
    source, sink, name = lab.host(f"src{number}"), lab.host(f"dst{number}"), f"transfer-{number}"
    if spec := plain_spec(tool):
        with Background(spec, name, source, sink, sink.addresses[0], run.flows, run.epoch_s) as flow:
            yield Plain(flow)
        return
    watched = Watched(name, source, source.addresses[0], sink, sink.addresses[0], run.flows, run.epoch_s)
    folder = root / name
    served = folder / "served"
    folder.mkdir(mode=0o711)
    served.mkdir(mode=0o755)
    os.chown(served, pwd.getpwnam("nobody").pw_uid, -1)
    fetches = tool.endswith(DOWN)
    sent = served / "source" if fetches else folder / "source"
    with sent.open("wb") as file:
        file.truncate(FETCHED_BYTES if fetches else SOURCE_BYTES)
    client, server = (sink, source) if fetches else (source, sink)
    log, report = folder / "tool.log", run.folder / f"report-{number}.json"
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    serving = mpx_server if served_by == MPX else stock_server
    with serving(server, folder) as url, watched, log.open("wb") as out:
        ours, theirs = (folder / "target", sent) if fetches else (sent, served / "target")
        there = f"/{theirs.relative_to(folder)}" if served_by == MPX else str(theirs)
        command = command_of(tool, str(ours), f"{url}{there}", str(report))
        (run.folder / started_file(number)).write_text(json.dumps({"started_s": run.now_s}))
        running = Tool(client.popen(command, env=environment, stdout=out, stderr=out), log)
        try:
            yield running
        except BaseException:
            with contextlib.suppress(ToolFailed):  # something else has failed already
                running.interrupt()
            raise
        running.interrupt()
