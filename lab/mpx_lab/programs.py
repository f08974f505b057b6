"""The programs of the system that a lab uses."""

import os
import shutil
import subprocess

from mpx.errors import UsageError
from mpx_lab.state import LabError

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ovsdb-tool": "openvswitch-common",
    "ovsdb-server": "openvswitch-common",
    "ovs-vswitchd": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
}


def find(program: str) -> str:
    """Return the path of a program; raises UsageError, naming its Debian package."""
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise UsageError(f"the lab needs {program}: install the Debian package {PACKAGES[program]}")
    return found


def run(command: list[str], environment: dict[str, str] | None = None, text: str = "") -> str:
    """Run a program with `text` as its input and return its output; raises LabError with its error output."""
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise LabError(f"{' '.join(command)} failed: {said}")
    return done.stdout
