"""The story of a copy: what was copied and how fast, each path, and what would have been faster. Pure."""

from collections.abc import Iterator, Sequence

from mpx.engine.path_set import DEFAULT_PATH
from mpx.explain.faster import faster
from mpx.explain.finding import Chapter, Finding, FindingKind, fact
from mpx.explain.outcome import outcome
from mpx.explain.path_story import path_story
from mpx.explain.record import CopyRecord
from mpx.units import counted

MOST_NOTES = 8


def tell(record: CopyRecord) -> Sequence[Chapter]:
    """Return all that the report says, in the order in which it is told; no chapter is empty."""
    chapters = [Chapter("the copy", tuple(outcome(record)))]
    if not record.dry_run:
        for path in record.paths if _has_moved(record) else ():
            chapters.append(Chapter(path_title(path), tuple(path_story(record, path))))
        chapters.append(Chapter("what would have been faster", tuple(faster(record))))
    chapters.append(Chapter("notes of the copy", tuple(_notes(record))))
    return [chapter for chapter in chapters if chapter.findings]


def _has_moved(record: CopyRecord) -> bool:
    """Tell whether data arrived, or nobody knows."""
    return not record.intervals or any(each.arrived_bytes for each in record.intervals)


def path_title(path: str) -> str:
    """Return how a path is called."""
    return "the path" if path == DEFAULT_PATH else f"path {path}"


def _notes(record: CopyRecord) -> Iterator[Finding]:
    """Yield what it told its user; what is advice stands there already."""
    notes = [note for note in record.notes if note != record.congestion_not_had]
    yield from map(fact, notes[:MOST_NOTES])
    if len(notes) > MOST_NOTES:
        yield fact(f"and {counted(len(notes) - MOST_NOTES, 'more note')} in the report")
    for name, error in record.failures[:MOST_NOTES]:
        yield Finding(FindingKind.PROBLEM, f"not copied: {error if name in error else f'{name}: {error}'}")
    if len(record.failures) > MOST_NOTES:
        yield fact(f"and {counted(len(record.failures) - MOST_NOTES, 'more failure')} in the report")
