"""One generator between two hosts: starts its two processes, and ends them whatever happens.

with Background("tcp(streams=2)", "bg", lab.host("s1"), lab.host("d1"), "10.0.0.5", run.flows, run.epoch_s):
    ...
"""

import contextlib
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from mpx.errors import MpxError
from mpx_lab.traffic.spec import Spec, parse, protocol_of, show

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 15.0


class Host(Protocol):
    """Where a process can be started: a host of the lab."""

    def popen(self, args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process there; options as of subprocess.Popen."""


class TrafficProcess:
    """One process of `mpx_lab.traffic` on a host, from when it is ready until it is told to end."""

    def __init__(self, host: Host, module: str, words: Sequence[str]) -> None:
        self._what = f"the background's {module}"
        # It ends when its standard input closes, so it cannot outlive this process.
        self._process = host.popen(
            [sys.executable, "-m", f"mpx_lab.traffic.{module}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            self.said = self._first_line()
        except BaseException:
            self._end()
            raise

    @property
    def ended(self) -> bool:
        """Whether it has ended, which it should not before it is told to."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Tell it to end and wait until it has; raises MpxError if it failed or does not end."""
        said = self._end()
        if self._process.returncode:
            code = self._process.returncode
            raise MpxError(f"{self._what} failed with exit code {code}: {said}")

    def _end(self) -> str:
        """End it, by force if it does not by itself, and return what it said on standard error."""
        # First the gentle way also where it is not wanted any more: it has children of its own to end.
        try:
            _, errors = self._process.communicate(timeout=ENDS_WITHIN_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, errors = self._process.communicate()
        return bytes(errors).decode(errors="replace").strip()

    def _first_line(self) -> str:
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], STARTS_WITHIN_S)
        line = stdout.readline().decode().strip() if ready else ""
        if not line.startswith("ready"):
            reason = self._end() or f"it was not ready within {STARTS_WITHIN_S:g} s"
            raise MpxError(f"{self._what} did not start: {reason}")
        return line


class Background:
    """A generator that runs from `start` to `stop`, and writes its series into one folder."""

    def __init__(
        self,
        spec: Spec | str,
        name: str,
        source: Host,
        sink: Host,
        sink_address: str,
        folder: Path,
        epoch_s: float,
    ) -> None:
        self.spec = parse(spec) if isinstance(spec, str) else spec
        self.name = name
        self._source, self._sink, self._address = source, sink, sink_address
        self._common = ("--folder", str(folder), "--name", name, "--epoch-s", repr(epoch_s))
        self._processes: list[TrafficProcess] = []  # in the order in which they are to be stopped

    def start(self) -> None:
        """Start the receiver, then the sender; returns once both are ready. Raises MpxError."""
        words = (protocol_of(self.spec), "--at", self._address, *self._common)
        receiver = TrafficProcess(self._sink, "receiver", words)
        self._processes = [receiver]
        host = f"[{self._address}]" if ":" in self._address else self._address
        to = f"{host}:{receiver.said.split()[1]}"
        sender = TrafficProcess(self._source, "sender", (show(self.spec), "--to", to, *self._common))
        self._processes.insert(0, sender)

    def stop(self) -> None:
        """End both; raises MpxError if one of them failed, also if that was long ago."""
        failed: list[MpxError] = []
        for process in self._processes:
            try:
                process.stop()
            except MpxError as error:
                failed.append(error)
        self._processes.clear()
        if failed:
            raise failed[0]

    @property
    def running(self) -> bool:
        """Whether both processes run."""
        return bool(self._processes) and not any(process.ended for process in self._processes)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self._abandon()

    def _abandon(self) -> None:
        with contextlib.suppress(MpxError):  # something else has failed already
            self.stop()
