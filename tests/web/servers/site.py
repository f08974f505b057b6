"""What the tests know of a web server that runs for them: its folder, its address, its process."""

import contextlib
import http.client
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

STARTED_WITHIN_S, STOPPED_WITHIN_S = 60, 10
LOOK_S = 0.02


class ServerProcess:
    """A server in a session of its own, from `start` to `kill`; which may be called again, in turn."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`command` stays in the foreground; `log`: what it says goes there; `folder`: where it works."""
        self.command = list(command)
        self.log = log
        self._environment = dict(environment) if environment is not None else None
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, answers: Callable[[], bool]) -> None:
        """Start it and wait until it answers; AssertionError with its own words where it does not."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                cwd=self._folder,
            )
        try:
            self._wait(self._process, answers)
        except BaseException:
            self.kill()
            raise

    def _wait(self, process: subprocess.Popen[bytes], answers: Callable[[], bool]) -> None:
        until_s = time.monotonic() + STARTED_WITHIN_S
        while not answers():
            assert process.poll() is None, f"{self.command[0]} has ended at once: {self.said()}"
            assert time.monotonic() < until_s, f"{self.command[0]} does not answer: {self.said()}"
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """End it as an administrator would, who leaves none of its workers behind."""
        if self._process:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOPPED_WITHIN_S)
            self.kill()

    def kill(self) -> None:
        """End it and all that it started, as a machine that goes down."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            while _live_on(self._process.pid):  # not our children; they hold its port
                time.sleep(LOOK_S)
            self._process = None

    def said(self) -> str:
        """What it has written into its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def _live_on(group: int) -> bool:
    """Tell whether a process of this group still has its files."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            state, threads = after_name[0], int(after_name[17])
            if int(after_name[2]) == group and (state != "Z" or threads > 1):
                return True
    return False


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A whole answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class WebSite:
    """A server under test, and the folder it serves as the tests see it."""

    folder: Path
    url: str  # of that folder, with a slash at its end
    port: int  # on loopback
    server: ServerProcess
    ca: Path | None = None  # who has signed its certificate, where it has one
    owner: str = ""  # who it works as, if not as we do: files that it is to change must be theirs
    identity: tuple[Path, Path] | None = None  # certificate and key that a user shows
    headers: dict[str, str] = field(default_factory=dict)  # sent with each request

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        """It runs while in the `with` block."""
        self.start()
        try:
            yield self
        finally:
            self.server.stop()

    def start(self) -> None:
        """Start it, once more after `kill`, and then on the same port."""
        self.server.start(self._answers)

    def kill(self) -> None:
        """End it at once."""
        self.server.kill()

    def tls(self) -> ssl.SSLContext:
        """Settings of a client that trusts the CA of this server only, and shows the user's certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.identity:
            context.load_cert_chain(*self.identity)
        return context

    def connect(self, host: str = "localhost") -> http.client.HTTPConnection:
        """A client that connects when it is first used; TLS is verified."""
        if self.ca is None:
            return http.client.HTTPConnection(host, self.port, timeout=60)
        return http.client.HTTPSConnection(host, self.port, timeout=60, context=self.tls())

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> WebAnswer:
        """One request on a connection of its own; `path` as it stands in the request."""
        connection = self.connect()
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return WebAnswer(answer.status, fields, answer.read())
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.ask("OPTIONS", "*")  # a ping, which nginx does not count as a connection
        except (OSError, http.client.HTTPException):
            return False
        return True
