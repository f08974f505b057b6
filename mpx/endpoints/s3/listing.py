"""Listing a folder of a bucket: keys that begin alike, page by page (ListObjectsV2)."""

from collections.abc import Iterator

from mpx.endpoints.s3.answer import S3Answer
from mpx.endpoints.s3.keys import child_of_key, decoded_key, prefix_of
from mpx.endpoints.s3.questions import Query, S3Questions
from mpx.endpoints.web.dates import iso_date
from mpx.endpoints.web.names import HrefError
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.whole_number import read_size
from mpx.errors import ConnectionLost, MpxError, PartialFailure, SourceError
from mpx.text import shown

FOLDER = FileInfo(Kind.FOLDER, 0)


def has_any(questions: S3Questions, name: str) -> bool:
    """Tell whether there is a folder: an object whose key begins with the name and a slash."""
    prefix = prefix_of(name)
    query: Query = {"list-type": 2, "prefix": prefix, "max-keys": 1, "encoding-type": "url"}
    answer = questions.answer("GET", "list", "/", query)
    return bool(answer.records) or not prefix  # a bucket is there, whether or not it has anything


def children(questions: S3Questions, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
    """Yield what is in a folder; see Endpoint.entries. Where it is to be written, any is there, and empty."""
    prefix, token = prefix_of(name), ""
    while True:
        query: dict[str, str | int | None] = {
            "list-type": 2,
            "prefix": prefix,
            "delimiter": "/",
            "encoding-type": "url",
        }
        if token:
            query["continuation-token"] = token
        page = questions.answer("GET", "list", "/", query)
        if questions.kind is SourceError and not (token or page.records) and prefix:
            where = f"s3://{questions.access.bucket}/{prefix}"
            raise SourceError(f"{shown(where)} does not exist: no key begins with that")
        yield from _entries(page, prefix, questions.access.bucket)
        if page.fields.get("IsTruncated", "").strip() != "true":
            return
        before, token = token, page.fields.get("NextContinuationToken", "")
        if not token or token == before:
            raise ConnectionLost(f"{questions.access.origin} does not say how a listing goes on")


def _entries(page: S3Answer, prefix: str, bucket: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
    is_encoded = page.fields.get("EncodingType", "").strip() == "url"
    for kind, fields in page.records:
        if kind not in ("Contents", "CommonPrefixes"):
            continue
        text = fields.get("Key" if kind == "Contents" else "Prefix", "")
        key = decoded_key(text) if is_encoded else text
        size_bytes = read_size(fields.get("Size", "").strip())
        try:
            child = child_of_key(key, prefix)
            if child is None:
                if size_bytes:  # of an object that stands for the folder nothing is lost if it is empty
                    raise HrefError(f"{key!r}, an object with the name of this folder")
                continue
            if kind == "Contents" and key.endswith("/"):
                raise HrefError(f"{key!r}, an object whose name ends with a slash")
        except HrefError as error:
            folder = f"s3://{bucket}/{prefix}"
            yield (
                "",
                PartialFailure(f"{folder}: the server lists {error}, which is not a file in this folder"),
            )
            continue
        yield child, FOLDER if kind == "CommonPrefixes" else info_of(fields, size_bytes)


def info_of(fields: dict[str, str], size_bytes: int | None) -> FileInfo:
    """Return what a listing tells of an object."""
    modified_s = iso_date(fields.get("LastModified", ""))
    return FileInfo(Kind.FILE, size_bytes, modified_s, tag=fields.get("ETag", ""))
