"""Resume verification: by checksum, what of an interrupted file has arrived that no record shows."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise

from mpx.engine import checksum
from mpx.engine.capabilities import Question
from mpx.engine.checksum_choice import FOR_LONG
from mpx.engine.endpoint import Endpoint, Part
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.holes import stretches
from mpx.engine.ranges import Range
from mpx.files.local_error import local_error
from mpx.files.partial_file import NotOurs
from mpx.report import OnNote, Severity
from mpx.transfer.both_servers import BothServers
from mpx.transfer.planner import STARTING_OVER
from mpx.units import format_size

SMALLEST_PIECE = 64 * 1024
LARGEST_PIECE = 64 * 1024 * 1024
PIECES = 128
SPLIT = 8
MOST_AT_ONCE = 1024  # pieces
MOST_DIFFERING = 8 * 1024**3  # bytes that are compared and differ, beyond as many as are equal

_Sums = tuple[str | Exception, str | Exception]  # of one piece, at both ends


class ResumeVerifier:
    """Verifies partial files of one copy, for any thread, each over a session that is closed at once.

    A server may admit few sessions, and the caller has just lost one. `forgot` is called with a file of which
    something had arrived that is not there any more.
    """

    def __init__(
        self,
        open_far: Callable[[], Endpoint],
        *,
        far_is_source: bool,
        writes_here: bool,
        forgot: Callable[[FileTransfer], None],
        note: OnNote,
        stop: Callable[[], bool],
        open_both: Callable[[], BothServers] | None = None,
    ) -> None:
        """`open_both`: opens both ends, where both are servers."""
        self._open_far, self._open_both = open_far, open_both
        self._far_is_source = far_is_source
        self._writes_here = writes_here
        self._forgot = forgot
        self._note = note
        self._stop = stop

    def __call__(self, file: FileTransfer) -> None:
        """Record as arrived what of the partial file is proven; forget everything if it is not there.

        Raises what the far endpoint raises, and SourceError or DestinationError when our side cannot be read.
        """
        near_name = file.partial if self._far_is_source else file.source
        try:
            self._prove(file)
        except OSError as error:
            raise local_error(error, near_name, writing=self._far_is_source) from None

    def _prove(self, file: FileTransfer) -> None:
        if self._open_both is None:
            with contextlib.closing(self._open_far()) as far:
                self._prove_over(file, far)
                far.let_go()
            return
        both = self._open_both()
        with contextlib.closing(both.source), contextlib.closing(both.destination) as far:
            self._prove_over(file, far, both)
            both.source.let_go()
            far.let_go()

    def _prove_over(self, file: FileTransfer, far: Endpoint, both: BothServers | None = None) -> None:
        before = file.arrived_bytes
        present = self._present_bytes(file, far)
        if present is None or present > file.size_bytes:  # gone, or a part of something else
            file.forget_arrived()
        else:
            file.forget_beyond(present)
        if file.arrived_bytes < before:
            self._forgot(file)
        sums = both.part_checksums() if both else far.find_out(Question.CHECKSUMS).part_checksums
        algorithm = next((name for name in FOR_LONG if name in sums), "")
        if present is None or present > file.size_bytes or not algorithm:
            return
        self._note_long(file, present, algorithm)
        if both is not None:
            prove_at_servers(file, both, present, self._stop, algorithm)
        elif self._far_is_source:
            with file.written.opened() as near:
                prove(file, far, file.source, near, present, self._stop, algorithm)
        else:
            with _opened(file) as near:
                prove(file, far, file.partial, near, present, self._stop, algorithm)

    def _note_long(self, file: FileTransfer, present_bytes: int, algorithm: str) -> None:
        """Add a line to the report where the comparison will take some time."""
        unknown_bytes = file.missing_within(0, present_bytes).size
        if unknown_bytes > LARGEST_PIECE:
            left = format_size(unknown_bytes)
            self._note(f"{file.final}: comparing {left} of its partial file by {algorithm}")

    def _present_bytes(self, file: FileTransfer, far: Endpoint) -> int | None:
        """Return the size of the partial file; it may have holes, but nothing beyond it arrived."""
        if self._writes_here:
            try:
                with file.written.opened() as fd:
                    return os.fstat(fd).st_size
            except FileNotFoundError:
                return None
            except NotOurs as error:
                self._note(f"{error.strerror}: {STARTING_OVER}", Severity.NOTICE)
                return None
        info = far.stat(file.partial)
        return info.size_bytes if info else None


def prove(
    file: FileTransfer,
    far: Endpoint,
    far_name: str,
    near: int,
    present_bytes: int,
    stop: Callable[[], bool],
    algorithm: str,
) -> int:
    """Compare the unknown part of the first `present_bytes` at both ends; record what is equal as arrived.

    `near` is the open file of this host. Large pieces first; those that differ are cut smaller, down to
    64 KiB (over SFTP into 64 pieces), so a few round trips do. Ends early where far more differs than is
    equal: the rest is sent again. The whole file is verified once more when it is there. Returns how many
    bytes were proven. Raises what the far endpoint raises.
    """
    unknown = file.missing_within(0, min(present_bytes, file.size_bytes))
    is_partial = far_name == file.source  # what is near; it has not arrived where it has holes
    ranges = list(_with_data(near, unknown) if is_partial else unknown)
    written = None if is_partial else file.written

    def sums(some: Sequence[Range]) -> Iterator[_Sums]:
        parts = [Part(far_name, start, end, written) for start, end in some]
        for (start, end), far_sum in zip(some, far.checksums(algorithm, parts, stop), strict=True):
            is_refused = isinstance(far_sum, Exception)
            yield far_sum, far_sum if is_refused else checksum.of_file(algorithm, near, start, end, stop)

    return _proven(file, ranges, unknown.size, sums, stop, far.capabilities.most_compared_parts)


def prove_at_servers(
    file: FileTransfer,
    both: BothServers,
    present_bytes: int,
    stop: Callable[[], bool],
    algorithm: str,
) -> int:
    """As `prove`, where the source is at a server as well."""
    unknown = file.missing_within(0, min(present_bytes, file.size_bytes))

    def sums(some: Sequence[Range]) -> Iterator[_Sums]:
        near_parts = [Part(file.source, start, end) for start, end in some]
        far_parts = [Part(file.partial, start, end) for start, end in some]
        yield from zip(*both.checksums(algorithm, near_parts, far_parts, stop), strict=True)

    return _proven(file, list(unknown), unknown.size, sums, stop, both.most_compared_parts)


def _proven(
    file: FileTransfer,
    ranges: list[Range],
    unknown_bytes: int,
    sums: Callable[[Sequence[Range]], Iterator[_Sums]],
    stop: Callable[[], bool],
    most_parts: int,
) -> int:
    """Record as arrived what of some ranges has the same `sums` at both ends; return how many bytes."""
    smallest = max(SMALLEST_PIECE, unknown_bytes // most_parts)
    size = min(max(unknown_bytes // PIECES, smallest), LARGEST_PIECE)
    proven, differing = 0, 0
    while ranges and not stop():
        pieces = _cut(ranges, size)
        ranges = []
        while differing <= MOST_DIFFERING + proven and not stop():
            if not (some := list(islice(pieces, min(MOST_AT_ONCE, MOST_DIFFERING // size)))):
                break
            for (start, end), (one, other) in zip(some, sums(some), strict=True):
                if isinstance(one, Exception) or isinstance(other, Exception):
                    continue  # it was refused; smaller parts would be too
                if checksum.is_same(one, other):
                    proven += file.landed(start, end)
                else:
                    differing += end - start
                    ranges.append((start, end))
        if size <= smallest:
            break
        size = max(size // SPLIT, smallest)
    return proven


def _with_data(fd: int, ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield what of these ranges of an open file is no hole."""
    for start, end in ranges:
        yield from ((first, last) for first, last, is_hole in stretches(fd, start, end) if not is_hole)


@contextlib.contextmanager
def _opened(file: FileTransfer) -> Iterator[int]:
    fd = file.open_source()
    try:
        yield fd
    finally:
        os.close(fd)


def _cut(ranges: Iterable[Range], size: int) -> Iterator[Range]:
    """Cut ranges at multiples of `size`."""
    for start, end in ranges:
        yield from pairwise([start, *range((start // size + 1) * size, end, size), end])
