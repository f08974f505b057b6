"""Checksums of objects as answers tell them: ETags that are an MD5, and CRC-32 of whole objects. Pure."""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence

from mpx.endpoints.s3.uploads import StoredPart
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.checksum import crc32_combine

TELL_SUMS = {"x-amz-checksum-mode": "ENABLED"}  # in a question about an object
_MD5 = re.compile(r'"?([0-9a-fA-F]{32})"?')
_COMPOSITE = re.compile(r'"?([0-9a-fA-F]{32}-[0-9]{1,5})"?')
_PLAIN = ("", "AES256")  # encryption with which an ETag is an MD5 all the same


def md5_of(reply: HttpReply) -> str | None:
    """Return the MD5 that the ETag of an answer is; None where it is another thing."""
    found = _MD5.fullmatch(reply.header("ETag"))
    return found[1].lower() if found and _is_plain(reply) else None


def _is_plain(reply: HttpReply) -> bool:
    """Tell whether ETags are MD5s of what was sent, as it is not encrypted with a key of others."""
    by_customer = reply.header("x-amz-server-side-encryption-customer-algorithm")
    return reply.header("x-amz-server-side-encryption") in _PLAIN and not by_customer


def crc32_of(reply: HttpReply) -> str | None:
    """Return the CRC-32 of a whole object or part, in hex; None where none is told."""
    if reply.header("x-amz-checksum-type") == "COMPOSITE":
        return None
    return crc32_hex(reply.header("x-amz-checksum-crc32"))


def is_whole_crc32(algorithm: str, kind: str) -> bool:
    """Tell whether the checksum that a server keeps of an upload in parts is the CRC-32 of all of it."""
    return kind.strip() == "FULL_OBJECT" and algorithm.strip().upper() in ("CRC32", "")


def crc32_hex(text: str) -> str | None:
    """Read a CRC-32 as S3 writes it, in base64; None for what is none (a composite one ends with -N)."""
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw.hex() if len(raw) == 4 else None


def crc32_text(value: int) -> str:
    """Write a CRC-32 as S3 does."""
    return base64.b64encode(value.to_bytes(4, "big")).decode("ascii")


def stored_sum(reply: HttpReply, algorithm: str) -> str | None:
    """Return a checksum that the answer to HEAD tells of an object."""
    return md5_of(reply) if algorithm == "md5" else crc32_of(reply)


def composed_of(reply: HttpReply) -> tuple[str, int] | None:
    """Return the MD5 of MD5s that the ETag of an answer is, and of how many parts; None for another thing."""
    etag = reply.header("ETag").strip('"')
    if not is_composite(etag) or not _is_plain(reply):
        return None
    digits, _, count = etag.lower().partition("-")
    return digits, int(count)


def is_composite(etag: str) -> bool:
    """Tell whether an ETag looks like one of an object that was stored in parts."""
    return _COMPOSITE.fullmatch(etag.strip()) is not None


def composite_etag(parts: Sequence[StoredPart]) -> str:
    """Return the ETag of an object that was stored in parts: the MD5 of their ETags, and how many.

    Empty where they are no MD5s.
    """
    found = [_MD5.fullmatch(part.etag) for part in parts]
    digest = hashlib.md5(usedforsecurity=False)
    for each in found:
        if each is None:
            return ""
        digest.update(bytes.fromhex(each[1]))
    return f"{digest.hexdigest()}-{len(parts)}"


def whole_crc32(parts: Sequence[StoredPart]) -> int:
    """Return the CRC-32 of all parts put together."""
    value = 0
    for part in parts:
        value = crc32_combine(value, part.crc32, part.size_bytes)
    return value
