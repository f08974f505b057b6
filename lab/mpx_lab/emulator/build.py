"""Builds the emulator from its C source, once for each version of it, into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from mpx.errors import UsageError

SOURCE = Path(__file__).with_name("source")
FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra")


def cache_folder() -> Path:
    """Return where builds are kept: `mpx` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "mpx"


def built_link() -> Path:
    """Return the emulator's program, built if it is not yet there for this source.

    Raises UsageError where there is no C compiler or the source cannot be compiled.
    """
    program = cache_folder() / f"link-{_key()}"
    if not program.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise UsageError(
                "the lab's emulator needs a C compiler (cc); install one, for example Debian's gcc"
            )
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            fresh = Path(folder) / program.name
            _compile(compiler, fresh)
            fresh.replace(program)  # whole or not at all, whoever else builds meanwhile
    return program


def _key() -> str:
    """Return what changes with the source, the flags and the machine."""
    seen = hashlib.sha256(" ".join((os.uname().machine, *FLAGS)).encode())
    for file in sorted(SOURCE.glob("*.[ch]")):
        seen.update(f"\n{file.name}\n".encode() + file.read_bytes())
    return seen.hexdigest()[:16]


def _compile(compiler: str, program: Path) -> None:
    sources = [str(file) for file in sorted(SOURCE.glob("*.c"))]
    command = [compiler, *FLAGS, "-o", str(program), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"the lab's emulator cannot be compiled with {compiler}; are the headers of the C library and "
            f"the kernel installed (Debian: libc6-dev, linux-libc-dev)?\n{done.stderr.strip()}"
        )
