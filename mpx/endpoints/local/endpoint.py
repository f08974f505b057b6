"""Files of this host as an endpoint."""

import contextlib
import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mpx.endpoints.local.capabilities import LOCAL
from mpx.endpoints.local.settling import settle_file, stamp_file
from mpx.endpoints.local.special_source import special_source
from mpx.endpoints.local.syncs import Syncs
from mpx.engine import checksum
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import OPEN, Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import IntegrityError, IsThere, MpxError, UsageError
from mpx.files.guarded_folders import LocalFolders, OpenFolder
from mpx.files.local_error import local_error
from mpx.files.partial_file import PartialFile
from mpx.files.partial_names import partial_name
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.location import Location
from mpx.report import Note, OnNote
from mpx.text import quoted

LONGEST_NAME_BYTES = 255  # within a folder, on Linux
_NO_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS)  # as some file systems say of folders
_KEPT_OF_FOLDERS = (
    stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
)  # they are of this host: whose group, who removes


def _info(status: os.stat_result, target: str = "") -> FileInfo:
    if stat.S_ISREG(status.st_mode):
        kind = Kind.FILE
    elif stat.S_ISDIR(status.st_mode):
        kind = Kind.FOLDER
    elif stat.S_ISLNK(status.st_mode):
        kind = Kind.LINK
    else:
        kind = Kind.OTHER
    return FileInfo(
        kind,
        status.st_size,
        status.st_mtime,
        stat.S_IMODE(status.st_mode),
        target,
        identity=(status.st_dev, status.st_ino),
        hole_bytes=max(0, status.st_size - 512 * status.st_blocks) if kind is Kind.FILE else 0,
    )


def _encoded(name: str) -> bytes:
    """Return a name as the kernel takes it; raises UsageError for one that it cannot take."""
    if "\0" in name:
        raise UsageError(f"the name {quoted(name)} contains a NUL byte; no file can have it")
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        raise UsageError(
            f"the name {quoted(name)} cannot be written in the locale's encoding; use UTF-8"
        ) from None


class LocalEndpoint:
    """The file system of this host."""

    def __init__(
        self,
        location: Location,
        *,
        writing: bool,
        folders: LocalFolders | None = None,
        trees: SourceTrees = ANYWHERE,
    ) -> None:
        """`folders`: those that a copy writes to, shared by all that write; `trees`: those that it reads."""
        self.location = location
        self._writing = writing
        self._folders = folders or LocalFolders()
        self._trees = trees
        self._syncs = Syncs()

    def _error(self, error: OSError, name: str) -> MpxError:
        return local_error(error, name, writing=self._writing)

    protection = Protection()
    capabilities = LOCAL

    def find_out(self, *questions: Question) -> Capabilities:  # noqa: ARG002  all is known
        """See Endpoint."""
        return self.capabilities

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint. Nothing takes long here."""

    def check_name(self, name: str) -> None:
        """See Endpoint. Any name will do that has no NUL, is not too long, and is in the locale's letters."""
        if len(_encoded(name).rstrip(b"/").rpartition(b"/")[2]) > LONGEST_NAME_BYTES:
            raise UsageError(
                f"the name {quoted(name)} has more than {LONGEST_NAME_BYTES} bytes; rename the file"
            )

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint."""
        return None

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        try:
            status = os.stat(name, follow_symlinks=follow)
            target = os.readlink(name) if stat.S_ISLNK(status.st_mode) else ""
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise self._error(error, name) from None
        return _info(status, target)

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        return special_source(name)

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint."""
        found: list[FileInfo | MpxError | None] = []
        for name in names:
            try:
                found.append(self.stat(name, follow=follow))
            except MpxError as error:
                found.append(error)
        return found

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint."""
        found: list[int | None] = []
        for name in names:
            try:
                found.append(os.lstat(name).st_size)
            except OSError:
                found.append(None)
        return found

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        try:
            folder = self._trees.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._error(error, name) from None
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        is_link = entry.is_symlink()
                        target = os.readlink(entry.name, dir_fd=folder) if is_link else ""
                        yield entry.name, _info(entry.stat(follow_symlinks=False), target)
                    except OSError as error:
                        yield entry.name, self._error(error, posixpath.join(name, entry.name))
        except OSError as error:
            raise self._error(error, name) from None
        finally:
            os.close(folder)

    def make_folders(self, names: Sequence[str], *, replace_links: bool = False) -> list[bool | MpxError]:
        """See Endpoint."""
        made: list[bool | MpxError] = []
        for name in names:
            try:
                made.append(self._folders.make(name, replace_link=replace_links))
            except OSError as error:
                made.append(self._error(error, name))
        return made

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return None

    def unseal(self, names: Sequence[str]) -> dict[str, int]:
        """See Endpoint. Only folders of ours, and never through a link."""
        opened = {}
        for name in names:
            with contextlib.suppress(OSError):
                folder = self._open_folder(name)
                status = os.fstat(folder.fd)
                mode = stat.S_IMODE(status.st_mode)
                if status.st_uid == os.geteuid() and mode & OPEN != OPEN:
                    os.chmod(_named(folder), mode | OPEN)
                    opened[name] = mode
        return opened

    def _open_folder(self, name: str, *, follow: bool = False) -> OpenFolder:
        """Open a folder, the one that it was at first where that is known; raises OSError."""
        if self._folders.knows(name):
            return self._folders.opened(name)
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        return OpenFolder(os.open(name, flags))

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint. The new link replaces an old one in one step."""
        _encoded(target)
        try:
            folder, base = self._folders.place(name)
            aside = partial_name(base, "link")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=folder.fd)
            os.symlink(target, aside, dir_fd=folder.fd)
            try:
                os.replace(aside, base, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            except OSError:
                os.unlink(aside, dir_fd=folder.fd)
                raise
        except OSError as error:
            raise self._error(error, name) from None
        return target

    def remove(self, name: str) -> None:
        """See Endpoint."""
        try:
            folder, base = self._folders.place(name)
            os.unlink(base, dir_fd=folder.fd)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._error(error, name) from None

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. Every file is synced before the first rename, and then the folders.

        Slow syncs run side by side, as file systems write one journal entry for all that wait for one.
        """
        written = [file.written or PartialFile(file.partial, self._folders) for file in files]
        settle = partial(self._attempt, partial(settle_file, note))
        results = self._syncs.run([partial(settle, *each) for each in zip(files, written, strict=True)])
        for i, file in enumerate(files):
            if results[i] is None:
                results[i] = self._attempt(_rename, file, written[i])
            if file.written is None:
                written[i].release()
        renamed = [i for i, result in enumerate(results) if result is None]
        why_not = {
            folder: self._secured(folder) for folder in {posixpath.dirname(files[i].final) for i in renamed}
        }
        for i in renamed:
            if error := why_not[posixpath.dirname(files[i].final)]:
                results[i] = self._error(error, files[i].final)
        return results

    def _secured(self, name: str) -> OSError | None:
        """Sync a folder; return what tells that it is another one by now."""
        try:
            folder = self._folders.opened(name)
            self._folders.check(name)
        except OSError as error:
            return error
        with contextlib.suppress(OSError):  # a folder may be one to write to and not to read
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder.fd)
            try:
                os.fsync(fd)
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    return error
            finally:
                os.close(fd)
        return None

    def _attempt(
        self, step: Callable[[Commit, PartialFile], None], file: Commit, written: PartialFile
    ) -> Exception | None:
        try:
            step(file, written)
        except FileExistsError:
            return IsThere(file.final)
        except OSError as error:
            return self._error(error, file.final)
        except IntegrityError as error:
            return error
        return None

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """See Endpoint."""
        for stamp in folders:
            try:
                folder = self._open_folder(stamp.name, follow=stamp.follow)
            except OSError as error:
                for what in ("modes", "modification times"):
                    note(f"{what} are not kept everywhere: {error.strerror}")
                continue
            kept = os.fstat(folder.fd).st_mode & _KEPT_OF_FOLDERS
            mode = None if stamp.mode is None else stamp.mode & 0o777 | kept
            stamp_file(_named(folder), stamp.modified_s, mode, note)

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint."""
        sums: list[str | Exception] = []
        for part in parts:
            try:
                with _opened(part) as fd:
                    sums.append(checksum.of_file(algorithm, fd, part.start, part.end, stop))
            except OSError as error:
                sums.append(self._error(error, part.name))
        return sums

    def free_bytes(self, name: str) -> int | None:
        """See Endpoint. Asks the nearest folder that exists."""
        folder = Path(name).absolute()
        while not os.path.isdir(folder) and folder != folder.parent:
            folder = folder.parent
        try:
            status = os.statvfs(folder)
        except OSError:
            return None
        # A file system of no blocks at all (/proc, some of user space) does not know.
        return status.f_bavail * status.f_frsize if status.f_blocks else None

    def pause(self) -> None:
        """See Endpoint. Nobody waits for anything of this host."""

    def let_go(self) -> None:
        """See Endpoint."""

    def close(self) -> None:
        """See Endpoint."""


def _named(folder: OpenFolder) -> str:
    """Return a name of an open folder: fchmod() refuses a descriptor that needs no permission to read."""
    return f"/proc/self/fd/{folder.fd}"


@contextlib.contextmanager
def _opened(part: Part) -> Iterator[int]:
    """Open what a part is of: the file that was written, else what has its name."""
    if part.written:
        with part.written.opened() as fd:
            yield fd
        return
    fd = os.open(part.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _rename(file: Commit, written: PartialFile) -> None:
    written.commit(file.final, replaces=file.replaces)
