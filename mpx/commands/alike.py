"""Failures of many files that are alike but for their names: a person reads the first few and a number."""

import posixpath
import re
from collections.abc import Iterable, Iterator

MOST_SHOWN = 3  # of those that are alike
_LONGEST = 500  # characters of a cause that tell it from others
_NUMBER = re.compile(r"\b(?![45]\d\d\b)\d+")  # but those of HTTP and FTP that tell why


def shown_and_left(failures: Iterable[tuple[str, str]]) -> Iterator[tuple[list[tuple[str, str]], int]]:
    """Give names and causes to show, and how many more there are like them; in the order of the first ones.

    One that would be left out alone is shown.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name, cause in failures:
        found.setdefault(kind_of(name, cause), []).append((name, cause))
    for alike in found.values():
        most = MOST_SHOWN if len(alike) > MOST_SHOWN + 1 else len(alike)
        yield alike[:most], len(alike) - most


def kind_of(name: str, cause: str) -> str:
    """Return a cause without what is of one file: its name, at either end, and numbers."""
    base, said = (_NUMBER.sub("0", text) for text in (posixpath.basename(name.rstrip("/")) or name, cause))
    return re.sub(rf"(?:\S*/)?(?<!\w){re.escape(base)}(?!\w)", "*", said[:_LONGEST])
