"""Comparing what a destination has stored with what passed through this host, where nothing else can be."""

from collections.abc import Callable, Iterator, Sequence

from mpx.choices import OF_PASSED
from mpx.engine import checksum
from mpx.engine.endpoint import Endpoint, Part
from mpx.engine.passed_sums import PassedSums
from mpx.engine.running_checksum import Unread
from mpx.errors import MpxError, NoChecksum
from mpx.transfer.verify_queue import Section


def compare_passed(
    sections: Sequence[Section], destination: Endpoint, stop: Callable[[], bool]
) -> Iterator[tuple[Section, str, bool | MpxError]]:
    """Yield each section of which all has passed in this run, by what, and whether the same is stored.

    Or why that is not known. Those are left out of which the destination computes nothing. Raises what it
    raises or says that may be tried again.
    """
    by_algorithm: dict[str, list[tuple[Section, str]]] = {}
    for section in sections:
        sums = section.file.sums
        if isinstance(sums, PassedSums) and (digest := _passed(sums, section, stop)):
            by_algorithm.setdefault(sums.by, []).append((section, digest))
    for algorithm, some in by_algorithm.items():
        parts = [Part(each.file.partial, each.start, each.end, is_whole=each.is_whole) for each, _ in some]
        for (section, ours), told in zip(some, destination.checksums(algorithm, parts, stop), strict=True):
            if isinstance(told, NoChecksum) or checksum.part_bytes_of(told):
                continue
            if isinstance(told, MpxError) and told.may_retry:
                raise told
            if isinstance(told, Exception):
                yield section, algorithm, told if isinstance(told, MpxError) else MpxError(str(told))
                continue
            yield section, f"{algorithm}{OF_PASSED}", checksum.is_same(told, ours)


def _passed(sums: PassedSums, section: Section, stop: Callable[[], bool]) -> str:
    """Return the checksum of what passed; empty where some did not."""
    try:
        return sums.hex(section.start, section.end, None, stop)
    except Unread:
        return ""
