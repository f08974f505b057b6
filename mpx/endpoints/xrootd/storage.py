"""A server of XRootD as a storage that is served by SFTP: each request is one of its, none is waited for."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

from XRootD import client
from XRootD.client.flags import AccessMode, MkDirFlags, QueryCode

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.served.replies import one_name
from mpx.endpoints.sftp.served.requests import Asked
from mpx.endpoints.sftp.served.server import Answer
from mpx.endpoints.sftp.wire import (
    Code,
    Extended,
    Handle,
    PacketKind,
    Reply,
    Status,
)
from mpx.endpoints.xrootd import meaning
from mpx.endpoints.xrootd.file_opening import FileOpening, astray
from mpx.endpoints.xrootd.listing_in_steps import ListingInSteps
from mpx.endpoints.xrootd.open_file import OpenFile
from mpx.endpoints.xrootd.own_connections import OwnConnections
from mpx.endpoints.xrootd.replacing import Replacing
from mpx.endpoints.xrootd.third_party import ThirdPartyCopies
from mpx.errors import UsageError

ENDS_WITHIN_S = 2.0  # with what is open, however long its server takes
DONE = Status(Code.OK)
Done = Callable[[Any, Any, Sequence[Any] | None], None]  # of the library: status, what was found, hosts
_EXTENSIONS = (
    wire.POSIX_RENAME,
    wire.CHECKSUM,
    wire.COPY,
    wire.COPIED,
    wire.CONGESTION,
    wire.SENDING,
    wire.RTT,
)
_UNKNOWN = Status(Code.FAILURE, "no such handle")
_FOLDER_MODE = AccessMode.UR | AccessMode.UW | AccessMode.UX
_FOLDER_MODE |= AccessMode.GR | AccessMode.GX | AccessMode.OR | AccessMode.OX


class _Begun:
    """What the library says of a request that it has begun."""

    ok = True


_BEGUN = _Begun()


class XrootdStorage:
    """See Storage. `lost` ends the process where the server is gone, with the words that it is given."""

    extensions: Mapping[str, str] = MappingProxyType(dict.fromkeys(_EXTENSIONS, "1"))

    def __init__(self, url: str, lost: Callable[[int, str], NoReturn]) -> None:
        """`url`: `root://host:port`. `lost`: see exits.py."""
        self._url = url
        self._lost = lost
        self._server = client.FileSystem(url)
        self._replacing = Replacing(url, self._server)
        self._files: dict[bytes, OpenFile] = {}
        self._listings: dict[bytes, ListingInSteps] = {}
        self._reading: list[ListingInSteps] = []  # that may not have come to their ends
        self._copies = ThirdPartyCopies()
        self._connections = OwnConnections("")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # held to use what is open: answers come from threads of the library

    def ask(self, asked: Asked, answer: Answer, /) -> None:
        """See Storage."""
        if asked.extension:
            self._ask_extension(asked, answer)
            return
        does = {
            PacketKind.STAT: self._stat,
            PacketKind.LSTAT: self._stat,  # it has no links
            PacketKind.OPEN: self._open,
            PacketKind.CLOSE: self._close,
            PacketKind.READ: self._read,
            PacketKind.WRITE: self._write,
            PacketKind.OPENDIR: self._list,
            PacketKind.READDIR: self._next_names,
            PacketKind.MKDIR: self._make_folder,
            PacketKind.REMOVE: self._remove,
            PacketKind.RMDIR: self._remove_folder,
            PacketKind.RENAME: self._rename,
            PacketKind.SETSTAT: self._set,
            PacketKind.FSETSTAT: self._set_open,
            PacketKind.REALPATH: self._real_path,
        }.get(asked.kind)
        if does is None:
            answer(Status(Code.OP_UNSUPPORTED, "XRootD has no such request"))
        else:
            does(asked, answer)

    def close(self) -> None:
        """See Storage."""
        with self._lock:
            files, self._files = list(self._files.values()), {}
        left = threading.Semaphore(0)
        for each in files:
            each.file.close(callback=lambda *_: left.release())
        until_s = time.monotonic() + ENDS_WITHIN_S
        for _ in files:
            left.acquire(timeout=max(0.0, until_s - time.monotonic()))

    # --- names -----------------------------------------------------------------------------------------

    def _stat(self, asked: Asked, answer: Answer) -> None:
        self._start(self._server.stat, answer, meaning.described, _text(asked.subject))

    def _list(self, asked: Asked, answer: Answer) -> None:
        def opened(refusal: Status | None) -> None:
            answer(refusal or Handle(self._keep(self._listings, listing)))

        listing = ListingInSteps(self._refused, opened)
        with self._lock:
            self._reading = [each for each in self._reading if not each.is_ended] + [listing]
        words = self._server, _text(asked.subject), self._replacing
        threading.Thread(target=listing.read, args=words, daemon=True).start()

    def undelivered(self, error: BaseException) -> None:
        """Take what the binding could not make objects of, and has called nobody with: of listings."""
        with self._lock:
            reading = list(self._reading)
        for each in reading:
            each.fail(error)

    def _next_names(self, asked: Asked, answer: Answer) -> None:
        with self._lock:
            listing = self._listings.get(asked.subject)
        if listing is None:
            answer(_UNKNOWN)
        else:
            listing.next(answer)

    def _make_folder(self, asked: Asked, answer: Answer) -> None:
        self._start(self._server.mkdir, answer, _done, _text(asked.subject), MkDirFlags.NONE, _FOLDER_MODE)

    def _remove(self, asked: Asked, answer: Answer) -> None:
        self._start(self._server.rm, answer, _done, _text(asked.subject))

    def _remove_folder(self, asked: Asked, answer: Answer) -> None:
        self._start(self._server.rmdir, answer, _done, _text(asked.subject))

    def _rename(self, asked: Asked, answer: Answer) -> None:
        names = _text(asked.subject), _text(asked.other)
        if asked.extension and self._replacing.leads:  # the new file takes the place of one that is there
            self._in_thread(lambda: (self._replacing.rename(*names), None), answer, _done)
        else:
            self._start(self._server.mv, answer, _done, *names)

    def _set(self, asked: Asked, answer: Answer) -> None:
        """Set the size of a file; its time and mode are the server's to choose."""
        size_bytes = asked.attributes.size_bytes
        if size_bytes is None:
            answer(Status(Code.OP_UNSUPPORTED, "XRootD sets neither times nor modes"))
        else:
            self._start(self._server.truncate, answer, _done, _text(asked.subject), size_bytes)

    def _real_path(self, asked: Asked, answer: Answer) -> None:
        """Answer once the server has, as this is what the round-trip time is measured by."""
        name = asked.subject
        path = name if name.startswith(b"/") else b"/" + name.removeprefix(b".")
        self._start(self._server.ping, answer, lambda _: one_name(path))

    def _ask_extension(self, asked: Asked, answer: Answer) -> None:
        if asked.extension == wire.POSIX_RENAME:
            self._rename(asked, answer)
            return
        if asked.extension == wire.CONGESTION:
            self._connections = OwnConnections(_text(asked.subject))
            answer(self._sends_as_told())
            return
        if asked.extension == wire.RTT:
            answer(Extended(wire.u64(self._connections.rtt_us())))
            return
        if asked.extension == wire.SENDING:
            answer(Extended(self._connections.sending()))
            return
        url = f"{self._url}{_text(asked.subject)}"
        if asked.extension == wire.COPIED:
            answer(Extended(wire.u64(self._copies.copied_bytes(url))))
            return
        if asked.extension == wire.COPY:
            ended = partial(self._ended, answer)
            self._copies.begin(_text(asked.other), url, ended)
            return
        asks = f"{_text(asked.subject)}?cks.type={_text(asked.other)}"
        ask = partial(self._server.query, timeout=meaning.SUM_TIMEOUT_S)
        self._start(ask, answer, meaning.checksum, QueryCode.CHECKSUM, asks)

    def _sends_as_told(self) -> Status:
        """Set the congestion control of what is connected by now, also to data servers."""
        try:
            self._connections.set_congestion()
        except UsageError as error:
            return Status(Code.FAILURE, str(error))
        return DONE

    def _ended(self, answer: Answer, status: Any) -> None:
        answer(DONE if status.ok else self._refused(status))

    # --- files -----------------------------------------------------------------------------------------

    def _open(self, asked: Asked, answer: Answer) -> None:
        def opened(file: Any, refusal: Status | None) -> None:
            if refusal is not None:
                answer(refusal)
                return
            self._sends_as_told()
            answer(Handle(self._keep(self._files, OpenFile(file))))

        url = f"{self._url}{_text(asked.subject)}"
        FileOpening(url, asked.flags, self._refused, opened).begin()

    def _close(self, asked: Asked, answer: Answer) -> None:
        with self._lock:
            opened = self._files.pop(asked.subject, None)
            listing = self._listings.pop(asked.subject, None)
        if listing is not None:
            listing.close()
            answer(DONE)
        elif opened is None:
            answer(_UNKNOWN)
        else:
            opened.alone(partial(self._start, opened.file.close, answer, _done))

    def _read(self, asked: Asked, answer: Answer) -> None:
        opened = self._opened(asked, answer)
        if opened is None:
            return
        does, then = opened.file.read, _after(opened, answer)
        opened.beside(lambda: self._start(does, then, meaning.data, asked.offset, asked.size_bytes))

    def _write(self, asked: Asked, answer: Answer) -> None:
        opened, data = self._opened(asked, answer), bytes(asked.data)
        if opened is None:
            return
        if not data:
            answer(DONE)
            return
        # The library keeps no reference to what it sends, so the answer does.
        does, then, stored = opened.file.write, _after(opened, answer), partial(_stored, data)
        opened.beside(lambda: self._start(does, then, stored, data, asked.offset, len(data)))

    def _set_open(self, asked: Asked, answer: Answer) -> None:
        """Cut an open file; nothing else is asked of one."""
        opened, size_bytes = self._opened(asked, answer), asked.attributes.size_bytes
        if opened is None:
            return
        if size_bytes is None:
            answer(Status(Code.OP_UNSUPPORTED, "only sizes of open files are set"))
            return
        does, then = opened.file.truncate, _after(opened, answer)
        opened.alone(lambda: self._start(does, then, _done, size_bytes))

    def _opened(self, asked: Asked, answer: Answer) -> OpenFile | None:
        """Return the file of a handle; answers where there is none."""
        with self._lock:
            found = self._files.get(asked.subject)
        if found is None:
            answer(_UNKNOWN)
        return found

    # --- asking ----------------------------------------------------------------------------------------

    def _keep(self, held: dict[bytes, Any], value: Any) -> bytes:
        handle = str(next(self._numbers)).encode()
        with self._lock:
            held[handle] = value
        return handle

    def _start(
        self, does: Callable[..., Any], answer: Answer, then: Callable[[Any], Any], *words: Any
    ) -> None:
        """Have the library do something, and answer when it has done it."""

        def done(status: Any, found: Any, _hosts: Sequence[Any] | None) -> None:
            try:
                reply = then(found) if status.ok else self._refused(status)
            except Exception as error:
                reply = _not_read(error)
            answer(reply)

        try:
            status = does(*words, callback=done)
        except (ValueError, TypeError) as error:
            answer(meaning.not_taken(error))
        else:
            self._check(status, answer)

    def _in_thread(
        self, does: Callable[[], tuple[Any, Any]], answer: Answer, then: Callable[[Any], Any]
    ) -> None:
        """Do what waits for its answers, and answer then."""

        def ask(callback: Done) -> None:
            try:
                status, found = does()
            except Exception as error:
                answer(_not_read(error))
            else:
                callback(status, found, None)

        def begin(*, callback: Done) -> Any:
            threading.Thread(target=ask, args=(callback,), daemon=True).start()
            return _BEGUN

        self._start(begin, answer, then)

    def _check(self, status: Any, answer: Answer) -> None:
        """Answer at once what the library does not even begin."""
        if not status.ok:
            answer(self._refused(status))

    def _refused(self, status: Any) -> Status:
        """Return what a refusal means; does not return where there is no server any more."""
        if status.code == meaning.ERROR_RESPONSE:
            return meaning.refusal(status.errno, status.message)
        if code := meaning.ENDS.get(status.code):
            return self._lost(code, meaning.told(status.message))
        return Status(Code.FAILURE, meaning.told(status.message))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _not_read(error: Exception) -> Status:
    return Status(Code.FAILURE, f"what XRootD answers cannot be read: {error}")


def _done(_found: Any) -> Status:
    return DONE


def _stored(_data: bytes, _found: Any) -> Status:
    return DONE


def _after(opened: OpenFile, answer: Answer) -> Answer:
    """Return what answers, unless the file was led elsewhere, and lets what waits for that begin."""

    def answered(reply: Reply) -> None:
        answer(astray(opened.file) or reply)
        opened.answered()

    return answered
