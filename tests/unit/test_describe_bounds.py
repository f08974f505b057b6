"""A server that refuses each missing name in words that it never used before is not all remembered."""

import tracemalloc
from collections.abc import Iterator, Sequence

from mpx.endpoints.ftp.describe import MOST_WORDS, OtherQuestions
from mpx.endpoints.ftp.wire import Reply
from mpx.engine.endpoint import FileInfo
from mpx.errors import MpxError

WORDS_BYTES = 20_000
NAMES = 10 * MOST_WORDS


class Wordy:
    """A session with a server that finds nothing, and says so differently each time."""

    home = "/"

    def __init__(self) -> None:
        self._said = 0

    def pipeline(self, commands: Sequence[bytes]) -> list[Reply]:
        return [self._refusal() for _ in commands]

    def _refusal(self) -> Reply:
        self._said += 1
        return Reply(550, (f"{self._said} " + "w" * WORDS_BYTES,))


def _nothing(_: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
    yield from ()


def test_new_words_for_each_missing_name() -> None:
    session = Wordy()
    questions = OtherQuestions(session, _nothing, lambda reply, *_: MpxError(reply.text))  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        for number in range(NAMES):
            assert questions.ask([f"/d/{number}"], [None]) == [None]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 3 * (MOST_WORDS + 2) * WORDS_BYTES  # of each name the words of SIZE and of MDTM
