"""What a server answers while it copies from or to another one: markers, and a last line that decides. Pure.

HTTP-TPC, as WLCG has it: 201 or 202 says only that it was begun. Markers tell how far each of several
stripes has come, and the last line is `success: ...` or `failure: ...`. What comes from a server is bounded.
"""

import re

from mpx.engine.whole_number import read_size

MOST_STRIPES = 1024  # those beyond are not counted
LONGEST_LINE = 4096  # bytes; of a longer line the rest is left out
_BEGIN, _END = "perf marker", "end"
_INDEX, _MOVED = "stripe index", "stripe bytes transferred"
_SUCCESS = re.compile(r"success\b", re.IGNORECASE)
_FAILURE = re.compile(r"failure\s*:\s*", re.IGNORECASE)
# How servers say what the other one has answered: `status code 403`, `rejected GET: 403`, `HTTP/1.1 403`
_STATUS = re.compile(
    r"(?:status(?: code)?|code|response|rejected [A-Z]+|HTTP/[12](?:\.[01])?)[ :=]{1,3}([45][0-9]{2})\b",
    re.IGNORECASE,
)


class TpcAnswer:
    """The body of one answer, in pieces as they come."""

    def __init__(self) -> None:
        self._line = bytearray()  # that has not ended yet
        self._last = ""  # line that is not blank; empty where that is one of a marker
        self._why = ""  # it failed: its last `failure:` with the lines behind that
        self._is_within = False  # a marker
        self._stripe = 0  # that the marker in hand is of
        self._moved: dict[int, int] = {}  # bytes, by stripe
        self.told_bytes = 0  # by markers: of all stripes together; never falls
        self.is_tpc = False  # something has come that no other answer has

    def feed(self, data: bytes | memoryview) -> None:
        """Take what has come."""
        begun, *others = bytes(data).split(b"\n")
        self._extend(begun)
        for each in others:
            self._end_line()
            self._extend(each)

    def close(self) -> None:
        """Take the end of the answer: its last line may have no end of its own."""
        self._end_line()

    @property
    def is_success(self) -> bool:
        """Whether the last line so far says that the file was copied."""
        return _SUCCESS.match(self._last) is not None

    @property
    def failure(self) -> str:
        """The reason of a failure as the server has written it, which may have several lines."""
        return _FAILURE.sub("", self._why or self._last, count=1)

    @property
    def failed_status(self) -> int | None:
        """The status of the other server's answer that the reason speaks of, as far as it does."""
        found = None if self.is_success else _STATUS.search(self.failure)
        return int(found[1]) if found else None

    def _extend(self, data: bytes) -> None:
        self._line += data[: LONGEST_LINE - len(self._line)]

    def _end_line(self) -> None:
        line = self._line.decode("utf-8", "replace").strip()
        self._line.clear()
        if line:
            is_last_word = bool(_SUCCESS.match(line) or _FAILURE.match(line))
            self._is_within = (self._is_within or line.lower() == _BEGIN) and not is_last_word
            self._last = "" if self._is_within else line
            self._take_reason(line)
            self.is_tpc = self.is_tpc or self._is_within or is_last_word
            self._take(line)
            self._is_within = self._is_within and line.lower() != _END

    def _take_reason(self, line: str) -> None:
        if _FAILURE.match(line):
            self._why = line
        elif self._is_within or _SUCCESS.match(line):
            self._why = ""
        elif self._why:
            self._why = f"{self._why} {line}"[:LONGEST_LINE]

    def _take(self, line: str) -> None:
        """Take a line of a marker; others tell nothing."""
        name, _, text = line.partition(":")
        name, number = name.strip().lower(), read_size(text.strip())
        if name == _BEGIN:
            self._stripe = 0
        elif name == _INDEX and number is not None:
            self._stripe = number
        elif name == _MOVED and number is not None:
            self._moved_to(number)

    def _moved_to(self, size_bytes: int) -> None:
        if self._stripe in self._moved or len(self._moved) < MOST_STRIPES:
            before = self._moved.get(self._stripe, 0)
            self._moved[self._stripe] = max(before, size_bytes)
            self.told_bytes += max(0, size_bytes - before)
