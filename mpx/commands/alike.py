"""Failures of many files that are alike but for their names: a person reads the first few and a number."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

MOST_SHOWN = 3  # of those that are alike
_LONGEST = 500  # characters of a cause that tell it from others
_IN_NAMES, _SPACES = re.compile(r"\w"), re.compile(r"(\s+)")
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
    """Return a cause without what is of one file: its name, at either end or as in URLs, and numbers."""
    base, said = posixpath.basename(name.rstrip("/")) or name, cause[:_LONGEST]
    if (encoded := quote(base, errors="surrogateescape")) != base:
        said = said.replace(encoded, base)
    if _SPACES.search(base):  # words are looked at one by one
        said, base = said.replace(base, one_word := _SPACES.sub("_", base)), one_word
    base, said = _NUMBER.sub("0", base), _NUMBER.sub("0", said)
    return "".join(_without(word, base) for word in _SPACES.split(said)) if base in said else said


def _without(word: str, base: str, behind: str = "") -> str:
    """Return a word with a star for a name in it, and for the folders before; `behind`: what follows it.

    Without a regular expression for each name, as there may be 100,000 failures.
    """
    begin = word.rfind(base) if base else -1
    if begin < 0:
        return word
    before, after = word[:begin], word[begin + len(base) :]
    is_whole = not (_IN_NAMES.match(before[-1:]) or _IN_NAMES.match(after or behind))
    if is_whole and before.endswith("/"):
        return f"*{after}"
    return f"{_without(before, base, base)}{'*' if is_whole else base}{after}"
