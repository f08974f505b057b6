"""What gfal2 reaches as a storage that is served by SFTP, one request after the other.

Data move by copies of whole files, an extension: `wire.GFAL`.
"""

import itertools
import stat
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import gfal2

from mpx.endpoints.gfal.meaning import Trouble, explained, status, trouble
from mpx.endpoints.gfal.served.connections import ForeignConnections
from mpx.endpoints.gfal.served.contexts import KeptContext, new_context
from mpx.endpoints.gfal.served.copies import copy_job
from mpx.endpoints.gfal.served.job import GfalJob, sum_job
from mpx.endpoints.gfal.served.listed import is_web, plain_names
from mpx.endpoints.gfal.settings import WATCHED_S, CopyOrder, GfalSettings, dumped, loaded
from mpx.endpoints.gfal.urls import folder_url, url_of
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.served.replies import one_name
from mpx.endpoints.sftp.served.requests import Asked
from mpx.endpoints.sftp.served.server import Answer
from mpx.endpoints.sftp.wire import (
    Attributes,
    Code,
    Described,
    Extended,
    FolderEntry,
    Handle,
    Names,
    PacketKind,
    Reply,
    Status,
)
from mpx.endpoints.xrootd.exits import GONE, NO_LOGIN

NAMES_AT_ONCE = 500
LONGEST_NAME = 254  # bytes as a listing has them, encoded or not: longer ones are cut off, but of GridFTP
ENDS_WITHIN_S = 2.0  # with what is under way
_DONE = Status(Code.OK)
_UNSUPPORTED = Status(Code.OP_UNSUPPORTED, "gfal2 is not asked for that")
_IS_FOLDER = Status(Code.FAILURE, "a folder has that name")
_REPLACES_NOTHING = Status(Code.OP_UNSUPPORTED, "the server renames to no name that is taken, as SRM does")
_IS_THERE = Status(Code.FAILURE, "a file has that name")
_OTHER_NAME = Status(
    Code.FAILURE,
    "the server takes what is encoded in a new name for the name itself, as XRootD does; give --in-place, or "
    "leave blanks and letters beyond ASCII out of names",
)
_FOLDER_MODE = 0o755
_ENDINGS = {Trouble.LOGIN: NO_LOGIN, Trouble.LOST: GONE, Trouble.LATE: GONE}


class GfalStorage:
    """See Storage. `lost` ends the process where the server is gone, with the words that it is given."""

    extensions: Mapping[str, str] = MappingProxyType({wire.POSIX_RENAME: "1", wire.GFAL: "1"})

    def __init__(self, settings: GfalSettings, lost: Callable[[int, str], NoReturn]) -> None:
        """`lost`: see exits.py."""
        self._settings, self._lost = settings, lost
        self._context = new_context(settings)  # for names; no data pass it
        self._copying, self._reading = KeptContext(settings), KeptContext(settings)
        self._connections = ForeignConnections()
        self._job: GfalJob | None = None
        self._listings: dict[bytes, deque[FolderEntry]] = {}
        self._numbers = itertools.count(1)

    def ask(self, asked: Asked, answer: Answer, /) -> None:
        """See Storage. It is answered before this returns."""
        does: dict[PacketKind, Callable[[Asked], Reply]] = {
            PacketKind.STAT: self._stat,
            PacketKind.LSTAT: self._stat,  # it tells of no links
            PacketKind.OPENDIR: self._list,
            PacketKind.READDIR: self._next_names,
            PacketKind.CLOSE: self._close,
            PacketKind.MKDIR: self._make_folder,
            PacketKind.REMOVE: self._remove,
            PacketKind.RENAME: self._rename,
            PacketKind.REALPATH: lambda asked: one_name(_absolute(asked.subject)),
            PacketKind.EXTENDED: self._rename if asked.extension == wire.POSIX_RENAME else self._work,
        }
        try:
            do = does.get(asked.kind)
            reply = do(asked) if do else _UNSUPPORTED
        except gfal2.GError as error:
            reply = self._refused(error, (_text(asked.subject), _text(asked.other)))
        except (UnicodeError, ValueError, TypeError) as error:
            reply = Status(Code.FAILURE, f"gfal2 does not take that, or cannot tell it: {error}")
        answer(reply)

    def close(self) -> None:
        """See Storage."""
        if self._job and not self._job.wait(0.0):
            self._job.cancel()
            self._job.wait(ENDS_WITHIN_S)

    # --- names -----------------------------------------------------------------------------------------

    def _url(self, name: bytes) -> str:
        return url_of(self._settings.server, _text(name))

    def _stat(self, asked: Asked) -> Reply:
        return Described(_attributes(self._context.stat(self._url(asked.subject))))

    def _list(self, asked: Asked) -> Reply:
        folder = self._context.opendir(folder_url(self._settings.server, _text(asked.subject)))
        names: list[str] = []
        described: list[Attributes] = []
        cuts = not self._settings.server.startswith("gsiftp")
        while True:
            entry, found = folder.readpp()
            if entry is None:
                break
            name = _name_of(entry)
            if cuts and len(_bytes(name)) >= LONGEST_NAME:
                return Status(Code.FAILURE, f"gfal2 cuts off the name {name[:40]}...")
            if name not in (".", ".."):
                names.append(name.rstrip("/"))
                described.append(_attributes(found))
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            return Status(Code.FAILURE, f"gfal2 tells {twice} twice: it cuts blanks off the ends of names")
        handle = str(next(self._numbers)).encode()
        plain = plain_names(self._settings.server, names)
        self._listings[handle] = deque(map(FolderEntry, map(_bytes, plain), described))
        return Handle(handle)

    def _next_names(self, asked: Asked) -> Reply:
        left = self._listings.get(asked.subject)
        if left is None:
            return Status(Code.FAILURE, "no such handle")
        some = [left.popleft() for _ in range(min(NAMES_AT_ONCE, len(left)))]
        return Names(tuple(some)) if some else Status(Code.EOF)

    def _close(self, asked: Asked) -> Reply:
        found = self._listings.pop(asked.subject, None)
        return Status(Code.FAILURE, "no such handle") if found is None else _DONE

    def _make_folder(self, asked: Asked) -> Reply:
        self._context.mkdir(folder_url(self._settings.server, _text(asked.subject)), _FOLDER_MODE)
        return _DONE

    def _remove(self, asked: Asked) -> Reply:
        self._context.unlink(self._url(asked.subject))
        return _DONE

    def _rename(self, asked: Asked) -> Reply:
        old, new = self._url(asked.subject), self._url(asked.other)
        replaces = asked.extension == wire.POSIX_RENAME
        if is_web(self._settings.server) or not replaces:
            there = self._kind(asked.other)
            if there is not None and stat.S_ISDIR(there):
                return _IS_FOLDER  # which some web servers replace, with all that is in it
            if there is not None and not replaces:
                return _IS_THERE
        try:
            self._context.rename(old, new)
        except gfal2.GError as error:
            names = _text(asked.subject), _text(asked.other)
            if not replaces or trouble(error.code, str(error.message), names) is not Trouble.THERE:
                raise
            return _REPLACES_NOTHING
        return _DONE if self._is_named(asked.other) else _OTHER_NAME

    def _kind(self, name: bytes) -> int | None:
        """Return the mode of what has a name; None: nothing has it."""
        try:
            return int(self._context.stat(self._url(name)).st_mode)
        except gfal2.GError as error:
            if trouble(error.code, str(error.message), [_text(name)]) is not Trouble.MISSING:
                raise
            return None

    def _is_named(self, name: bytes) -> bool:
        """Tell whether a file has the name that it was to get; under another one it is removed."""
        server, url = self._settings.server, self._url(name)
        if not is_web(server) or url == f"{server}{_text(name)}":
            return True
        if self._kind(name) is not None:
            return True
        self._context.unlink(url_of(server, url.removeprefix(server)))
        return False

    # --- what takes long -------------------------------------------------------------------------------

    def _work(self, asked: Asked) -> Reply:
        """Begin a copy or a checksum, watch it or cancel it: what is meant stands before the rest."""
        what, rest = asked.subject, asked.other
        if what == b"copy":
            self._job = copy_job(self._copying, CopyOrder(**loaded(rest)), self._connections)
        elif what in (b"adler32", b"md5"):
            url, name, algorithm = self._url(rest), _text(rest), what.decode()
            self._job = sum_job(self._reading, self._context, url, name, algorithm, self._connections)
        if self._job is None:
            return Status(Code.FAILURE, "nothing is under way")
        if what == b"cancel":
            self._job.cancel()
        self._job.wait(WATCHED_S)
        return Extended(dumped(self._job.state()))

    def _refused(self, error: Any, names: Sequence[str]) -> Status:
        """Return what a refusal means; does not return where there is no server any more."""
        message = str(error.message)
        found = trouble(error.code, message, names)
        if found in _ENDINGS:
            self._lost(_ENDINGS[found], explained(message, names))
        return status(error.code, message, names)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _name_of(entry: Any) -> str:
    """Return the name of an entry of a folder, whatever bytes it is of: the binding takes it for UTF-8."""
    try:
        return str(entry.d_name)
    except UnicodeDecodeError as error:
        return _text(error.object)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _absolute(name: bytes) -> bytes:
    return name if name.startswith(b"/") else b"/" + name.removeprefix(b".")


def _attributes(found: Any) -> Attributes:
    kind = stat.S_IFMT(found.st_mode) or stat.S_IFREG
    return Attributes(int(found.st_size), kind, int(found.st_mtime) or None)
