"""The MD5 of an object that was stored in parts, where the server tells of what size these are."""

from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.s3.stored_sums import composed_of
from mpx.endpoints.web.refusals import is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.checksum import ComposedMd5

_PARTIAL = 206


def composed_sum(questions: S3Questions, name: str, head: HttpReply) -> ComposedMd5 | None:
    """Return it, given the answer to HEAD; None where that shows none, or parts are not known to be alike.

    The first two parts and the last are asked about: few programs store parts of several sizes.
    """
    composed, size_bytes = composed_of(head), head.told_bytes
    if composed is None or not size_bytes:
        return None
    digits, count = composed
    part_bytes = _size_of_part(questions, name, 1, count)
    if not part_bytes or -(-size_bytes // part_bytes) != count:
        return None
    if count > 2 and _size_of_part(questions, name, 2, count) != part_bytes:
        return None
    if count > 1 and _size_of_part(questions, name, count, count) != size_bytes - (count - 1) * part_bytes:
        return None
    return ComposedMd5(digits, part_bytes)


def _size_of_part(questions: S3Questions, name: str, number: int, count: int) -> int | None:
    """Return the size of a part; None where the server does not tell, or tells of another number of parts."""
    reply, _, _ = questions.ask("HEAD", name, {"partNumber": number})
    told = reply.header("x-amz-mp-parts-count")
    is_part = reply.status == _PARTIAL or bool(told) or count == 1
    return reply.told_bytes if is_success(reply) and is_part and told in (str(count), "") else None
