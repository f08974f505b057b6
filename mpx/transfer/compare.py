"""Comparing the bytes of files at both ends by checksum."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mpx.choices import NONE
from mpx.engine import checksum
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Endpoint, Part
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.running_checksum import Unread
from mpx.engine.source_change import AGAIN
from mpx.errors import IntegrityError, Interrupted, MpxError, NoChecksum, SourceError
from mpx.files.local_error import local_error
from mpx.transfer.both_servers import BothServers
from mpx.transfer.compare_passed import compare_passed
from mpx.transfer.verify_queue import Section


@dataclass(slots=True)
class _Open:
    """A section that is not compared yet, by which checksums it may be, and why not by the best."""

    section: Section
    candidates: tuple[str, ...]
    refusal: NoChecksum | None = None


def compare(
    sections: Sequence[Section],
    far: Endpoint,
    choice: ChecksumChoice,
    *,
    far_is_source: bool,
    stop: Callable[[], bool],
    both: BothServers | None = None,
) -> Iterator[tuple[Section, str, bool | MpxError]]:
    """Yield for each section by which checksum it was compared, and whether both ends have the same bytes.

    Or why that cannot be known; NoChecksum where an end computes none of it. What one checksum is
    refused of is compared by the next best, and at last with what passed here (compare_passed.py). `both`:
    the ends, where both are servers. Raises Interrupted when stopped, and what an endpoint raises or says
    that may be tried again.
    """
    passes_here = not far_is_source and both is None
    waiting = [_Open(each, _candidates(each, choice, passes_here=passes_here)) for each in sections]
    while waiting:
        by_algorithm: dict[str, list[_Open]] = {}
        for each in waiting:
            by_algorithm.setdefault(each.candidates[0] if each.candidates else NONE, []).append(each)
        waiting = []
        refused = {each.section: each.refusal for each in by_algorithm.pop(NONE, ())}
        for outcome in compare_passed(list(refused), far, stop) if both else ():
            del refused[outcome[0]]
            yield outcome
        for section, refusal in refused.items():
            yield section, NONE, refusal or _no_checksum(far, section, of_passed=both is not None)
        for algorithm, some in by_algorithm.items():
            known = [take_known(each.section, algorithm) if both is None else None for each in some]
            asked = [each for each, digest in zip(some, known, strict=True) if digest is None]
            parts = [_part(each.section, far_is_source=far_is_source) for each in asked]
            near_sums: list[str | Exception] = []
            if both is None:
                answers = iter(far.checksums(algorithm, parts, stop) if parts else ())
            else:
                sources = [_part(each.section, far_is_source=True) for each in asked]
                near_sums, far_sums = both.checksums(algorithm, sources, parts, stop)
                answers = iter(far_sums)
            for i, (each, digest) in enumerate(zip(some, known, strict=True)):
                far_sum = next(answers) if digest is None else digest
                told = (far_sum, *near_sums[i : i + 1])
                refusal = next((one for one in told if isinstance(one, NoChecksum)), None)
                if len({checksum.part_bytes_of(one) for one in told}) > 1:
                    refusal = refusal or _other_parts(each.section)
                if refusal:
                    choice.refused(algorithm)
                    each.refusal = each.refusal or refusal
                    each.candidates = each.candidates[1:]
                    waiting.append(each)
                    continue
                near_sum = (
                    near_sums[i]
                    if near_sums
                    else _near_sum(
                        each.section,
                        algorithm,
                        far_is_source=far_is_source,
                        stop=stop,
                        part_bytes=checksum.part_bytes_of(far_sum),
                    )
                )
                if stop():
                    raise Interrupted("stopped")
                is_same = _judged(algorithm, far_sum, near_sum, choice)
                each.section.file.is_unchanged = far_is_source and digest is not None and is_same is True
                yield each.section, algorithm, is_same


def _candidates(section: Section, choice: ChecksumChoice, *, passes_here: bool) -> tuple[str, ...]:
    file = section.file
    candidates = choice.candidates(file.size_bytes)
    if not passes_here or file.can_read_again:
        return candidates
    return tuple(algorithm for algorithm in candidates if algorithm == file.sums.algorithm)


def take_known(section: Section, algorithm: str) -> str | None:
    """Return what the far end has said already of a whole file, once: later its bytes may be others."""
    file = section.file
    (size_bytes, digest), file.far_digest = file.far_digest or (0, None), None
    is_it = section.is_whole and section.end == size_bytes and file.sums.algorithm == algorithm
    return digest if is_it else None


def _part(section: Section, *, far_is_source: bool) -> Part:
    file, start, end = section.file, section.start, section.end
    if far_is_source:
        return Part(file.source, start, end, is_whole=section.is_whole)
    return Part(file.partial, start, end, file.written, is_whole=section.is_whole)


def _no_checksum(far: Endpoint, section: Section, *, of_passed: bool) -> NoChecksum:
    what = section.file.source
    why = f"not all of {what} passed through this host in its order, and in this run"
    return NoChecksum(
        IntegrityError(why if of_passed else f"{far.location.host} computes no checksum of {what}")
    )


def _other_parts(section: Section) -> NoChecksum:
    return NoChecksum(
        IntegrityError(
            f"{section.file.source} was stored in parts, so that its server tells no checksum of all of it"
        )
    )


def _judged(
    algorithm: str, far_sum: str | Exception, near_sum: str | Exception, choice: ChecksumChoice
) -> bool | MpxError:
    """Return whether two sums are the same, or why that is not known; raises what may be tried again."""
    for checked in (near_sum, far_sum):
        if isinstance(checked, MpxError) and checked.may_retry:
            raise checked
        if isinstance(checked, Exception):
            return checked if isinstance(checked, MpxError) else MpxError(str(checked))
    choice.answered(algorithm)
    return checksum.is_same(str(far_sum), str(near_sum))


def _near_sum(
    section: Section, algorithm: str, *, far_is_source: bool, stop: Callable[[], bool], part_bytes: int
) -> str | MpxError:
    """Return the checksum of what passed; what did not is read, if it can be.

    `part_bytes`: of a ComposedMd5, which nothing that passed has.
    """
    file, start, end = section.file, section.start, section.end
    try:
        return _sum(file, algorithm, start, end, None, stop, part_bytes)
    except Unread:
        pass
    if far_is_source:
        return _sum_of_partial(section, algorithm, stop, part_bytes)
    name = file.source
    if not file.can_read_again:
        return NoChecksum(
            SourceError(f"{name} cannot be read a second time to compute its {algorithm} checksum")
        )
    try:
        fd = file.open_source()
    except FileNotFoundError:
        return IntegrityError(f"{name} is gone; {AGAIN}")
    except OSError as error:
        return local_error(error, name, writing=False)
    try:
        return _sum(file, algorithm, start, end, fd, stop, part_bytes)
    except OSError as error:
        return local_error(error, name, writing=False)
    finally:
        os.close(fd)


def _sum(
    file: FileTransfer,
    algorithm: str,
    start: int,
    end: int,
    fd: int | None,
    stop: Callable[[], bool],
    part_bytes: int,
) -> str:
    """Return a checksum, reading what did not pass; raises OSError, and Unread where there is no `fd`."""
    if file.sums.algorithm == algorithm and not part_bytes:
        return file.sums.hex(start, end, fd, stop)
    if fd is None:
        raise Unread
    if part_bytes:
        return checksum.composed_md5(fd, file.size_bytes, part_bytes, stop)
    return checksum.of_file(algorithm, fd, start, end, stop)


def _sum_of_partial(
    section: Section, algorithm: str, stop: Callable[[], bool], part_bytes: int
) -> str | MpxError:
    file = section.file
    try:
        fd = file.open(file.partial, os.O_RDWR)
    except FileNotFoundError:
        return IntegrityError(f"{file.partial} is gone; {AGAIN}")
    except OSError as error:
        return local_error(error, file.partial, writing=True)
    try:
        return _sum(file, algorithm, section.start, section.end, fd, stop, part_bytes)
    except OSError as error:
        return local_error(error, file.partial, writing=True)
    finally:
        file.close()
