"""Names that stand twice in a listing, or differ only in what some file systems take for the same."""

import unicodedata
from collections.abc import Hashable
from enum import Enum

_LONGEST = 512  # characters of a name on a file system that ignores case; twice as many as on most


class Repeat(Enum):
    """How a name stands to those before it in its folder."""

    NEW = "new"
    TWICE = "twice"  # the very same name
    DIFFERS = "differs"  # the very same name, with other facts
    OTHER_KIND = "other kind"  # the very same name, once of a folder and once of something else
    FOLDED = "folded"  # one that differs in case only, in how letters are composed, or in dots at its end


def folded(name: str) -> str:
    """Return what a file system makes of a name that ignores case, and dots and blanks at its end."""
    name = name.rstrip(". ") or name
    if name.isascii() or len(name) > _LONGEST:  # accents are sorted in quadratic time
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


class ListedNames:
    """The names of one folder so far, as hashes: some 150 bytes each, and no more than MOST of them.

    Beyond that it begins anew, so a repetition is found within about that many names.
    """

    MOST = 250_000

    def __init__(self) -> None:
        self.count = 0  # names so far, each once
        self.repeats = 0  # that came again
        self._seen: dict[int, int] = {}  # and what their facts are, as a hash, too
        self._folders: set[int] = set()  # names of folders among them

    def add(self, name: str, *, is_folder: bool = False, facts: Hashable = None) -> Repeat:
        """Take the next name and tell whether it came before; `facts`: what else is told of it."""
        # An even number for the name itself and an odd one for its folded form, where that is another name:
        # so most names, which are in lower case, take one entry.
        plain = folded(name)
        itself, other = hash(name) << 1, hash(plain) << 1
        seen = self._seen
        if itself in seen:
            self.repeats += 1
            if (itself in self._folders) != is_folder:
                return Repeat.OTHER_KIND
            return Repeat.TWICE if is_folder or seen[itself] == hash(facts) else Repeat.DIFFERS
        self.count += 1
        is_folded = other | 1 in seen or other in seen
        if len(seen) >= self.MOST:
            seen.clear()
            self._folders.clear()
        seen[itself] = hash(facts)
        if is_folder:
            self._folders.add(itself)
        if plain != name:
            seen[other | 1] = 0
        return Repeat.FOLDED if is_folded else Repeat.NEW
