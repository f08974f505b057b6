"""Whether what a record says of a partial file at a web server is there still: some bytes are read back.

No server computes checksums of parts over HTTP. The record holds what the server has answered for; samples
show that this is the same file, and that it has data there in place of a hole.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from mpx.endpoints.web.dialogue import DRAINED_BYTES, WebDialogue
from mpx.endpoints.web.refusals import MISSING, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.ranges import Range

SAMPLE_BYTES, MOST_SAMPLES = 512, 32
FEW_SAMPLES = 4  # that are right do, where a server is too busy to show more
_PARTIAL = 206
_NOTHING_THERE = (*MISSING, 416)


def samples_of(arrived: Iterable[Range], apart_bytes: int = SAMPLE_BYTES) -> list[Range]:
    """Return some short ranges of those that have arrived: the end of each, and others in equal distances.

    These are so far apart at least.
    """
    ranges = list(arrived)
    step = max(apart_bytes, sum(end - start for start, end in ranges) // MOST_SAMPLES)
    lasts = [(start, last) for start, end in ranges for last in range(end, start, -step)]
    thinned = lasts[:: len(lasts) // (2 * MOST_SAMPLES) + 1]
    return [(max(start, last - SAMPLE_BYTES), last) for start, last in thinned]


def are_stored(dialogue: WebDialogue, url: WebUrl, fd: int, samples: Sequence[Range]) -> bool | None:
    """Tell whether a server has these ranges as they are in an open file; None where it shows no parts of it.

    Raises ConnectionLost (ServerBusy) and such where it does not tell for now: that is no reason to send
    all of a file once more. A server that admits so many requests a second only may answer the first few.
    """
    right, trouble = 0, None
    asked = [{"Range": f"bytes={start}-{end - 1}", "Cache-Control": "no-cache"} for start, end in samples]
    requests = [dialogue.access.request("GET", url, headers) for headers in asked]
    answers = list(dialogue.ask_each(requests))
    for answer, headers, (start, end) in zip(answers, asked, samples, strict=True):
        reply, content = answer or _asked_alone(dialogue, url, headers)
        if reply.status == _PARTIAL:
            if content != os.pread(fd, end - start, start):
                return False
            right += 1
            continue
        if reply.status in _NOTHING_THERE:
            return False
        error = None if is_success(reply) else dialogue.refused(reply, url, "read")
        if error is None or not error.may_retry:
            return None
        trouble = trouble or error
    if trouble is not None and right < FEW_SAMPLES:
        raise trouble
    return True


def _asked_alone(dialogue: WebDialogue, url: WebUrl, headers: Mapping[str, str]) -> tuple[HttpReply, bytes]:
    with dialogue.ask("GET", url, headers) as (reply, _):
        return reply, reply.read(DRAINED_BYTES)
