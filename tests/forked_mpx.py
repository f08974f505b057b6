"""Commands of mpx that are forked from a process which has imported it: a tenth of the work of a start.

Each is a process of its own all the same, with an environment, a folder and descriptors of its own, and calls
`mpx.__main__.main`. What concerns the start itself is not to be tested like this: what is imported when,
locales, limits, other accounts. Those of `mpx controller` are forked from a process of their own, as it needs
most imports of all.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NoReturn, Self

LONGEST = 1 << 20  # bytes of what is asked for: the words, and the environment
HEAVY = (
    "mpx.__main__",
    "mpx.ops_classifier",
    "mpx.recognition",
    "mpx.serve",
    "mpx.endpoints.gfal.served",  # which the system's Python alone can import
    "mpx.probing.plot",
    "mpx.explain.plot",
)
CONTROLLER = b"controller"
PATIENT = "MPX_TEST_PATIENT"  # a variable of the environment: it may take its time after a signal
# What `mpx controller` imports, and what that imports once it runs.
OF_CONTROLLERS = (
    "mpx_controller.command",
    "mpx_controller.server",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.http.h11_impl",
    "pydantic.v1",
)


def run(
    words: Sequence[bytes], stdin: bytes, folder: str, environment: Mapping[str, str], within_s: float
) -> tuple[int, bytes, bytes]:
    """Run a command to its end; return its exit code and what it said on stdout and stderr.

    Raises subprocess.TimeoutExpired where it does not end in time, and kills it.
    """
    process = Forked(words, folder, environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin and process.stdout and process.stderr
    said: dict[int, bytes] = {}
    readers = [threading.Thread(target=_read, args=(pipe, said)) for pipe in (process.stdout, process.stderr)]
    taken_out, taken_err = process.stdout.fileno(), process.stderr.fileno()
    writer = threading.Thread(target=_write, args=(process.stdin, stdin))
    for thread in (writer, *readers):
        thread.start()
    try:
        code = process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        for thread in (writer, *readers):
            thread.join()
    return code, said[taken_out], said[taken_err]


class Forked:
    """A command that runs, as subprocess.Popen has it; its stdout is a pipe.

    `stdin` is nothing or a pipe, `stderr` that of this process, a descriptor or a pipe.
    """

    def __init__(
        self,
        words: Sequence[bytes],
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        stdin: int = subprocess.DEVNULL,
        stderr: int | None = None,
    ) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self.peak_kib = 0  # the most memory that it had, known once it has ended
        self.stdin: BinaryIO | None = None
        self.stderr: BinaryIO | None = None
        told = [os.fsdecode(word) for word in words]
        what = json.dumps([told, folder or os.getcwd(), dict(environment or os.environ)]).encode()
        self._ends, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given = []
        if stdin == subprocess.PIPE:
            reads, writes = os.pipe()
            self.stdin = open(writes, "wb")  # noqa: PTH123, SIM115
            given.append(reads)
        else:
            given.append(os.open(os.devnull, os.O_RDONLY))
        reads, writes = os.pipe()
        self.stdout: BinaryIO = open(reads, "rb")  # noqa: PTH123, SIM115
        given.append(writes)
        if stderr == subprocess.PIPE:
            reads, writes = os.pipe()
            self.stderr = open(reads, "rb")  # noqa: PTH123, SIM115
            given.append(writes)
        else:
            given.append(os.dup(2 if stderr is None else stderr))
        with theirs:
            channel = _channel(CONTROLLER if self.args[:1] == [CONTROLLER] else b"")
            socket.send_fds(channel, [what], [*given, theirs.fileno()])
        for descriptor in given:
            os.close(descriptor)
        self.pid = int(self._ends.recv(100))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._ends.settimeout(timeout)
            try:
                self.returncode, self.peak_kib = map(int, self._ends.recv(100).split())
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._ends.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """What it says on stdout and stderr until it ends; raises subprocess.TimeoutExpired."""
        if self.stdin:
            self.stdin.close()
        said: dict[int, bytes] = {}
        pipes = [pipe for pipe in (self.stdout, self.stderr) if pipe]
        numbers = [pipe.fileno() for pipe in pipes]
        readers = [threading.Thread(target=_read, args=(pipe, said), daemon=True) for pipe in pipes]
        for thread in readers:
            thread.start()
        self.wait(timeout)
        for thread in readers:
            thread.join()
        out, err, *_ = [*(said[number] for number in numbers), b""]
        return out, err

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """End it with SIGTERM."""
        self.send_signal(signal.SIGTERM)


def _read(pipe: BinaryIO, said: dict[int, bytes]) -> None:
    number = pipe.fileno()
    with pipe:
        said[number] = pipe.read()


def _write(pipe: BinaryIO, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write(data)


@functools.cache
def _channel(kind: bytes) -> socket.socket:
    """Start the process from which commands of a kind are forked; it ends with this one."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (mine, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno()), kind]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


# --- the process from which they are forked -----------------------------------------------------------


def serve(channel: socket.socket, kind: bytes) -> None:
    """Fork a command for each that is asked for, and tell its process id and its exit code."""
    import mpx

    modules = [module.name for module in pkgutil.walk_packages(mpx.__path__, "mpx.")]
    for module in OF_CONTROLLERS if kind == CONTROLLER else modules:
        if not module.startswith(HEAVY):
            importlib.import_module(module)
    gc.freeze()
    with selectors.DefaultSelector() as waiting:
        waiting.register(channel, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.data is not None:
                    _tell_end(waiting, key)
                    continue
                asked, descriptors, *_ = socket.recv_fds(channel, LONGEST, 4)
                if not asked:
                    return
                has_all, is_open = os.pipe()
                if not (pid := os.fork()):
                    _become(json.loads(asked), [*descriptors, has_all, is_open])
                os.close(is_open)
                os.read(has_all, 1)  # returns once it has no descriptor of this process any more
                os.close(has_all)
                answers = socket.socket(fileno=descriptors.pop())
                answers.send(str(pid).encode())
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, answers))
                for descriptor in descriptors:
                    os.close(descriptor)


def _tell_end(waiting: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    pid, answers = key.data
    waiting.unregister(key.fd)
    os.close(key.fd)
    _, status, used = os.wait4(pid, 0)
    with contextlib.suppress(OSError), answers:  # who asked may not wait any more
        answers.send(f"{os.waitstatus_to_exitcode(status)} {used.ru_maxrss}".encode())


def _become(asked: tuple[list[str], str, dict[str, str]], descriptors: Sequence[int]) -> NoReturn:
    """Run a command in this process, which was forked for it."""
    words, folder, environment = asked
    code: object = 1
    try:
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        is_open = descriptors[-1]  # the last to be closed, as somebody waits for that
        os.closerange(3, is_open)
        os.closerange(is_open + 1, os.sysconf("SC_OPEN_MAX"))  # the channel has any number
        os.close(is_open)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            before = getattr(sys, name)
            text = {"encoding": before.encoding, "errors": before.errors, "closefd": False}
            setattr(sys, name, open(number, before.mode, 1 if number == 2 else -1, **text))  # noqa: PTH123, SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        if os.environ.pop(PATIENT, None):
            from mpx.signals import Signals

            Signals.__init__.__defaults__ = (None,)  # grace_s
        sys.argv = ["mpx", *words]
        from mpx.__main__ import main

        main()
    except SystemExit as ends:
        code = ends.code
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), os.fsencode(sys.argv[2]))
