"""Work inside a network namespace, or become a command that runs in one.

As a program, with nothing but the standard library so that it starts quickly:

    python -I -S namespace.py NETNS HOSTS UID GID COMMAND ...

enters the namespace NETNS (a path), puts the file HOSTS over /etc/hosts for this process and its children,
which also have the name of the lab's host, becomes the user (both numbers -1: nobody else) and is replaced
by COMMAND: process id, streams, signals and exit code are the command's own.
"""

import ctypes
import errno
import os
import pwd
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

T = TypeVar("T")

RUN_NETNS = Path("/run/netns")  # where `ip netns` keeps them, so that other tools find them by name
SAME_USER = -1
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes as of a shell

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 0x80000
_MNT_DETACH = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def inside(netns: str, action: Callable[[], T]) -> T:
    """Return what `action` returns, run in a thread of its own that is in the namespace named `netns`.

    A socket that is made there stays there. Raises what `action` raises, OSError if there is none.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def enter_and_act() -> None:
        try:
            enter(RUN_NETNS / netns)
            result.append(action())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=enter_and_act, name=f"in {netns}")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def enter(netns: Path) -> None:
    """Put the calling thread into a network namespace; OSError where there is none, or none any more."""
    fd = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.setns(fd, _CLONE_NEWNET), str(netns))
        # Taking a lab down removes the names first and then ends the processes inside.
        if not netns.exists() or not os.path.samestat(os.fstat(fd), netns.stat()):
            raise OSError(errno.ESTALE, "the lab was just taken down", str(netns))
    finally:
        os.close(fd)


def unmount(path: Path) -> None:
    """Unmount `path` at once; does nothing where nothing is mounted."""
    _LIBC.umount2(os.fsencode(path), _MNT_DETACH)


def become(netns: Path, hosts: Path, uid: int, gid: int, command: list[str]) -> NoReturn:
    """Replace this process by `command` inside the namespace; OSError where it cannot be run."""
    enter(netns)
    _check(_LIBC.unshare(_CLONE_NEWNS | _CLONE_NEWUTS), "namespaces for mounts and the host's name")
    socket.sethostname(netns.name.rpartition(".")[2])  # programs look up their host's name in that file
    # Mounts here are not seen outside; unmounting outside propagates here.
    _mount(None, Path("/"), _MS_REC | _MS_SLAVE)
    _mount(hosts, Path("/etc/hosts"), _MS_BIND)
    if uid != SAME_USER:
        become_user(uid, gid)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a command would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


def become_user(uid: int, gid: int) -> None:
    """Change from root to the user, with the groups and the environment of the account."""
    try:
        account = pwd.getpwuid(uid)
    except KeyError:  # a user id without an account is valid, too
        os.setgroups([])
    else:
        os.initgroups(account.pw_name, gid)
        os.environ.update(HOME=account.pw_dir, USER=account.pw_name, LOGNAME=account.pw_name)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def group_of(uid: int) -> int:
    """Return the group of an account, or the user's own number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _mount(source: Path | None, target: Path, flags: int) -> None:
    where = os.fsencode(source) if source else b"none"
    _check(_LIBC.mount(where, os.fsencode(target), None, ctypes.c_ulong(flags), None), str(target))


def _check(returned: int, what: str) -> None:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def main(arguments: list[str]) -> NoReturn:
    """Enter and become the command of the arguments; 126 or 127 where that fails."""
    netns, hosts, uid, gid, *command = arguments
    try:
        become(Path(netns), Path(hosts), int(uid), int(gid), command)
    except OSError as error:
        print(f"mpx lab: cannot run {command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        sys.exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


if __name__ == "__main__":
    main(sys.argv[1:])
