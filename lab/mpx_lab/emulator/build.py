"""Builds the emulator from its C source, once for each version of it, into the user's cache.

Whoever builds there or takes a program from there holds the lock of the cache meanwhile: so each program is
built once, what else is being built is of one that was killed, and no program goes that was just taken.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mpx.errors import UsageError

SOURCE = Path(__file__).with_name("source")
FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra")
UNFINISHED = ".new."  # in the name of a program that is being built; its builder's process id follows
UNUSED_S = 7 * 86400  # unused for so long, another version's program is removed


def cache_folder() -> Path:
    """Return where builds are kept: `mpx` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "mpx"


def built_link(environment: Mapping[str, str] | None = None) -> Path:
    """Return the emulator's program, built first where there is none of this source.

    The compiler gets this environment (None: ours). Raises UsageError where there is no C compiler or the
    source cannot be compiled.
    """
    folder = cache_folder()
    program = folder / f"link-{_key()}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if program.exists():
            os.utime(program)  # it is in use
        else:
            _remove_old(folder)
            # Renamed when complete; its name is unique, as a killed build's compiler may still write.
            fresh = folder / f"{program.name}{UNFINISHED}{os.getpid()}"
            try:
                _compile(fresh, environment)
                fresh.replace(program)
            finally:
                fresh.unlink(missing_ok=True)
    return program


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder / "link.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_old(folder: Path) -> None:
    """Remove remains of killed builds, and programs that have not been used for long."""
    oldest_s = time.time() - UNUSED_S
    for file in folder.glob("link-*"):
        if UNFINISHED in file.name or file.stat().st_mtime < oldest_s:
            file.unlink()


def _key() -> str:
    """Return a key that depends on the source, the flags and the machine."""
    seen = hashlib.sha256(" ".join((os.uname().machine, *FLAGS)).encode())
    for file in sorted(SOURCE.glob("*.[ch]")):
        seen.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return seen.hexdigest()[:16]


def _compile(program: Path, environment: Mapping[str, str] | None) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise UsageError("the lab's emulator needs a C compiler (cc); install one, for example Debian's gcc")
    sources = [str(file) for file in sorted(SOURCE.glob("*.c"))]
    command = [compiler, *FLAGS, "-o", str(program), *sources]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise UsageError(
            f"the lab's emulator cannot be compiled with {compiler}; are the headers of the C library and "
            f"the kernel installed (Debian: libc6-dev, linux-libc-dev)?\n{done.stderr.strip()}"
        )
