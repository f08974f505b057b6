"""Background traffic, probers and watchers of a run: two processes each, which end however the run ends.

source, sink, address = lab.host("s1"), lab.host("d1"), "10.0.0.5"
with Background("tcp(streams=2)", "bg", source, sink, address, run.flows, run.epoch_s):
    ...
"""

import abc
import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self

from mpx.errors import MpxError
from mpx.net import tcp
from mpx_lab.traffic.process import Host, TrafficProcess
from mpx_lab.traffic.spec import Spec, parse, protocol_of, show


class _Pair(abc.ABC):
    """Two processes of one measurement: the one that listens, and the one that sends."""

    def __init__(
        self, name: str, source: Host, sink: Host, sink_address: str, folder: Path, epoch_s: float
    ) -> None:
        self._source, self._sink, self._sink_address = source, sink, sink_address
        self._common = ("--folder", str(folder), "--name", name, "--epoch-s", repr(epoch_s))
        self._processes: list[TrafficProcess] = []  # in the order in which they are to be stopped

    @abc.abstractmethod
    def start(self) -> None:
        """Start both, the listening one first; returns once both are ready. Raises MpxError."""

    def stop(self) -> None:
        """End both; raises MpxError if one of them failed at any time."""
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


class Background(_Pair):
    """A generator that runs from `start` to `stop`, and writes its series into one folder.

    It begins when its processes are ready, and not before `from_s` after the epoch.
    """

    def __init__(
        self,
        spec: Spec | str,
        name: str,
        source: Host,
        sink: Host,
        sink_address: str,
        folder: Path,
        epoch_s: float,
        *,
        from_s: float | None = None,
    ) -> None:
        super().__init__(name, source, sink, sink_address, folder, epoch_s)
        self.spec = parse(spec) if isinstance(spec, str) else spec
        self._from = () if from_s is None else ("--from-s", repr(from_s))

    def start(self) -> None:
        """Start the receiver, then the sender; returns once both are ready. Raises MpxError."""
        words = (protocol_of(self.spec), "--at", self._sink_address, *self._common)
        receiver = TrafficProcess(self._sink, "receiver", words)
        self._processes = [receiver]
        to = tcp.show((self._sink_address, receiver.port))
        sender = TrafficProcess(
            self._source, "sender", (show(self.spec), "--to", to, *self._common, *self._from)
        )
        self._processes.insert(0, sender)


class RttProbe(_Pair):
    """Measures the round-trip time between two hosts; `folder` is that of `rtt`.

    Every `every_s` seconds it sends `train` probes, 1 ms apart; a single one at random up to 60 % later.
    """

    def __init__(
        self,
        name: str,
        source: Host,
        sink: Host,
        sink_address: str,
        folder: Path,
        epoch_s: float,
        *,
        every_s: float = 0.1,
        train: int = 1,
    ) -> None:
        super().__init__(name, source, sink, sink_address, folder, epoch_s)
        self._profile = ("--every-s", repr(every_s), "--train", str(train))

    def start(self) -> None:
        """Start the echo, then the prober; returns once both are ready. Raises MpxError."""
        echo = TrafficProcess(self._sink, "echo", ("--at", self._sink_address))
        self._processes = [echo]
        to = tcp.show((self._sink_address, echo.port))
        words = ("--to", to, *self._profile, *self._common)
        self._processes.insert(0, TrafficProcess(self._source, "prober", words))


class Watched(_Pair):
    """Records all TCP connections from one host to another, of whatever program, as a flow of the run."""

    def __init__(
        self,
        name: str,
        source: Host,
        source_address: str,
        sink: Host,
        sink_address: str,
        folder: Path,
        epoch_s: float,
    ) -> None:
        super().__init__(name, source, sink, sink_address, folder, epoch_s)
        self._source_address = source_address

    def start(self) -> None:
        """Start watching both ends; returns once both are ready. Raises MpxError."""
        arriving = ("watch", "--at", self._source_address, *self._common)
        self._processes = [TrafficProcess(self._sink, "receiver", arriving)]
        leaving = ("--peer", self._sink_address, *self._common)
        self._processes.append(TrafficProcess(self._source, "watch", leaving))
