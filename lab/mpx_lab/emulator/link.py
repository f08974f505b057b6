"""An emulated link between two network namespaces: start it, change it, ask it, stop it."""

import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpx.errors import MpxError, UsageError
from mpx_lab.emulator.accounting import NS, LinkStats
from mpx_lab.emulator.build import built_link
from mpx_lab.shape import Direction, Shape

START_S = 10.0
END_S = 5.0  # to end by itself
ANSWER_S = 10.0
LARGEST_ANSWER_BYTES = 1 << 18


class LinkError(MpxError):
    """A link cannot be started, or does not answer any more."""


@dataclass(frozen=True)
class End:
    """Where a link ends: a device that it makes in a network namespace."""

    netns: str  # the namespace's file, for example /run/netns/NAME
    device: str
    mac: str | None = None  # None: as the kernel likes


class RunningLink:
    """A link that runs, whoever started it. Raises LinkError where it does not answer."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.csv"
        self._socket = folder / f"{name}.control"

    def change(self, direction: Direction, **changes: Any) -> None:
        """Change what Shape names, for example `rate_bps=130_000_000`; nothing is lost or overtaken.

        What has left the serialiser keeps its time, what waits for it goes on with the new values.
        Setting one kind of queue limit replaces the other. Raises UsageError for an impossible shape.
        """
        words = change_arguments(changes)
        if words:
            self._ask_ok(f"set {direction} {' '.join(words)}")

    def set_up(self, up: bool) -> None:
        """Connect or cut the link: both devices show it as their carrier; a cut loses all on its way."""
        self._ask_ok(f"set both up={int(up)}")

    def stats(self) -> LinkStats:
        """Return everything it has counted since its start."""
        answer = self._ask("stats")
        if answer.startswith("error "):
            raise LinkError(f"link {self.name} cannot say what it did: {answer.removeprefix('error ')}")
        return LinkStats.parse(answer)

    def stop(self) -> None:
        """End it, and its devices with it."""
        self._ask_ok("stop", to_end=True)

    def _ask_ok(self, request: str, *, to_end: bool = False) -> None:
        answer = self._ask(request, to_end=to_end)
        if answer != "ok":
            raise LinkError(f"link {self.name}: '{request}' is refused: {answer.removeprefix('error ')}")

    def _ask(self, request: str, *, to_end: bool = False) -> str:
        """Return the answer; with `to_end` when the link has also closed its side, which it does last."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
                control.settimeout(ANSWER_S)
                control.connect(str(self._socket))
                control.sendall(request.encode())
                answer = control.recv(LARGEST_ANSWER_BYTES)
                while to_end and control.recv(1):
                    pass
        except OSError as exc:
            raise LinkError(f"link {self.name} does not answer at {self._socket}: {exc}") from exc
        if not answer:
            raise LinkError(f"link {self.name} ended without an answer to '{request}'")
        return answer.decode()


class EmulatedLink(RunningLink):
    """A link with its process. Its log and its control socket lie in a folder of the caller's.

    `name.csv`, `name.csv.1` and `name.control` are its own; the socket's path must fit in 107 bytes. A log
    that has `log_bytes` becomes `name.csv.1`.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        a: End,
        b: End,
        a_to_b: Shape,
        b_to_a: Shape,
        *,
        mtu: int = 1500,
        log_bytes: int = 32 << 20,
    ) -> None:
        super().__init__(folder.absolute(), name)
        self._ends = (a, b)
        self._shapes = (a_to_b, b_to_a)
        self._mtu = mtu
        self._log_bytes = log_bytes
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        if self._process is None:
            raise LinkError(f"link {self.name} was not started")
        return self._process.pid

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Make both devices and serve; returns when it does. Needs root.

        The process gets this environment (None: ours), and outlives us unless stopped. Raises LinkError,
        and UsageError without a C compiler.
        """
        if len(os.fsencode(self._socket)) > 107:
            raise UsageError(
                f"link {self.name} needs a folder with a shorter name: {self._socket} is no socket"
            )
        process = subprocess.Popen(
            [str(built_link(environment)), *self._arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",  # no folder of the caller's stays busy
            start_new_session=True,  # a ^C is for whoever runs the lab, who then stops its links
        )
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout, process.stderr:
            came, _, _ = select.select([process.stdout], [], [], START_S)
            if not came or process.stdout.readline() != "ready\n":
                process.kill()
                process.wait()
                said = process.stderr.read().strip() or "no answer"
                raise LinkError(f"link {self.name} does not start: {said}")
        self._process = process

    def stop(self) -> None:
        """End it, and its devices with it; nothing happens when it has ended already."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:  # it is stopped, or its processor is
                self._process.kill()
                self._process.wait()
            self._process = None

    def __enter__(self) -> "EmulatedLink":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _arguments(self) -> list[str]:
        words = ["--name", self.name, "--log", str(self.log), "--control", str(self._socket)]
        words += ["--mtu", str(self._mtu), "--log-bytes", str(self._log_bytes)]
        for side, end in zip(("a", "b"), self._ends, strict=True):
            words += [f"--{side}", end.netns, end.device]
            if end.mac is not None:
                words += [f"--{side}-mac", end.mac]
        for direction, shape in zip(Direction, self._shapes, strict=True):
            words += [f"--{direction}", shape_arguments(shape)]
        return words


def shape_arguments(shape: Shape) -> str:
    """Return a shape as the emulator reads it; 0 is unlimited there."""
    queue = (
        f"queue_packets={shape.queue_packets}"
        if shape.queue_packets is not None
        else f"queue_bytes={shape.queue_bytes or 0}"
    )
    return (
        f"rate={shape.rate_bps or 0},delay_ns={round(shape.delay_s * NS)},{queue},"
        f"loss={shape.loss:.17f},seed={shape.seed}"
    )


def change_arguments(changes: Mapping[str, Any]) -> list[str]:
    """Return changes of a shape as the emulator reads them: what is not among them stays as it is there.

    One kind of queue limit takes the place of the other. Raises UsageError for an impossible value.
    """
    try:
        shape = Shape(**changes)
    except TypeError as exc:
        raise UsageError(f"a link has no such property: {exc}") from exc
    told = {
        "rate_bps": f"rate={shape.rate_bps or 0}",
        "delay_s": f"delay_ns={round(shape.delay_s * NS)}",
        "queue_bytes": f"queue_bytes={shape.queue_bytes or 0}",
        "queue_packets": f"queue_packets={shape.queue_packets or 0}",
        "loss": f"loss={shape.loss:.17f}",
        "seed": f"seed={shape.seed}",
    }
    return [told[name] for name in changes]
