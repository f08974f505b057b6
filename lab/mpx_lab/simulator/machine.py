"""Runs a command on a machine whose time passes only while all of it waits.

The machine is Linux itself, built to run as a process (User-mode Linux): the same TCP, the files of this
machine, network devices of its own. Whatever works there takes no time, so nothing is ever late, and many
simulated seconds of waiting pass in one real one. It runs on one core.
"""

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mpx.errors import MpxError, UsageError
from mpx_lab.simulated import MARK
from mpx_lab.state import CannotRun

MEMORY = "8G"  # at most: memory that is not used is not allocated
IN_MEMORY = "/dev/shm"  # its memory is a file, which is kept in memory
LOOK_S = 0.2
TOLD_BYTES = 1 << 16
_PROGRAMS = {"setpriv": "util-linux", "taskset": "util-linux", "ip": "iproute2"}
OWN = (Path("/run"), Path("/dev"))  # folders of this machine that are hidden inside


class SimulatorError(MpxError):
    """A simulated machine does not start, or has ended before its command."""


def run_simulated(
    kernel: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path,
    core: int | None = None,
    out: BinaryIO | None = None,
    errors: BinaryIO | None = None,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Run a command there, in a folder, and return its exit code.

    What it says is passed on with a delay, at its end at the latest; None: nowhere. `check` is called several
    times a second, and the machine ends where that raises. All of it runs on one core of this machine, as
    hopping between two would take most of the time (None: any, one that the caller may use).

    Raises SimulatorError, and what `check_possible` raises.
    """
    check_possible(command, environment, folder)
    cores = sorted(os.sched_getaffinity(0))
    mine = cores[os.getpid() % len(cores)] if core is None else cores[core % len(cores)]
    with tempfile.TemporaryDirectory(prefix="mpx-simulated-") as name:
        place = Path(name)
        job = {"command": list(command), "environment": dict(environment), "folder": str(folder.absolute())}
        init = _written(place, job)
        arguments = [
            *(f"mem={MEMORY}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}"),
            *(f"{MARK}inf-cpu", "seccomp=auto", "quiet", "con=null", "con0=null", "ssl=null"),
            *(f"uml_dir={place}/", "umid=machine"),
        ]
        memory = IN_MEMORY if _can_be_mapped(IN_MEMORY) else name
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(mine), str(kernel), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": memory, "HOME": name},
            start_new_session=True,
        )
        try:
            return _watched(process, place, out, errors, check)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _written(place: Path, job: Mapping[str, Any]) -> Path:
    """Write the job of the machine, and return its first program."""
    (place / "job.json").write_text(json.dumps(job))
    for stream in ("out", "err"):
        (place / stream).touch()
    init = place / "init"
    init.write_text(f"#!{sys.executable} -IS\n{Path(__file__).with_name('inside.py').read_text()}")
    init.chmod(0o755)
    return init


def _watched(
    process: subprocess.Popen[bytes],
    place: Path,
    out: BinaryIO | None,
    errors: BinaryIO | None,
    check: Callable[[], None],
) -> int:
    said = b""
    with (place / "out").open("rb") as output, (place / "err").open("rb") as error_output:
        assert process.stdout is not None
        ended = False
        while not ended:
            check()
            ended = process.poll() is not None
            ready, _, _ = select.select([process.stdout], [], [], LOOK_S)
            if ready:
                piece = os.read(process.stdout.fileno(), TOLD_BYTES)
                said = (said + piece)[-TOLD_BYTES:]
                ended = ended or not piece
            for source, to in ((output, out), (error_output, errors)):
                piece = source.read()
                if piece and to is not None:
                    to.write(piece)
                    to.flush()
    process.wait()
    try:
        return int((place / "code").read_text())
    except FileNotFoundError:
        last = said.decode(errors="replace").strip().splitlines()[-3:]
        raise SimulatorError(f"the simulated machine ended before its command: {' / '.join(last)}") from None


def check_possible(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
    """Raise where a command cannot run in a simulated machine, before minutes are spent on its kernel.

    CannotRun where it is not there or no program, UsageError where a folder is hidden inside, its name cannot
    be told to a kernel, or a program is missing.
    """
    check_seen(folder)
    temporary = tempfile.gettempdir()
    check_seen(Path(temporary))
    for name in (temporary, sys.executable):
        if " " in name:
            raise UsageError(f"a simulated machine cannot handle spaces in {name}")
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise UsageError(f"the simulator needs {program}: install the Debian package {package}")
    name = command[0]
    where = folder / name if "/" in name else shutil.which(name, path=environment.get("PATH", os.defpath))
    error: OSError | None = None
    if where is None or not os.path.exists(where):
        why = os.strerror(errno.ENOENT) if "/" in name else "command not found"
        error = FileNotFoundError(errno.ENOENT, why)
    elif os.path.isdir(where) or not os.access(where, os.X_OK):
        error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if error:
        raise CannotRun(f"cannot run '{name}'", error)


def check_seen(folder: Path) -> None:
    """Raise UsageError where a folder is hidden inside a simulated machine."""
    for own in OWN:
        if folder.resolve().is_relative_to(own):
            raise UsageError(
                f"{folder} is not visible inside a simulated machine, which has its own {own}; use another "
                "folder (for temporary ones: TMPDIR)"
            )


def _can_be_mapped(folder: str) -> bool:
    """Whether files in a folder may be mapped as executable memory."""
    return os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC
