"""Comparing the bytes of files at both ends by checksum."""

import os
from collections.abc import Callable, Iterator, Sequence

from mpx import checksum
from mpx.backlog import Section
from mpx.endpoint import Endpoint, Part
from mpx.errors import IntegrityError, Interrupted, MpxError, SourceError
from mpx.local import local_error
from mpx.move import Move


def compare(
    sections: Sequence[Section],
    far: Endpoint,
    algorithm: str,
    *,
    far_is_source: bool,
    stop: Callable[[], bool],
) -> Iterator[tuple[Section, bool | MpxError]]:
    """Yield for each section whether both ends have the same bytes, or why that cannot be known.

    Raises Interrupted when stopped, and what the far endpoint raises or says that may be tried again.
    """
    names = [s.move.source if far_is_source else s.move.partial for s in sections]
    parts = [
        Part(name, s.start, s.end, None if far_is_source else s.move.written)
        for name, s in zip(names, sections, strict=True)
    ]
    for section, far_sum in zip(sections, far.checksums(algorithm, parts, stop), strict=True):
        near_sum = _near_sum(section, algorithm, far_is_source=far_is_source, stop=stop)
        if stop():
            raise Interrupted("stopped")
        error = next((told for told in (near_sum, far_sum) if isinstance(told, Exception)), None)
        if error is None:
            yield section, far_sum == near_sum
        elif isinstance(error, MpxError) and error.may_retry:
            raise error
        else:
            yield section, error if isinstance(error, MpxError) else MpxError(str(error))


def _near_sum(
    section: Section, algorithm: str, *, far_is_source: bool, stop: Callable[[], bool]
) -> str | MpxError:
    move, start, end = section.move, section.start, section.end
    name = move.partial if far_is_source else move.source
    if move.read_once:  # opening it once more would take a fifo from its next reader
        return _sum_read_once(move, algorithm, start, end)
    try:
        if far_is_source:
            fd = move.open(name, os.O_RDWR)
        else:
            fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe has no end
    except FileNotFoundError:
        return IntegrityError(f"{name} is gone; copy the same SRC to the same DST again")
    except OSError as error:
        return local_error(error, name, writing=far_is_source)

    def read(first: int, last: int, value: int) -> int:
        """Continue a sum over bytes that did not pass through our hands."""
        more = checksum.adler32_of_file(fd, first, last, 1, stop)
        return checksum.adler32_combine(value, more, last - first)

    try:
        if algorithm == "adler32":
            return f"{move.section_sum(start, end, read):08x}"
        return checksum.of_file(algorithm, fd, start, end, stop)
    except OSError as error:
        return local_error(error, name, writing=far_is_source)
    finally:
        if far_is_source:
            move.close()
        else:
            os.close(fd)


def _sum_read_once(move: Move, algorithm: str, start: int, end: int) -> str | MpxError:
    """Return what a source that cannot be read again sums up to, taken as its bytes passed by."""
    error = SourceError(f"{move.source} is a pipe and cannot be read a second time to be verified")

    def never(_first: int, _last: int, _value: int) -> int:
        raise error

    if algorithm != "adler32":
        return (move.read_once and move.read_once.sum(algorithm, start, end)) or error
    try:
        return f"{move.section_sum(start, end, never):08x}"
    except SourceError as missing:
        return missing
