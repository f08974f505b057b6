"""Whether what a record says of a partial file at a web server is there still: some bytes are read back.

No server computes checksums of parts over HTTP. The record holds what the server has answered for; samples
show that this is the same file, and that it has data there in place of a hole.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.url import WebUrl
from mpx.engine.ranges import Range

SAMPLE_BYTES, MOST_SAMPLES = 512, 32
_PARTIAL = 206


def samples_of(arrived: Iterable[Range]) -> list[Range]:
    """Return some short ranges of those that have arrived: the end of each, and others in equal distances."""
    ranges = list(arrived)
    step = max(SAMPLE_BYTES, sum(end - start for start, end in ranges) // MOST_SAMPLES)
    lasts = [(start, last) for start, end in ranges for last in range(end, start, -step)]
    thinned = lasts[:: len(lasts) // (2 * MOST_SAMPLES) + 1]
    return [(max(start, last - SAMPLE_BYTES), last) for start, last in thinned]


def are_stored(
    access: WebAccess, url: WebUrl, fd: int, samples: Sequence[Range], stop: Callable[[], bool]
) -> bool:
    """Tell whether a server has these ranges as they are in an open file; raises ConnectionLost and such."""
    requests = [
        access.request("GET", url, {"Range": f"bytes={start}-{end - 1}", "Cache-Control": "no-cache"})
        for start, end in samples
    ]
    with contextlib.closing(WebDialogue(access, stop, follows=False)) as dialogue:
        answers = list(dialogue.ask_each(requests))
    return all(
        answer is not None and answer[0].status == _PARTIAL and answer[1] == os.pread(fd, end - start, start)
        for answer, (start, end) in zip(answers, samples, strict=True)
    )
