"""An emulated link between two network namespaces: start it, change it, ask it, stop it."""

import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpx.errors import MpxError, UsageError
from mpx_lab.emulator.accounting import NS, LinkStats
from mpx_lab.emulator.build import built_link
from mpx_lab.shape import PAUSE_S, Direction, Shape

START_S = 10.0
END_S = 5.0  # to end by itself
ANSWER_S = 10.0
LARGEST_ANSWER_BYTES = 1 << 18
_QUEUE = "queue"  # what the names of both kinds of limit begin with


class LinkError(MpxError):
    """A link cannot be started, or no longer answers."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: a device that it makes in a network namespace, and the shape of what leaves it."""

    netns: str  # the namespace's file, for example /run/netns/NAME
    device: str
    mac: str | None = None  # None: the kernel chooses
    shape: Shape = field(default_factory=Shape)


class RunningLink:
    """A link that runs, whoever started it. Raises LinkError where it does not answer."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.log = folder / f"{name}.csv"
        self._errors = folder / f"{name}.err"  # its last messages before a failure
        self._socket = folder / f"{name}.control"

    def change(self, direction: Direction, **changes: Any) -> None:
        """Change what Shape names in one direction, for example `rate_bps=130e6`; see `change_each`."""
        self.change_each({direction: changes})

    def change_each(self, changes: Mapping[Direction, Mapping[str, Any]]) -> None:
        """Change what Shape names, in all directions named at once; nothing is lost or overtaken.

        What has left the serialiser keeps its time, what waits for it goes on with the new values.
        Setting one kind of queue limit replaces the other. A seed begins its losses anew, also where it is
        the one there was. Raises UsageError for an impossible shape.
        """
        changed = {direction: change_arguments(each) for direction, each in changes.items()}
        words = [word for direction, each in changed.items() if each for word in (direction, *each)]
        if words:
            self._ask_ok(f"set {' '.join(words)}")

    def set_up(self, up: bool) -> None:
        """Connect or cut the link: both devices show it as their carrier; a cut loses all on its way."""
        self._ask_ok("connect" if up else "cut")

    def stats(self) -> LinkStats:
        """Return everything it has counted since its start."""
        answer = self._ask("stats")
        if answer.startswith("error "):
            raise LinkError(f"link {self.name} has no statistics: {answer.removeprefix('error ')}")
        try:
            return LinkStats.parse(answer)
        except ValueError as exc:
            raise LinkError(
                f"link {self.name} does not answer as this mpx expects ({exc}): another version of mpx has "
                "started it, so take it down and start it again"
            ) from exc

    def stop(self) -> None:
        """End it, and its devices with it."""
        self._ask_ok("stop", to_end=True)

    def _ask_ok(self, request: str, *, to_end: bool = False) -> None:
        answer = self._ask(request, to_end=to_end)
        if answer != "ok":
            raise LinkError(f"link {self.name}: '{request}' is refused: {answer.removeprefix('error ')}")

    def _ask(self, request: str, *, to_end: bool = False) -> str:
        """Return the answer; with `to_end` once the link has also closed the connection, its last action."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
                control.settimeout(ANSWER_S)
                control.connect(str(self._socket))
                control.sendall(request.encode())
                answer = control.recv(LARGEST_ANSWER_BYTES)
                while to_end and control.recv(1):
                    pass
        except OSError as exc:
            raise LinkError(
                f"link {self.name} does not answer at {self._socket}: {exc}{self._last_words()}"
            ) from exc
        if not answer:
            raise LinkError(f"link {self.name} ended without answering '{request}'{self._last_words()}")
        return answer.decode()

    def _last_words(self) -> str:
        """Return its last messages, to be appended to a message; empty where there are none."""
        try:
            said = self._errors.read_text(errors="replace").strip()
        except OSError:
            said = ""
        return said and f"; it said: {said}"


class EmulatedLink(RunningLink):
    """A link with its process. Its log and its control socket lie in a folder of the caller's.

    `name.csv`, `name.csv.1`, `name.err` and `name.control` are its own; the socket's path must fit in 107
    bytes. A log that has reached `log_bytes` becomes `name.csv.1`. The emulator polls its frames and sleeps
    for `pause_s` (at least half of it) between polls: a longer pause costs less CPU time and delays frames
    more.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        a: LinkEnd,
        b: LinkEnd,
        *,
        mtu: int = 1500,
        log_bytes: int = 32 << 20,
        pause_s: float = PAUSE_S,
    ) -> None:
        super().__init__(folder.absolute(), name)
        self._ends = (a, b)
        self._mtu = mtu
        self._log_bytes = log_bytes
        self._pause_s = pause_s
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
                f"link {self.name} needs a folder with a shorter name: {self._socket} is too long a path"
            )
        with self._errors.open("wb") as errors:
            process = subprocess.Popen(
                [str(built_link(environment)), *self._arguments()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                cwd="/",  # so that the caller's folder can be unmounted
                start_new_session=True,  # ^C is for the program that runs the lab and stops its links
            )
        assert process.stdout is not None
        with process.stdout:
            came, _, _ = select.select([process.stdout], [], [], START_S)
            if not came or process.stdout.readline() != "ready\n":
                process.kill()
                process.wait()
                said = self._errors.read_text(errors="replace").strip() or "no answer"
                raise LinkError(f"link {self.name} did not start: {said}")
        self._process = process

    def stop(self) -> None:
        """End it, and its devices with it; nothing happens when it has ended already."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:  # the process or its processor is suspended
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
        words += ["--pause-ns", str(round(self._pause_s * NS))]
        for side, end in zip(("a", "b"), self._ends, strict=True):
            words += [f"--{side}", end.netns, end.device]
            if end.mac is not None:
                words += [f"--{side}-mac", end.mac]
        for direction, end in zip(Direction, self._ends, strict=True):
            words += [f"--{direction}", shape_arguments(end.shape)]
        return words


def shape_arguments(shape: Shape) -> str:
    """Return a shape as the emulator reads it; 0 is unlimited there."""
    return ",".join(_settings(shape).values())


def change_arguments(changes: Mapping[str, Any]) -> list[str]:
    """Return changes of a shape as the emulator reads them: what is not among them stays as it is there.

    One kind of queue limit takes the place of the other. Raises UsageError for an impossible value.
    """
    try:
        shape = Shape(**changes)
    except TypeError as exc:
        raise UsageError(f"no such property of a link: {exc}") from exc
    named = {_QUEUE if name.startswith(_QUEUE) else name for name in changes}
    return [words for name, words in _settings(shape).items() if name in named]


def _settings(shape: Shape) -> dict[str, str]:
    """Return the emulator's settings of a shape, by the name of each property.

    Raises UsageError for what it cannot do.
    """
    if name := shape.only_simulated:
        raise UsageError(f"{name} of a link is for simulated time: run this under mpx lab simulate")
    queue = (
        f"queue_packets={shape.queue_packets}"
        if shape.queue_packets is not None
        else f"queue_bytes={shape.queue_bytes or 0}"
    )
    return {
        "rate_bps": f"rate={shape.rate_bps or 0}",
        "delay_s": f"delay_ns={round(shape.delay_s * NS)}",
        _QUEUE: queue,  # of either kind: the emulator takes the new limit for the old one
        "loss": f"loss={shape.loss:.17f}",
        "seed": f"seed={shape.seed}",
    }
