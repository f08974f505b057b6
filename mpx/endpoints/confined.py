"""Confines this process by Landlock (Linux 5.13 and later): which files it may still open, whoever asks.

A library that a server talks to is led by it: one that opens a file of this host, because a server says so,
finds that it may not. Programs that are run with `python -I` use it: it needs the standard library alone.
"""

import contextlib
import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# <linux/landlock.h>, the same numbers on all architectures:
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_ONLY = 1
_PATH_BENEATH = 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_NAMES = sum(1 << bit for bit in range(4, 13))  # made and removed
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # since versions 2 and 3
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE
_NO_NEW_PRIVILEGES = 38  # of prctl
_RULESET, _BENEATH = struct.Struct("=Q"), struct.Struct("=Qi")

# What libraries, their plugins and the resolver of names read, of which nothing is of users:
_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc", "/proc", "/sys"),
    *("/cvmfs", "/nix/store", "/gnu/store", "/var/lib/sss", "/var/lib/ca-certificates"),
    *("/run/systemd", "/run/resolvconf", "/run/NetworkManager", "/run/nscd", "/run/netconfig"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
)
_DEVICES = ("/dev/null",)
_OF_GRID = (
    "/etc/grid-security",
    "/etc/grid-security/certificates",
    "/etc/resolv.conf",
)  # links, at many sites
_NAMING = (
    "X509_",
    "XRD",
    "GFAL_",
    "GLOBUS_",
    "GRID_",
    "KRB5",
    "SSL_CERT_",
    "BEARER_TOKEN_FILE",
    "LD_LIBRARY_PATH",
)
_OF_HOME = (".xrd", ".xrootd", ".globus")


def landlock_version() -> int:
    """Return which version of Landlock the kernel has; 0: none."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION_ONLY))


def confine(reading: Iterable[str | Path], writing: Iterable[str | Path] = ()) -> bool:
    """Deny all but the files and folders that are named, with what is in them; what is open stays so.

    Of this thread, and of those that it starts from now on. What is not there is left out. Returns whether
    the kernel does that: an older one, or one without Landlock, does not. Raises OSError.
    """
    version = landlock_version()
    if version < 1:
        return False
    writes = _WRITE_FILE | _NAMES | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    reads = _READ_FILE | _READ_DIR
    handled = _RULESET.pack(reads | writes)
    rules = _checked(_call(_CREATE_RULESET, handled, len(handled), 0))
    try:
        for names, rights in ((reading, reads), (writing, reads | writes), (_DEVICES, reads | writes)):
            for name in names:
                _allow(rules, name, rights)
        libc = ctypes.CDLL(None, use_errno=True)
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(_call(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return True


def needed(environment: Mapping[str, str]) -> list[Path]:
    """Return what a process has to read: libraries, what Python imports, settings, and credentials.

    Credentials are where libraries look for them, and what variables name.
    """
    user = os.geteuid()
    credentials = [Path(name) for name in _OF_GRID]
    with contextlib.suppress(RuntimeError):  # an account that nobody knows, as in containers
        credentials += [Path.home() / name for name in _OF_HOME]
    for name, value in environment.items():
        if name.upper().startswith(_NAMING):  # `FILE:/tmp/x`, too, and several with colons between
            credentials += [Path(each) for each in value.split(":") if each]
    runtime = environment.get("XDG_RUNTIME_DIR")
    credentials += [Path(folder) / f"bt_u{user}" for folder in (runtime, "/tmp") if folder]
    credentials += [Path(f"/tmp/x509up_u{user}"), *Path("/tmp").glob(f"krb5cc_{user}*")]
    found = [Path(name) for name in (*_SYSTEM, sys.prefix, sys.base_prefix, *filter(None, sys.path))]
    return [*found, *credentials, *(target for each in credentials for target in _led_to(each))]


def _led_to(folder: Path) -> Iterator[Path]:
    """Yield what the links in a folder lead to, as a rule counts for where a file is."""
    with contextlib.suppress(OSError):  # no folder, or not ours
        for entry in os.scandir(folder):
            if entry.is_symlink():
                yield Path(os.path.realpath(entry.path))


def _allow(rules: int, name: str | Path, rights: int) -> None:
    """Add a rule; what cannot be opened, or is no file, needs none."""
    with contextlib.suppress(OSError):
        fd = os.open(name, os.O_PATH | os.O_CLOEXEC)
        try:
            is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            rule = _BENEATH.pack(rights if is_folder else rights & _OF_FILES, fd)
            _checked(_call(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
        finally:
            os.close(fd)


def _call(number: int, *words: int | bytes | None) -> int:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in words]
    return int(syscall(ctypes.c_long(number), *given))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
