"""The end of an upload in parts: completed, which makes the object appear, or aborted."""

import contextlib
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from mpx.endpoints.s3.questions import Query, S3Questions
from mpx.endpoints.s3.refusals import NO_UPLOAD, S3Error
from mpx.endpoints.s3.stored_sums import (
    TELL_SUMS,
    composite_etag,
    crc32_hex,
    crc32_of,
    crc32_text,
    is_composite,
    is_whole_crc32,
    md5_of,
    whole_crc32,
)
from mpx.endpoints.s3.uploads import BegunUpload, ReadyUpload
from mpx.endpoints.web.file_put import STORED_BPS
from mpx.endpoints.web.refusals import MISSING, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.whole_number import read_size
from mpx.errors import ConnectionLost, DestinationError, IntegrityError, IsThere, MpxError
from mpx.report import OnNote, Severity

_INVALID_PART = "InvalidPart"
NO_SUM = "unverified: the server tells no checksum of objects that are stored in parts"


def abort(questions: S3Questions, begun: BegunUpload) -> None:
    """Have a server remove the parts of an upload; raises DestinationError and what a refusal means."""
    if begun.server != str(questions.access.origin):
        questions.ask("HEAD", "/")  # which finds the region of the bucket
    here = str(questions.access.origin)
    if begun.server != here:
        raise DestinationError(
            f"the upload of s3://{questions.access.bucket}{begun.name} was begun at {begun.server}, not at "
            f"{here}; give --endpoint-url, --region or --profile as for the copy"
        )
    reply, content, url = questions.ask("DELETE", begun.name, {"uploadId": begun.upload_id})
    if not is_success(reply) and reply.status not in MISSING:
        raise questions.refused(reply, content, url, "abort an upload to")


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A part as a server lists it; `crc32`: in hex, None where none is told."""

    size_bytes: int
    etag: str
    crc32: str | None


@dataclass(frozen=True, slots=True)
class StoredParts:
    """What a server tells of an upload: its parts by their numbers."""

    parts: dict[int, ListedPart]
    has_crc32: bool  # the server keeps that of the whole object


def parts_stored(questions: S3Questions, begun: BegunUpload) -> StoredParts | None:
    """Return the parts that are stored; None where there is no such upload."""
    found: dict[int, ListedPart] = {}
    marker = 0
    while True:
        query: Query = {"uploadId": begun.upload_id, "part-number-marker": marker}
        reply, content, url = questions.ask("GET", begun.name, query)
        if reply.status in MISSING or S3Error(content).code == NO_UPLOAD:
            return None
        if not is_success(reply):
            raise questions.refused(reply, content, url, "list the parts of an upload to")
        page = questions.read(reply, content, url, "list the parts of an upload to")
        for part in page.named("Part"):
            number, size = read_size(part.get("PartNumber", "")), read_size(part.get("Size", ""))
            if number and size is not None:
                crc32 = crc32_hex(part.get("ChecksumCRC32", ""))
                found[number] = ListedPart(size, part.get("ETag", ""), crc32)
        if page.fields.get("IsTruncated", "").strip() != "true":
            algorithm = page.fields.get("ChecksumAlgorithm", "")
            # Some do not list the kind: none goes on with an upload that was begun with another one.
            kind = page.fields.get("ChecksumType", "") or ("FULL_OBJECT" if algorithm else "")
            return StoredParts(found, is_whole_crc32(algorithm, kind))
        before, marker = marker, read_size(page.fields.get("NextPartNumberMarker", "")) or 0
        if marker <= before:
            raise ConnectionLost(f"{url.origin} does not say how a list of parts goes on")


def complete(questions: S3Questions, ready: ReadyUpload, note: OnNote, *, is_as_listed: bool = False) -> None:
    """Make the object appear, and see that it is what was sent; raises what keeps it from that.

    `is_as_listed`: the ETags of parts are those that the server has listed.
    """
    had_condition = questions.access.takes_conditions
    begun, parts = ready.begun, ready.parts
    crc32 = crc32_text(whole_crc32(parts))
    headers = {"x-amz-checksum-crc32": crc32, "x-amz-checksum-type": "FULL_OBJECT"} if ready.has_crc32 else {}
    uploads = questions.access.uploads
    before = uploads.before(begun.upload_id)  # None too at the first attempt, so that nothing there is ours
    if not (ready.has_crc32 or _have_md5s(ready)) and before is None:
        uploads.had_before(begun.upload_id, _what_is_there(questions.ask("HEAD", begun.name)[0]))
    if questions.access.looks_before and _is_there(questions, ready, before, note):
        return
    patience_s = questions.access.options.timeout_s + ready.size_bytes * 8 / STORED_BPS
    with questions.dialogue.patient(patience_s):  # some servers put the parts together first
        reply, content, url = questions.ask(
            "POST", begun.name, {"uploadId": begun.upload_id}, headers, _body(ready)
        )
    is_gone = reply.status in MISSING or S3Error(content).code == NO_UPLOAD
    if is_gone and _is_completed(questions, ready, uploads.before(begun.upload_id), note):
        return  # an answer before this one was lost
    expected = composite_etag(parts)
    if not is_success(reply):
        error = questions.refused(reply, content, url, "store")
        if isinstance(error, IsThere) and _is_completed(questions, ready, before, note):
            return
        if questions.access.is_to_ask_without(error, had_condition=had_condition):
            complete(questions, ready, note, is_as_listed=is_as_listed)  # having looked
            return
        is_by_etag = S3Error(content).code == _INVALID_PART and not is_as_listed
        if is_by_etag and (listed := _listed(questions, ready)):
            complete(questions, listed, note, is_as_listed=True)
            return
        raise error
    told = questions.read(reply, content, url, "store").fields
    etag = told.get("ETag", "").strip().strip('"')
    told_crc32 = crc32_hex(told.get("ChecksumCRC32", ""))
    where = f"s3://{questions.access.bucket}{begun.name}"
    if not (etag or told_crc32):  # as what stands between us may say: nothing is known to be stored
        raise ConnectionLost(f"{url}: the server does not say what it has stored")
    if ready.has_crc32 and told_crc32:
        if told_crc32 != crc32_hex(crc32):
            raise IntegrityError(f"{where} was stored with another CRC-32 than what was sent; copy it again")
    elif is_composite(etag):
        if _have_md5s(ready) and etag.lower() != expected:
            raise IntegrityError(f"{where} was stored with another MD5 than what was sent; copy it again")
    else:
        note(NO_SUM, Severity.WARNING)


def _listed(questions: S3Questions, ready: ReadyUpload) -> ReadyUpload | None:
    """Return an upload with the ETags that the server lists; None where it has other parts than were sent.

    A part that two workers have sent may have the ETag of either, which differ where objects are encrypted.
    """
    stored = parts_stored(questions, ready.begun)
    parts = []
    for part in ready.parts:
        there = stored.parts.get(part.number) if stored else None
        if there is None or there.size_bytes != part.size_bytes:
            return None
        if there.crc32 and part.md5 and there.crc32 != f"{part.crc32:08x}":
            return None
        parts.append(replace(part, etag=there.etag))
    return replace(ready, parts=tuple(parts))


def _have_md5s(ready: ReadyUpload) -> bool:
    """Tell whether the ETags of parts are MD5s, so that the one of the object is of these."""
    return all(part.etag.strip('"').lower() == part.md5.hex() for part in ready.parts)


def _is_there(questions: S3Questions, ready: ReadyUpload, before: str | None, note: OnNote) -> bool:
    """Tell whether an upload was completed by an attempt before; see _is_completed.

    Raises IsThere for another object, which is to stay.
    """
    reply, _, url = questions.ask("HEAD", ready.begun.name)
    if not is_success(reply):
        return False
    if not _is_completed(questions, ready, before, note):
        raise IsThere(str(url))
    return True


def _is_completed(questions: S3Questions, ready: ReadyUpload, before: str | None, note: OnNote) -> bool:
    """Tell whether an object is what an upload was to make, by an attempt whose answer was lost.

    By its size and a checksum; where the server tells none, it has to be another one than what was there
    `before` the first attempt (None: not known).
    """
    reply, _, _ = questions.ask("HEAD", ready.begun.name, headers=TELL_SUMS)
    if not is_success(reply) or reply.told_bytes != ready.size_bytes:
        return False
    expected = composite_etag(ready.parts)
    if expected and reply.header("ETag").strip('"').lower() == expected:
        return True
    if ready.md5 and md5_of(reply) == ready.md5:  # by an attempt before, in one piece: the parts are left
        with contextlib.suppress(MpxError):
            abort(questions, ready.begun)
        return True
    crc32 = crc32_of(reply)
    if crc32 is not None and all(part.md5 for part in ready.parts):  # else our bytes are not known
        return crc32 == f"{whole_crc32(ready.parts):08x}"
    if before in (None, _what_is_there(reply)):
        return False
    note(NO_SUM, Severity.WARNING)
    return True


def _what_is_there(reply: HttpReply) -> str:
    """Return what tells an object from the one that comes after it; empty where there is none."""
    return f"{reply.header('ETag')} {reply.header('Last-Modified')}" if is_success(reply) else ""


def _body(ready: ReadyUpload) -> bytes:
    parts = (
        f"<Part><PartNumber>{part.number}</PartNumber><ETag>{escape(part.etag)}</ETag>"
        + (f"<ChecksumCRC32>{crc32_text(part.crc32)}</ChecksumCRC32>" if ready.has_crc32 else "")
        + "</Part>"
        for part in ready.parts
    )
    name_space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return (
        f'<CompleteMultipartUpload xmlns="{name_space}">{"".join(parts)}</CompleteMultipartUpload>'.encode()
    )
