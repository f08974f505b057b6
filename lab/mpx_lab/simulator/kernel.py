"""The kernel of simulated machines: built once, from the source of Linux as a distribution packs it."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from mpx.errors import UsageError
from mpx_lab.emulator.build import cache_folder
from mpx_lab.simulator.machine import SimulatorError

SOURCES = Path("/usr/src")
_NEEDED = {"make": "make", "cc": "gcc", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils"}
_EDITS = (  # of the source: a file, what it says, and what is put there
    # Ticks as on servers.
    ("arch/um/Kconfig", *(f"config HZ\n\tint\n\tdefault {hertz}" for hertz in (100, 250))),
    # Room for the registers of processors with AMX, 11,008 bytes; without it no program starts on these.
    ("arch/x86/um/user-offsets.c", *(f"DEFINE_LONGS(HOST_FP_SIZE, {size})" for size in (2696, 12288))),
)
_LAST_LINES = 5


def built_kernel(say: Callable[[str], None], source: Path | None = None) -> Path:
    """Return the kernel, after some minutes the first time.

    `source` is a tar file; None: the newest there is in /usr/src. Raises UsageError where there is no
    source or a program is missing, SimulatorError where it cannot be built.
    """
    source = source or _newest_source()
    config = Path(__file__).with_name("kernel.config").read_text()
    try:
        identity = f"{source.name} {source.stat().st_size} {_EDITS} {config}"
    except OSError as error:
        raise UsageError(f"the source of Linux cannot be read: {error}") from None
    cache = cache_folder() / "simulator"
    kernel = cache / f"linux-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    if not kernel.exists():
        _build_once(kernel, source, config, say)
    return kernel


def _build_once(kernel: Path, source: Path, config: str, say: Callable[[str], None]) -> None:
    """Build the kernel, or wait for who builds it; what an interrupted build has left is removed."""
    for program, package in _NEEDED.items():
        if shutil.which(program) is None:
            raise UsageError(f"the simulator needs {program}: install the Debian package {package}")
    cache = kernel.parent
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w")
    except OSError as error:
        raise UsageError(
            f"cannot keep the simulator's kernel in {cache}: {error.strerror}; set XDG_CACHE_HOME to a "
            "folder you can write"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another program that builds the simulator's kernel")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if kernel.exists():
            return
        for left in cache.glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        say(f"building the simulator's kernel from {source}, once; this takes some minutes")
        with tempfile.TemporaryDirectory(prefix="build-", dir=cache) as name:
            built = _build(Path(name), source, config)
            built.replace(kernel)


def _newest_source() -> Path:
    found = sorted(SOURCES.glob("linux-source-*.tar.xz"), key=_version)
    if not found:
        raise UsageError(
            "the simulator needs the source of Linux: install the Debian packages linux-source-6.12, flex, "
            "bison and bc, or name a linux-source-*.tar.xz with --source"
        )
    return found[-1]


def _version(source: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", source.name)))


def _build(folder: Path, source: Path, config: str) -> Path:
    _run(["tar", "-xJf", str(source.absolute()), "--strip-components=1"], folder)
    for name, before, after in _EDITS:
        file = folder / name
        text = file.read_text() if file.exists() else ""
        if before not in text:
            raise SimulatorError(
                f"{source} is a version of Linux that the simulator does not support; use linux-source-6.12"
            )
        file.write_text(text.replace(before, after))
    (folder / "mpx.config").write_text(config)
    make = ["make", "-s", "ARCH=um", "KCONFIG_ALLCONFIG=mpx.config"]
    _run([*make, "allnoconfig"], folder)
    _run([*make, f"-j{os.cpu_count() or 1}", "linux"], folder)
    return folder / "linux"


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:])
        raise SimulatorError(f"the simulator's kernel cannot be built: '{' '.join(command)}' said: {said}")
