"""Commands of mpx that are forked from a process which has imported it: a tenth of the work of a start.

Each is a process of its own all the same, with an environment, a folder and descriptors of its own, and calls
`mpx.__main__.main`. What concerns the start itself is not to be tested like this: what is imported when,
locales, limits, other accounts.
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
from typing import NoReturn

LONGEST = 1 << 20  # bytes of what is asked for: the words, and the environment
HEAVY = ("mpx.__main__", "mpx.ops_classifier", "mpx.recognition", "mpx.serve", "mpx.probing.plot")


def run(
    words: Sequence[bytes], stdin: bytes, folder: str, environment: Mapping[str, str], within_s: float
) -> tuple[int, bytes, bytes]:
    """Run a command to its end; return its exit code and what it said on stdout and stderr.

    Raises subprocess.TimeoutExpired where it does not end in time, and kills it.
    """
    asked = json.dumps([[os.fsdecode(word) for word in words], folder, dict(environment)]).encode()
    (reads, given), (taken_out, out), (taken_err, err) = os.pipe(), os.pipe(), os.pipe()
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said: dict[int, bytes] = {}
    with mine:
        with theirs:
            socket.send_fds(_channel(), [asked], [reads, out, err, theirs.fileno()])
        for descriptor in (reads, out, err):
            os.close(descriptor)
        readers = [
            threading.Thread(target=_read, args=(descriptor, said)) for descriptor in (taken_out, taken_err)
        ]
        writer = threading.Thread(target=_write, args=(given, stdin))
        for thread in (writer, *readers):
            thread.start()
        pid = int(mine.recv(100))
        mine.settimeout(within_s)
        try:
            code = int(mine.recv(100))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(words), within_s) from None
        finally:
            for thread in (writer, *readers):
                thread.join()
    return code, said[taken_out], said[taken_err]


def _read(descriptor: int, said: dict[int, bytes]) -> None:
    with open(descriptor, "rb") as pipe:
        said[descriptor] = pipe.read()


def _write(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb") as pipe:
        pipe.write(data)


@functools.cache
def _channel() -> socket.socket:
    """Start the process from which commands are forked; it ends with this one."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (mine, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    with theirs:
        command = [sys.executable, __file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    atexit.register(process.wait)
    atexit.register(mine.close)
    return mine


# --- the process from which they are forked -----------------------------------------------------------


def serve(channel: socket.socket) -> None:
    """Fork a command for each that is asked for, and tell its process id and its exit code."""
    import mpx

    for module in pkgutil.walk_packages(mpx.__path__, "mpx."):
        if not module.name.startswith(HEAVY):
            importlib.import_module(module.name)
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
                if not (pid := os.fork()):
                    _become(json.loads(asked), descriptors)
                answers = socket.socket(fileno=descriptors.pop())
                answers.send(str(pid).encode())
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, answers))
                for descriptor in descriptors:
                    os.close(descriptor)


def _tell_end(waiting: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    pid, answers = key.data
    waiting.unregister(key.fd)
    os.close(key.fd)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError), answers:  # who asked may not wait any more
        answers.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(asked: tuple[list[str], str, dict[str, str]], descriptors: Sequence[int]) -> NoReturn:
    """Run a command in this process, which was forked for it."""
    words, folder, environment = asked
    code: object = 1
    try:
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        os.closerange(3, max(descriptors) + 100)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            before = getattr(sys, name)
            text = {"encoding": before.encoding, "errors": before.errors, "closefd": False}
            setattr(sys, name, open(number, before.mode, 1 if number == 2 else -1, **text))  # noqa: PTH123, SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
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
    serve(socket.socket(fileno=int(sys.argv[1])))
