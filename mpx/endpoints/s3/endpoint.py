"""A bucket of S3 as an endpoint. Folders are what keys have in common up to a slash; nothing makes them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.beginning import discard
from mpx.endpoints.s3.capabilities import S3
from mpx.endpoints.s3.completion import abort, complete, parts_stored
from mpx.endpoints.s3.composed_sum import composed_sum
from mpx.endpoints.s3.keys import prefix_of
from mpx.endpoints.s3.listing import FOLDER, ask_object_and_folder, children, has_any
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.refusals import S3Error
from mpx.endpoints.s3.stored_sums import TELL_SUMS, stored_sum, whole_crc32
from mpx.endpoints.s3.unheard_uploads import abort_unheard
from mpx.endpoints.web.describe import info_of_head
from mpx.endpoints.web.endpoint import WebEndpoint
from mpx.endpoints.web.headers import HeaderError, content_range
from mpx.endpoints.web.refusals import MISSING, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Stamp
from mpx.errors import DestinationError, Interrupted, MpxError, NoChecksum, SourceError, UsageError
from mpx.files.partial_names import is_partial_name
from mpx.location import Location
from mpx.report import OnNote, Severity
from mpx.text import quoted, shown

LONGEST_KEY_BYTES = 1024
FOLDERS = "S3 keeps no folders: empty ones are not there, and none has a time or a mode"
TIMES = "modification times are not kept: S3 gives an object the time at which it was stored"
UNSEEN = (
    "the credentials do not permit to see what is in s3://{}: objects with the names of what is copied are "
    "replaced (--overwrite never refuses that)"
)
BOTH = "{0} is an object, and others begin with {0}/: those are copied by the name with the slash"
_PARTIAL, _FORBIDDEN, _NO_SUCH_RANGE = 206, 403, 416  # of an empty object no byte is there
_NOT_PERMITTED = (301, 307, 400, 403)  # answers to HEAD, which has no body that tells more


class S3Endpoint(WebEndpoint):
    """Connects when first asked. Where it is written to a partial name stands for an upload in parts."""

    def __init__(
        self, location: Location, access: S3Access, *, writing: bool, stop: Callable[[], bool] | None = None
    ) -> None:
        super().__init__(location, access, writing=writing, stop=stop)
        self._s3, self._writing = access, writing
        self._questions = S3Questions(access, DestinationError if writing else SourceError, stop)
        self._dialogue = self._questions.dialogue
        self._is_listed = False  # the bucket is there, and may be listed
        self._missing = ""  # what `stat` has not found; whoever asks that asks `stats` next
        self._is_blind = False  # see _is_unseen

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint. It is faithful, as each answer tells the checksum of what is stored."""
        return S3

    def find_out(self, *questions: Question) -> Capabilities:  # noqa: ARG002  all is known
        """See Endpoint."""
        return S3

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint."""

    def check_name(self, name: str) -> None:
        """See Endpoint. Other clients, and proxies, resolve `.` and `..` in what is legal in S3."""
        super().check_name(name)
        key = name[1:].encode("utf-8", "surrogateescape")
        if len(key) > LONGEST_KEY_BYTES:
            raise UsageError(
                f"the name {quoted(name)} has more than {LONGEST_KEY_BYTES} bytes, the most in S3"
            )
        try:
            key.decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"the name {quoted(name)} is not UTF-8, as keys of S3 are; rename it") from None

    # --- describing ----------------------------------------------------------------------------------

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:  # noqa: ARG002  there are no links
        """See Endpoint."""
        found = self._looked_up(name)
        self._missing = "" if found else name
        return found

    def _looked_up(self, name: str) -> FileInfo | None:
        if self._writing and is_partial_name(name):
            return self._unfinished(name)
        reply, is_folder = ask_object_and_folder(self._questions, name)
        if reply is not None and is_success(reply):
            if is_folder and not self._writing:
                self._s3.note(BOTH.format(shown(f"s3://{self._s3.bucket}{name}")), Severity.NOTICE)
            return self._described(reply)
        if (reply is None or reply.status not in MISSING) and (found := self._object(name)):
            return found
        if is_folder is None:
            is_folder = self._is_folder(name)
        self._is_listed = not self._is_blind
        return FOLDER if is_folder else None

    def _is_folder(self, name: str) -> bool:
        if self._is_blind:
            return False
        if not prefix_of(name) and self._is_listed:
            return True
        return has_any(self._questions, name)

    def _object(self, name: str) -> FileInfo | None:
        if name.endswith("/"):
            return None
        reply, content, url = self._ask_about(name)
        if reply.status in MISSING:
            return None
        if reply.status in (_PARTIAL, _NO_SUCH_RANGE):
            return self._described_by_part(reply)
        if is_success(reply):
            return self._described(reply)
        if self._is_unseen(reply, content):
            return None
        raise self._questions.refused(reply, content, url, "describe")

    def _is_unseen(self, reply: HttpReply, content: bytes) -> bool:
        """Tell whether we may not know what is there, and write all the same, as those may who only add."""
        is_denied = reply.status == _FORBIDDEN and S3Error(content).code == "AccessDenied"
        if not (is_denied and self._writing and self._s3.replaces_unseen):
            return False
        if not self._is_blind:
            self._is_blind = True
            self._s3.note(UNSEEN.format(self._s3.bucket), Severity.WARNING)
        return True

    def _ask_about(
        self, name: str, headers: Mapping[str, str] | None = None
    ) -> tuple[HttpReply, bytes, WebUrl]:
        """Ask by HEAD, and by GET of one byte where that is refused.

        Only HEAD may be what is not permitted, or it has not told why: expired credentials, another region.
        """
        answer = self._questions.ask("HEAD", name, headers=headers)
        if answer[0].status not in _NOT_PERMITTED:
            return answer
        return self._questions.ask("GET", name, headers={**(headers or {}), "Range": "bytes=0-0"})

    @staticmethod
    def _described(reply: HttpReply) -> FileInfo:
        return replace(info_of_head(reply, reply.told_bytes), tag=reply.header("ETag"))

    @staticmethod
    def _described_by_part(reply: HttpReply) -> FileInfo:
        """Describe an object by the answer to a question for its first byte."""
        try:
            size_bytes = content_range(reply.header("Content-Range"))[2]
        except HeaderError:
            size_bytes = 0 if reply.status == _NO_SUCH_RANGE else reply.size_bytes
        return replace(info_of_head(reply, size_bytes), tag=reply.header("ETag"))

    def _unfinished(self, partial: str) -> FileInfo | None:
        """Describe what is stored of an upload; its time says nothing."""
        size_bytes = self._s3.uploads.size_of(partial)
        if size_bytes is not None:
            return FileInfo(Kind.FILE, size_bytes)
        begun = self._s3.uploads.kept(partial)
        stored = parts_stored(self._questions, begun) if begun else None
        if begun is None or stored is None:
            return None
        end = max((number * begun.part_bytes for number in stored.parts), default=0)
        return FileInfo(Kind.FILE, end)

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:  # noqa: ARG002
        """See Endpoint. What is written as a file has no folder in its way."""
        if self._writing and [*names] == [self._missing]:
            self._missing = ""
            return [None]
        found: dict[str, FileInfo | MpxError | None] = {}
        plain = [
            name for name in names if not (name.endswith("/") or (self._writing and is_partial_name(name)))
        ]
        if plain:
            self._alone(plain[0], found)  # which finds the region
        for name, reply in zip(plain[1:], self._questions.heads(plain[1:]), strict=True):
            if reply is not None and is_success(reply):
                found[name] = self._described(reply)
            elif (
                reply is not None
                and self._writing
                and (reply.status in MISSING or (self._is_blind and reply.status == _FORBIDDEN))
            ):
                found[name] = None
        for name in names:
            if name not in found:
                self._alone(name, found)
        return [found[name] for name in names]

    def _alone(self, name: str, found: dict[str, FileInfo | MpxError | None]) -> None:
        try:
            found[name] = self._looked_up(name)
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._questions.kind):
                raise
            found[name] = error

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        return children(self._questions, name)

    def free_bytes(self, name: str) -> int | None:  # noqa: ARG002  nobody can know
        """See Endpoint."""
        return None

    # --- changing ------------------------------------------------------------------------------------

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002  there are none
    ) -> list[bool | MpxError]:
        """See Endpoint. There is nothing to make, and what is below each name may be there."""
        return [False] * len(names)

    def remove(self, name: str) -> None:
        """See Endpoint. An upload in parts is aborted; its object, or an older one, stays."""
        if is_partial_name(name):
            try:
                begun = self._s3.uploads.looked_up(name)
            except UsageError as error:
                raise DestinationError(f"what is stored of {quoted(name)} is not known: {error}") from None
            if begun:
                abort_unheard(self._questions, name, begun, self._s3.note)
                abort(self._questions, begun)
            self._s3.uploads.ended(name)
            return
        reply, content, url = self._questions.ask("DELETE", name)
        if not is_success(reply) and reply.status not in MISSING:
            raise self._questions.refused(reply, content, url, "remove")

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. Uploads in parts are completed; what came in one piece has its name already."""
        if any(file.modified_s is not None for file in files):
            note(TIMES)
        return [self._complete(file, note) for file in files]

    def _complete(self, file: Commit, note: OnNote) -> MpxError | None:
        uploads = self._s3.uploads
        ready = uploads.ready_at(file.partial)
        if ready is None:
            is_stored = uploads.stored_at(file.partial) is not None
            if is_stored and file.was_tried:  # perhaps in parts, by an earlier run, as it was longer then
                discard(self._questions, file.partial, note)
            uploads.forget(file.partial)
            return None if is_stored else DestinationError(f"{self._s3.url_of(file.final)} was not stored")
        try:
            abort_unheard(self._questions, file.partial, ready.begun, note)
            complete(self._questions, ready, note)
        except MpxError as error:
            return error
        uploads.ended(file.partial)
        return None

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:  # noqa: ARG002  none can be set
        """See Endpoint."""
        note(FOLDERS)

    # --- checking ------------------------------------------------------------------------------------

    def checksums(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],
    ) -> list[str | Exception]:
        """See Endpoint. Of what is written those count that came with each answer (see S3UploadWorker)."""
        known = [self._without_asking(algorithm, part) for part in parts]
        names = [
            self._s3.uploads.stored_at(part.name) or part.name
            for part, told in zip(parts, known, strict=True)
            if told is None
        ]
        heads = self._questions.heads(names, TELL_SUMS) if len(names) > 1 else [None] * len(names)
        asked = iter(zip(names, heads, strict=True))
        found: list[str | Exception] = []
        for told in known:
            if stop():
                raise Interrupted("stopped")
            found.append(self._checksum(algorithm, *next(asked)) if told is None else told)
        return found

    def _without_asking(self, algorithm: str, part: Part) -> str | Exception | None:
        """Return the checksum of a part, or why there is none; None where the server is to be asked."""
        name, kind = part.name, self._questions.kind
        if self._writing and is_partial_name(name):
            stored, ready = self._s3.uploads.stored_at(name), self._s3.uploads.ready_at(name)
            if stored is None and ready is None:
                return kind(f"{self._s3.url_of(name)} is not there")
            if ready is not None and ready.md5 and part.is_whole and algorithm in S3.checksums:
                return ready.md5 if algorithm == "md5" else f"{whole_crc32(ready.parts):08x}"
            if stored is None:
                return NoChecksum(kind("the server told no checksum of the parts that it stored"))
            name = stored
        if not part.is_whole:
            return NoChecksum(kind(f"{self._s3.url_of(name)} has a checksum as a whole only"))
        return None

    def _checksum(self, algorithm: str, name: str, head: HttpReply | None) -> str | Exception:
        """Return the checksum of an object; `head`: an answer to HEAD, if there is one."""
        reply, what, kind = head, str(self._s3.url_of(name)), self._questions.kind
        if reply is None or not is_success(reply):
            reply, content, url = self._ask_about(name, TELL_SUMS)
            if self._is_unseen(reply, content):
                return NoChecksum(self._questions.refused(reply, content, url, "describe"))
            if not is_success(reply):
                return self._questions.refused(reply, content, url, "describe")
        if algorithm not in S3.checksums:
            return NoChecksum(kind(f"S3 has no {algorithm} of {what}"))
        is_part, told = reply.status == _PARTIAL, None
        if algorithm == "md5" or not is_part:  # a CRC-32 would be of the part
            told = stored_sum(reply, algorithm)
        if algorithm == "md5" and not (told or is_part):
            told = composed_sum(self._questions, name, reply)
        why = f"the server tells no {algorithm} of {what}, which was stored in parts or is encrypted there"
        return told or NoChecksum(kind(why))

    def close(self) -> None:
        """See Endpoint."""
        self._questions.close()
