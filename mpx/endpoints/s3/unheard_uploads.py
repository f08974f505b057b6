"""Uploads in parts that have begun at a server without anybody hearing of it: they are found, and aborted.

Such an upload has no parts, and stays. It is looked for before another one of its key is completed, and
aborted where it is surely ours: of that key, begun by whoever has begun ours (as far as the server tells),
just when we asked, without any part even now, and of such there are no more than we asked for. Another
writer of the same key has stored a part by then.
"""

import time

from mpx.endpoints.s3.asked_uploads import AskedUpload
from mpx.endpoints.s3.completion import abort, parts_stored
from mpx.endpoints.s3.keys import decoded_key
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.uploads import BegunUpload
from mpx.endpoints.web.dates import http_date, iso_date
from mpx.endpoints.web.refusals import is_success
from mpx.errors import Interrupted, MpxError
from mpx.report import OnNote, Severity
from mpx.text import shown

ABORTED = "an upload in parts to {}, begun by a request whose answer was lost, is aborted"
NOT_ABORTED = (
    "uploads in parts to {} whose beginning was asked for and not answered may stay at the server until a "
    "rule of the bucket removes them: {}"
)
_MOST_SHOWN = 5
_APART_S = 2.0  # what clocks of one server may differ, and what is cut off their times


def abort_unheard(questions: S3Questions, partial: str, own: BegunUpload, note: OnNote) -> None:
    """Abort what an earlier request for `own` has begun unheard; `own` is still open.

    Best effort: what keeps us from it becomes a note. Raises Interrupted.
    """
    asked = questions.access.asked
    lost = [each for each in asked.unanswered(partial) if each.server == own.server]
    if not lost:
        return
    where = shown(f"s3://{questions.access.bucket}{own.name}")
    try:
        found = _found(questions, own, lost)
        if len(found) > len(lost):
            names = ", ".join(shown(each.upload_id) for each in found[:_MOST_SHOWN])
            note(NOT_ABORTED.format(where, f"there are more than were asked for: {names}"), Severity.WARNING)
            found = []
        for each in found:
            abort(questions, each)
            note(ABORTED.format(where))
    except Interrupted:
        raise
    except MpxError as error:  # the upload that has all parts is worth more: it is completed all the same
        note(NOT_ABORTED.format(where, error), Severity.WARNING)
    asked.settled(partial)


def _found(questions: S3Questions, own: BegunUpload, lost: list[AskedUpload]) -> list[BegunUpload]:
    """Return the uploads without parts that have begun when these were asked for, by who has begun `own`."""
    what = "list the uploads to"
    key = own.name[1:]
    query = {"uploads": None, "prefix": key, "encoding-type": "url"}
    reply, content, url = questions.ask("GET", "/", query)
    if not is_success(reply):
        raise questions.refused(reply, content, url, what)
    page = questions.read(reply, content, url, what)
    is_encoded = page.fields.get("EncodingType", "").strip() == "url"
    listed = {
        each["UploadId"]: each
        for each in page.named("Upload")
        if "UploadId" in each and _decoded(each.get("Key", ""), is_encoded=is_encoded) == key
    }
    ours = listed.pop(own.upload_id, None)
    if ours is None:
        return []
    there_s = http_date(reply.header("Date"))
    ahead_s = 0.0 if there_s is None else there_s - time.time()  # the server's clock
    found = []
    for upload_id, each in listed.items():
        begun_s = iso_date(each.get("Initiated", ""))
        is_then = begun_s is not None and any(
            asked.since_s - _APART_S <= begun_s - ahead_s <= asked.until_s + _APART_S for asked in lost
        )
        if is_then and each.get("Initiator.ID") == ours.get("Initiator.ID"):
            upload = BegunUpload(own.name, upload_id, own.part_bytes, own.server)
            stored = parts_stored(questions, upload)
            if stored is not None and not stored.parts:
                found.append(upload)
    return found


def _decoded(key: str, *, is_encoded: bool) -> str:
    return decoded_key(key) if is_encoded else key
