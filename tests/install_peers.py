"""Install the Debian packages of the real peers that the tests talk to, where that is permitted.

As root the missing packages are installed; otherwise one line names them and the tests that need
them are skipped (and fail where CI is set, since CI may skip nothing).
"""

import os
import shutil
import subprocess
import sys

PROGRAMS = {
    "globus-gridftp-server": "globus-gridftp-server-progs",
    "globus-url-copy": "globus-gass-copy-progs",
    "lftp": "lftp",
    "curl": "curl",
    "vsftpd": "vsftpd",
}


def find_peer(program: str) -> str:
    """Return the path of a program of Debian; without it skip the test, or fail it where CI is set."""
    import pytest  # not needed to install

    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        message = f"needs {program}, Debian package {PROGRAMS[program]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def main() -> int:
    """Return 0 when every program is there or may be missing, 1 when installing failed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({pkg for program, pkg in PROGRAMS.items() if not shutil.which(program, path=path)})
    if not missing:
        return 0
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"not root: the tests against real peers need these Debian packages: {' '.join(missing)}")
        return 0
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    done = subprocess.run(install, env=environment, check=False)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
