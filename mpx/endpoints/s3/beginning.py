"""The beginning of an upload in parts: a new one, or one that an earlier run has begun."""

from collections.abc import Callable

from mpx.endpoints.s3.completion import ListedPart, StoredParts, abort, parts_stored
from mpx.endpoints.s3.parts import MOST_PART_BYTES, MOST_PARTS, PartedFile, part_bytes_of
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.sending import Bytes, PartSender
from mpx.endpoints.s3.stored_sums import is_whole_crc32
from mpx.endpoints.s3.uploads import BegunUpload, StoredPart
from mpx.endpoints.web.refusals import is_success
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, DestinationError
from mpx.report import OnNote, Severity
from mpx.text import shown
from mpx.units import format_size

_WITH_CRC32 = {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT"}
NOT_KEPT = (
    "an interrupted upload cannot be continued or discarded, as the state folder cannot be written; the "
    "server keeps its parts until a rule of the bucket removes them"
)
LEFT = (
    "the parts of the upload {} to {}, of an earlier run, stay at the server until a rule of the bucket "
    "removes them: {}"
)


def new_upload(
    questions: S3Questions,
    file: FileTransfer,
    part_bytes: int,
    note: OnNote,
    *,
    has_sums: bool = True,
    source: str = "",
) -> PartedFile:
    """Begin an upload; raises what a refusal means.

    `has_sums`: the checksum of each part is known; `source`: the ETag of what the server copies.
    """
    if part_bytes > MOST_PART_BYTES:  # a server would say so once it has all of the first one
        most = format_size(MOST_PARTS * MOST_PART_BYTES)
        raise DestinationError(
            f"{file.named()} has more than {most}, the most in S3; copy it in several files"
        )
    access = questions.access
    has_sums = has_sums and access.keeps_crc32
    plain = {"Content-Type": "application/octet-stream"}
    wanted = {**plain, **_WITH_CRC32} if has_sums else plain
    questions.dialogue.connection(access.origin)  # without one nothing is asked for that could begin unheard
    with access.asked.asking(file.partial, str(access.origin)):
        reply, content, url = questions.ask("POST", file.final, {"uploads": None}, wanted)
        if reply.status in (400, 501) and has_sums:  # it knows no checksums
            reply, content, url = questions.ask("POST", file.final, {"uploads": None}, plain)
        if not is_success(reply):
            raise questions.refused(reply, content, url, "store")
        upload_id = questions.read(reply, content, url, "store").fields.get("UploadId", "")
        if not upload_id:
            raise ConnectionLost(f"{url}: the server does not say how the upload that it has begun is called")
        begun = BegunUpload(file.final, upload_id, part_bytes, str(url.origin), source)
        if not access.uploads.begun(file.partial, begun):
            note(NOT_KEPT, Severity.WARNING)
    algorithm = reply.header("x-amz-checksum-algorithm")
    has_crc32 = has_sums and is_whole_crc32(algorithm, reply.header("x-amz-checksum-type"))
    if has_sums and algorithm and not has_crc32:
        # It makes one of those of the parts, which tells nothing of the object, and some, as MinIO, then take
        # no part without its own.
        access.keeps_crc32 = False
        discard(questions, file.partial, note)
        return new_upload(questions, file, part_bytes, note, has_sums=False, source=source)
    return PartedFile(file, begun, access.uploads, has_crc32=has_crc32)


def discard(questions: S3Questions, partial: str, note: OnNote) -> None:
    """Have the server forget what an earlier run has sent of a file, as it begins anew."""
    uploads = questions.access.uploads
    if begun := uploads.kept(partial):
        try:
            abort(questions, begun)
        except DestinationError as error:
            where = shown(f"s3://{questions.access.bucket}{begun.name}")
            note(LEFT.format(shown(begun.upload_id), where, error), Severity.WARNING)
        uploads.ended(partial)


def continued(
    questions: S3Questions,
    file: FileTransfer,
    sender: PartSender,
    fd: int,
    stop: Callable[[], bool],
    *,
    verifies: bool,
) -> PartedFile | None:
    """Return the upload that an earlier run has begun, with the parts that are stored; None for none.

    A part counts where its size is right and its ETag is the MD5 of our bytes; or, where no ETag is, its
    CRC-32 that of our bytes, by which the object is verified then, too.
    """
    kept = _kept(questions, file, part_bytes_of(file.size_bytes), "")
    if kept is None:
        return None
    parted, stored = kept
    read = {}
    for number, listed in sorted(stored.parts.items()):
        start, end = parted.range_of(number)
        if end - start == listed.size_bytes and not stop():
            read[number] = sender.sums(Bytes(file.source, fd, start, end))
    by_md5 = {number for number, sums in read.items() if _md5_in(stored.parts[number]) == sums.md5.hex()}
    for number, sums in read.items():
        listed, crc32 = stored.parts[number], f"{sums.crc32:08x}"
        # Where no ETag is an MD5 of ours none is any, as with keys of a key service.
        if number in by_md5 or (stored.has_crc32 and not by_md5 and listed.crc32 == crc32):
            part = StoredPart(number, listed.size_bytes, listed.etag, sums.md5, sums.crc32)
            algorithm = "md5" if by_md5 else "crc32"
            parted.was_stored(part, algorithm if verifies else "")
    file.plan()  # what is there counts as resumed
    return parted


def _md5_in(listed: ListedPart) -> str:
    """Return the MD5 that an ETag is, if it is one."""
    return listed.etag.strip('"').lower()


def continued_copy(questions: S3Questions, file: FileTransfer, least_part_bytes: int) -> PartedFile | None:
    """As `continued`, of an object that the server copies: its parts count where it is the same object."""
    kept = _kept(questions, file, least_part_bytes, file.tag or "") if file.tag else None
    if kept is None:
        return None
    parted, stored = kept
    for number, listed in sorted(stored.parts.items()):
        start, end = parted.range_of(number)
        if end - start == listed.size_bytes:
            parted.was_stored(StoredPart(number, listed.size_bytes, listed.etag, b"", 0), "")
    file.plan()
    return parted


def _kept(
    questions: S3Questions, file: FileTransfer, least_part_bytes: int, source: str
) -> tuple[PartedFile, StoredParts] | None:
    """Return what an earlier run has begun, and what the server has of it; None where that is of no use."""
    begun = questions.access.uploads.kept(file.partial)
    here = str(questions.access.origin)
    if begun is None or (begun.name, begun.server, begun.source) != (file.final, here, source):
        return None
    if begun.part_bytes < least_part_bytes:
        return None
    stored = parts_stored(questions, begun)
    if stored is None:
        return None
    file.forget_arrived()  # what the journal says: the server knows better
    return PartedFile(file, begun, questions.access.uploads, has_crc32=stored.has_crc32), stored
