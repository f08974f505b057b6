"""Uploads in parts that have begun at a server without anybody hearing of it: they are found, and aborted.

Such an upload has no parts, and stays. It is looked for before another one of its key is completed, and
aborted where it is surely ours: of that key, begun by whom the server tells as the one who has begun ours,
just when we asked, without any part even now, and of such there are no more than we asked for. Another
writer of the same key has stored a part by then. Where the server tells nobody, or there are more, the user
is told of them, and how to abort them: an upload without parts costs a line in a list, and one of somebody
else that is aborted a copy.
"""

import shlex
import time

from mpx.endpoints.s3.asked_uploads import AskedUpload
from mpx.endpoints.s3.completion import abort, parts_stored
from mpx.endpoints.s3.keys import decoded_key
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.uploads import BegunUpload
from mpx.endpoints.web.dates import http_date, iso_date
from mpx.endpoints.web.refusals import is_success
from mpx.errors import ConnectionLost, Interrupted, MpxError
from mpx.report import OnNote, Severity
from mpx.text import shown

ABORTED = "an upload in parts to {}, begun by a request whose answer was lost, is aborted"
NOT_ABORTED = (
    "uploads in parts to {} whose beginning was asked for and not answered may stay at the server until a "
    "rule of the bucket removes them: {}"
)
PERHAPS_OURS = (
    "uploads in parts to {} that have no part may have begun by a request whose answer was lost, or be of "
    "another program ({}): {}; to abort one that is yours: {}"
)
_NOBODY_TOLD, _TOO_MANY = "the server does not tell who began them", "there are more than were asked for"
_MOST_SHOWN = 5
_MOST_PAGES = 10  # of uploads to keys that begin with ours, a thousand each
_APART_S = 2.0  # what clocks of one server may differ, and what is cut off their times
_LIST = "list the uploads to"


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
        found, is_told = _found(questions, own, lost)
        if found and (not is_told or len(found) > len(lost)):
            names = ", ".join(shown(each.upload_id) for each in found[:_MOST_SHOWN])
            why = _TOO_MANY if is_told else _NOBODY_TOLD
            note(PERHAPS_OURS.format(where, why, names, _how_to_abort(questions, found[0])), Severity.WARNING)
            found = []
        for each in found:
            abort(questions, each)
            note(ABORTED.format(where))
    except Interrupted:
        raise
    except MpxError as error:  # the upload that has all parts is worth more: it is completed all the same
        note(NOT_ABORTED.format(where, error), Severity.WARNING)
    asked.settled(partial)


def _how_to_abort(questions: S3Questions, upload: BegunUpload) -> str:
    """Return a command, which is to be read and pasted."""
    access = questions.access
    words = ["aws", "s3api", "abort-multipart-upload", "--bucket", access.bucket, "--key", upload.name[1:]]
    words += ["--upload-id", upload.upload_id]
    words += ["--endpoint-url", access.server_url] if access.server_url else []
    return shown(shlex.join(words))


def _found(
    questions: S3Questions, own: BegunUpload, lost: list[AskedUpload]
) -> tuple[list[BegunUpload], bool]:
    """Return the uploads without parts that have begun when these were asked for, by who has begun `own`.

    And whether the server tells who that is. Raises what a refusal means.
    """
    listed, ahead_s = _listed(questions, own)
    initiator = listed.pop(own.upload_id, {}).get("Initiator.ID", "").strip()
    found = []
    for upload_id, each in listed.items():
        begun_s = iso_date(each.get("Initiated", ""))
        is_then = begun_s is not None and any(
            asked.since_s - _APART_S <= begun_s - ahead_s <= asked.until_s + _APART_S for asked in lost
        )
        if is_then and (not initiator or each.get("Initiator.ID", "").strip() == initiator):
            upload = BegunUpload(own.name, upload_id, own.part_bytes, own.server)
            stored = parts_stored(questions, upload)
            if stored is not None and not stored.parts:
                found.append(upload)
    return found, bool(initiator)


def _listed(questions: S3Questions, own: BegunUpload) -> tuple[dict[str, dict[str, str]], float]:
    """Return the uploads to the key of `own` by their names, and how far ahead the server's clock is."""
    key, listed = own.name[1:], {}
    query = {"uploads": None, "prefix": key, "encoding-type": "url"}
    for _ in range(_MOST_PAGES):
        reply, content, url = questions.ask("GET", "/", query)
        if not is_success(reply):
            raise questions.refused(reply, content, url, _LIST)
        page = questions.read(reply, content, url, _LIST)
        decoded = decoded_key if page.fields.get("EncodingType", "").strip() == "url" else str
        for each in page.named("Upload"):
            if "UploadId" in each and decoded(each.get("Key", "")) == key:
                listed[each["UploadId"]] = each
        if page.fields.get("IsTruncated", "").strip() != "true":
            there_s = http_date(reply.header("Date"))
            return listed, 0.0 if there_s is None else there_s - time.time()
        after = {
            "key-marker": decoded(page.fields.get("NextKeyMarker", "")),
            "upload-id-marker": page.fields.get("NextUploadIdMarker", ""),
        }
        if not all(after.values()) or after.items() <= query.items():
            raise ConnectionLost(f"{url.origin} does not say how its list of uploads goes on")
        query |= after
    raise ConnectionLost(f"{url.origin} lists more uploads than {_MOST_PAGES} answers have")
