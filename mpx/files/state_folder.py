"""The folder in which mpx keeps what it has to remember between runs: $MPX_STATE_DIR, else the user's.

It is opened once and everything in it is reached through that descriptor: no link is followed, what is new
is created, and what is no file of ours is an error. A folder that others may write in is refused, as what
stands there decides on what is believed to have arrived.
"""

import contextlib
import errno
import grp
import os
import pwd
import stat
from pathlib import Path

from mpx.errors import UsageError
from mpx.files.partial_file import NEVER_FOLLOW, NotOurs, not_a_plain_file, owner_of_new_files, umask

HINT = "set MPX_STATE_DIR to a folder you own"


def _of_user() -> Path:
    """Return where programs of this user keep their state (XDG base directories), with our name below it."""
    named = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(named) if named.startswith("/") else Path.home() / ".local/state") / "mpx"
    except RuntimeError:  # no HOME, and an account that the system does not know
        raise UsageError(f"no home for the journals is known of user id {os.geteuid()}; {HINT}") from None


class StateFolder:
    """The open state folder; close it, or use it in a `with` statement. Methods raise OSError."""

    def __init__(self) -> None:
        """Open the folder, made if needed; raises UsageError if it cannot be used."""
        try:
            self.path = Path(os.environ.get("MPX_STATE_DIR") or _of_user())
            _make(self.path)
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"cannot make {self.path} for the journals: {error.strerror}; {HINT}") from None
        try:
            status = os.fstat(self._fd)
            self._owner = status.st_uid
            self._check(status)
        except BaseException:
            self.close()
            raise

    def _check(self, status: os.stat_result) -> None:
        for who, may_write, how in (
            ("everybody", status.st_mode & stat.S_IWOTH, "o-w"),
            ("its group", status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid), "g-w"),
        ):
            if may_write:
                raise UsageError(
                    f"{who} may write in {self.path}, where mpx keeps its journals; "
                    f"take that away (chmod {how}), or {HINT}"
                )
        # Some network file systems give all files one owner.
        if status.st_uid != os.geteuid() and status.st_uid != owner_of_new_files(self._fd):
            raise UsageError(
                f"{self.path}, where mpx keeps its journals, belongs to another account "
                f"(user id {status.st_uid}); {HINT}"
            )

    def __enter__(self) -> "StateFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._fd)

    def open(self, name: str, flags: int) -> int:
        """Open a regular file that has no other name; it is made with mode 0600 if the flags say so."""
        try:
            fd = os.open(name, flags | NEVER_FOLLOW, 0o600, dir_fd=self._fd)
        except OSError:
            self._check_ours(name)
            raise
        status = os.fstat(fd)
        if reason := not_a_plain_file(status):
            os.close(fd)
            raise self._not_ours(name, reason)
        if flags & os.O_CREAT and not status.st_size:
            _open_to_us(fd)
        return fd

    def is_own(self, fd: int) -> bool:
        """Tell whether an open file belongs to this account."""
        return os.fstat(fd).st_uid in (os.geteuid(), self._owner)

    def create(self, name: str) -> int:
        """Make a new, empty file in the place of whatever has the name, and open it for writing."""
        self.unlink(name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | NEVER_FOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=self._fd)
        _open_to_us(fd)
        return fd

    def rename(self, name: str, new: str) -> None:
        """Give a file another name; one that has it is replaced."""
        os.rename(name, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def unlink(self, name: str) -> None:
        """Remove a file; a missing one is fine."""
        try:
            os.unlink(name, dir_fd=self._fd)
        except FileNotFoundError:
            return

    def stat(self, name: str) -> os.stat_result:
        """Describe what has the name, a link as itself."""
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def names(self, suffix: str) -> list[str]:
        """Return the names that end so, sorted."""
        return sorted(name for name in os.listdir(self._fd) if name.endswith(suffix))

    def _check_ours(self, name: str) -> None:
        """Raise NotOurs where what has the name explains that it could not be opened."""
        try:
            reason = not_a_plain_file(self.stat(name))
        except FileNotFoundError:
            return
        if reason:
            raise self._not_ours(name, reason)

    def _not_ours(self, name: str, reason: str) -> NotOurs:
        return NotOurs(errno.EPERM, f"{self.path / name} {reason}; remove it if you do not know it")


def _is_own_group(group: int) -> bool:
    """Tell whether a group is this account's own, with its name and no other member, as many systems have."""
    try:
        account, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    name = account.pw_name
    return (group, found.gr_name) == (account.pw_gid, name) and {*found.gr_mem} <= {name}


def _make(folder: Path) -> None:
    """Make a folder with those that it is in, each for us alone, whatever the umask; raises OSError."""
    if folder.is_dir():
        return
    _make(folder.parent)
    with contextlib.suppress(FileExistsError):  # somebody else was faster
        folder.mkdir(mode=0o700)
        if umask() & 0o700:
            folder.chmod(0o700)


def _open_to_us(fd: int) -> None:
    """Let the next run open a file that was made just now: the umask may have taken our own permission."""
    if umask() & 0o600:
        os.fchmod(fd, 0o600)
