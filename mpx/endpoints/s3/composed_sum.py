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
    numbers = sorted({1, min(2, count), count})
    urls = [questions.access.asking(name, {"partNumber": number}) for number in numbers]
    replies = questions.heads_of(urls)
    sizes = [
        _size_of_part(reply or questions.ask("HEAD", name, {"partNumber": number})[0], count)
        for number, reply in zip(numbers, replies, strict=True)
    ]
    part_bytes = sizes[0]
    if not part_bytes or -(-size_bytes // part_bytes) != count:
        return None
    last_bytes = size_bytes - (count - 1) * part_bytes
    expected = [last_bytes if number == count else part_bytes for number in numbers]
    return ComposedMd5(digits, part_bytes) if sizes == expected else None


def _size_of_part(reply: HttpReply, count: int) -> int | None:
    """Return the size of a part; None where the server does not tell, or tells of another number of parts."""
    told = reply.header("x-amz-mp-parts-count")
    is_part = reply.status == _PARTIAL or bool(told) or count == 1
    return reply.told_bytes if is_success(reply) and is_part and told in (str(count), "") else None
