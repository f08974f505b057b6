"""Limits of stopping: how soon a copy ends that is cancelled (Python) or interrupted (Ctrl-C), in what
it may be busy with. Each situation is brought about anew for every measurement.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from figures import Spread, Verdict
from interop.stock_server import StockServer
from limits_memory import make_names
from peers import deaf, hear_out, knocking, own_server, wait_for

import mpx
from mpx.options import flag_of

CANCELLED_WITHIN_S = 1.0
INTERRUPTED_WITHIN_S = 2.0
TIMES = 5
SIZE = 1 << 30
SHARE = SIZE // 8  # has arrived when a copy is stopped in mid-file
NAMES = 500_000
INTO_LISTING_S = 1.5


Stopped = tuple[float, str]  # seconds that it took, and how it ended


@dataclass(frozen=True)
class Situation:
    """What a copy is busy with when it is stopped."""

    what: str
    source: str
    target: str
    reached: Callable[[], None]  # returns when the copy, just started, is busy with it
    options: dict[str, Any] = field(default_factory=dict)
    after: Callable[[], None] = lambda: None  # tidies up for the next time
    is_listed: bool = False  # `mpx list` of the source gets there too
    command: str = "copy"  # or "list"

    @property
    def words(self) -> list[str]:
        """The command line after `mpx`."""
        if self.command == "list":
            return ["list", self.source]
        options = [word for name, value in self.options.items() for word in _words(name, value)]
        return [self.command, "-q", *options, self.source, self.target]


def cancelled(folder: Path) -> dict[str, list[Stopped]]:
    """Cancel through the Python API; return how long it took in each situation, and how it ended."""
    return {situation.what: _stopped(situation, _cancel) for situation in situations(folder)}


def interrupted(folder: Path) -> dict[str, list[Stopped]]:
    """Send SIGINT to the command; return how long it took in each situation, and how it ended."""
    found = {}
    for situation in situations(folder):
        found[situation.what] = _stopped(situation, _interrupt)
        if situation.is_listed:
            found[f"{situation.what} (mpx list)"] = _stopped(replace(situation, command="list"), _interrupt)
    return found


def judge_cancelled(found: Mapping[str, Sequence[Stopped]]) -> Iterator[Verdict]:
    """Hold copies that were cancelled against their limit."""
    return _judge("cancelled", found, CANCELLED_WITHIN_S, "Interrupted")


def judge_interrupted(found: Mapping[str, Sequence[Stopped]]) -> Iterator[Verdict]:
    """Hold commands that were interrupted against their limit."""
    return _judge("Ctrl-C", found, INTERRUPTED_WITHIN_S, "exit 130")


def _judge(how: str, found: Mapping[str, Sequence[Stopped]], within_s: float, end: str) -> Iterator[Verdict]:
    for what, runs in found.items():
        took, ends = Spread([seconds for seconds, _ in runs]), {ended for _, ended in runs}
        limit = f"{how} {what}: ends within {within_s:g} s, always"
        told = f"{took} s, {' and '.join(sorted(ends))}"
        yield Verdict(limit, told, took.worst <= within_s and ends == {end})


def _stopped(situation: Situation, stop: Callable[[Situation], Stopped]) -> list[Stopped]:
    found = []
    for _ in range(TIMES):
        found.append(stop(situation))
        situation.after()
    return found


def _cancel(situation: Situation) -> Stopped:
    """Return how many seconds it took after `cancel` was set, and how it ended."""
    cancel, ended = threading.Event(), []

    def run() -> None:
        try:
            mpx.copy(situation.source, situation.target, mpx.CopyOptions(**situation.options), cancel=cancel)
            ended.append("done")
        except mpx.MpxError as error:
            ended.append(type(error).__name__)

    thread = threading.Thread(target=run)
    thread.start()
    situation.reached()
    began = time.monotonic()
    cancel.set()
    thread.join()
    return time.monotonic() - began, ended[0]


def _interrupt(situation: Situation) -> Stopped:
    """Return how many seconds it took after SIGINT, and the exit code."""
    command = [sys.executable, "-m", "mpx", *situation.words]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        situation.reached()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait()
        return time.monotonic() - began, f"exit {process.returncode}"


def _words(name: str, value: Any) -> list[str]:
    if value is True:
        return [flag_of(name)]
    return [flag_of(name), f"{value / 1e6:g}Mbit/s" if name == "rate_bps" else str(value)]


def situations(folder: Path) -> Iterator[Situation]:
    """Yield every situation, each while what it needs is there."""
    root = folder / "served"
    root.mkdir(exist_ok=True)
    here, there = folder / "here", root / "there"
    for name in (here, there):
        with name.open("wb") as out:
            for _ in range(SIZE >> 20):
                out.write(os.urandom(1 << 20))
        name.chmod(0o644)
    with StockServer(root) as server:
        yield from _in_mid_file(server, here, there)
        yield from _verifying(server, here, there)
    here.unlink()
    there.unlink()
    yield from _waiting(folder)
    yield from _listing(folder)


def _in_mid_file(server: StockServer, here: Path, there: Path) -> Iterator[Situation]:
    paced = {"rate_bps": 800e6, "checksum": "none"}
    ways = (
        ("up", str(here), f"{server.url}copy", there.with_name("copy")),
        ("down", f"{server.url}there", str(here.with_name("copy")), here.with_name("copy")),
        ("local", str(here), str(here.with_name("copy")), here.with_name("copy")),
    )
    for way, source, target, copy in ways:
        for more in ({}, {"streams": 64}) if way != "local" else ({},):

            def reached(copy: Path = copy) -> None:
                wait_for(lambda: arrived(copy) >= SHARE, "the file does not arrive")

            def frozen(copy: Path = copy) -> None:
                wait_for(lambda: arrived(copy) >= SHARE, "the file does not arrive")
                for pid in server.session_pids:
                    os.kill(pid, signal.SIGSTOP)

            def after(copy: Path = copy) -> None:
                end_sessions(server)
                remove(copy)

            what = f"in mid-file {way}" + (", 64 streams" if more else "")
            yield Situation(what, source, target, reached, {**paced, **more}, after)
            if way != "local":
                yield Situation(
                    f"{what}, the server frozen", source, target, frozen, {**paced, **more}, after
                )


def _verifying(server: StockServer, here: Path, there: Path) -> Iterator[Situation]:
    ways = (
        ("up", str(here), f"{server.url}copy", there.with_name("copy")),
        ("down", f"{server.url}there", str(here.with_name("copy")), here.with_name("copy")),
        ("local", str(here), str(here.with_name("copy")), here.with_name("copy")),
    )
    for way, source, target, copy in ways:

        def reached(copy: Path = copy) -> None:
            wait_for(lambda: arrived(copy) >= SIZE, "the file does not arrive")

        def after(copy: Path = copy) -> None:
            end_sessions(server)
            remove(copy)

        yield Situation(
            f"while verifying 1 GiB {way}, md5", source, target, reached, {"checksum": "md5"}, after
        )


def _waiting(folder: Path) -> Iterator[Situation]:
    file, names = folder / "small", folder / "target"
    file.write_bytes(b"x")
    with deaf() as port:
        before = knocking(port)
        yield Situation(
            "while connecting to an address that does not answer",
            str(file),
            f"ftp://127.0.0.1:{port}/x",
            lambda: wait_for(lambda: knocking(port) > before, "it does not connect"),
        )
    for what, greeting in (("a greeting", b""), ("a reply", b"220 here\r\n")):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            held: list[socket.socket] = []
            yield Situation(
                f"while waiting for {what} of a silent server",
                f"ftp://127.0.0.1:{listener.getsockname()[1]}/x",
                str(names),
                lambda held=held, listener=listener, greeting=greeting: held.append(
                    hear_out(listener, greeting)
                ),
                after=lambda held=held: held.pop().close(),
                is_listed=True,
            )


def _listing(folder: Path) -> Iterator[Situation]:
    root = folder / "names"
    many = make_names(root / "many", NAMES)
    target = folder / "target"
    with own_server(root) as server:
        for where, source in (("this host", str(many)), ("mpx serve", f"{server.url}many")):
            yield Situation(
                f"while listing {NAMES} names of {where}",
                source,
                str(target),
                lambda: time.sleep(INTO_LISTING_S),
                {"recursive": True, "dry_run": True},
                is_listed=True,
            )
    shutil.rmtree(root)


def arrived(copy: Path) -> int:
    """Return how many bytes of a file have arrived, wherever in it: what tmpfs holds of it."""
    for path in (copy, *copy.parent.glob(f".{copy.name}.*.part")):
        with contextlib.suppress(FileNotFoundError):
            return 512 * path.stat().st_blocks
    return 0


def end_sessions(server: StockServer) -> None:
    """Continue the stopped sessions of the server and end them."""
    for number in (signal.SIGCONT, signal.SIGKILL):
        for pid in server.session_pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    wait_for(lambda: not server.session_pids, "a session of the server does not end")


def remove(copy: Path) -> None:
    """Remove a file and what is left of an unfinished one."""
    for path in (copy, *copy.parent.glob(f".{copy.name}.*.part")):
        path.unlink(missing_ok=True)
