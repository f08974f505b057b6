"""The first process of a simulated machine: mounts file systems, runs a command, powers off.

It is copied beside `job.json` (see machine.py), and runs with nothing but the standard library.
"""

import ctypes
import json
import os
import subprocess
import time
from pathlib import Path

_MOUNTS = (
    ("proc", "/proc", None),
    ("sysfs", "/sys", None),
    ("devtmpfs", "/dev", None),
    ("devpts", "/dev/pts", None),
    ("tmpfs", "/dev/shm", b"size=90%"),  # copies of minutes end there
    ("tmpfs", "/run", None),  # where labs are kept: not seen outside
)
# No machine runs anything so soon after its start. Open vSwitch counts processors when that was 10 s ago, and
# has none, and so no thread that forwards, before.
_AGE_S = 60.0
_POWER_OFF = 0x4321FEDC
_LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Run the job, and leave its exit code beside it."""
    folder = Path(__file__).parent
    job = json.loads((folder / "job.json").read_text())
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as errors:
        try:
            _mount_all()
            time.sleep(_AGE_S)
            subprocess.run(["ip", "link", "set", "lo", "up"], env=job["environment"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            errors.write(f"mpx: the simulated machine cannot be set up: {error}\n".encode())
            _end(folder, 1)
        try:
            done = subprocess.run(
                job["command"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env=job["environment"],
                cwd=job["folder"],
                check=False,
            )
            code = done.returncode
        except OSError as error:
            said = f"mpx: cannot run '{job['command'][0]}': {error.strerror}\n"
            errors.write(said.encode("utf-8", "surrogateescape"))
            code = 127 if isinstance(error, FileNotFoundError) else 126
    _end(folder, code if code >= 0 else 128 - code)


def _end(folder: Path, code: int) -> None:
    """Leave the exit code, and switch the machine off."""
    fresh = folder / "code.new"
    fresh.write_text(str(code))
    fresh.rename(folder / "code")
    os.sync()
    _LIBC.reboot(_POWER_OFF)


def _mount_all() -> None:
    """Raise OSError where something cannot be mounted: the command would write to this machine's instead."""
    for kind, place, options in _MOUNTS:
        if place.startswith("/dev/"):
            Path(place).mkdir(exist_ok=True)
        if _LIBC.mount(kind.encode(), place.encode(), kind.encode(), ctypes.c_ulong(0), options):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot mount it: {os.strerror(number)}", place)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path(f"/dev/{name}").symlink_to(f"/proc/self/fd/{number}")
    Path("/dev/fd").symlink_to("/proc/self/fd")


if __name__ == "__main__":
    main()
