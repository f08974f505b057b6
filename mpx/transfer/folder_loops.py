"""Folders that hold themselves, by a symbolic link or otherwise, found where a walk meets one once more.

Here device and inode decide. A server's word for them (`unique`, RFC 3659) is believed only where both
folders also list the same, since there are servers that give all folders one identity.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mpx.engine.endpoint import FileInfo
from mpx.errors import MpxError, PartialFailure, SourceError, UsageError

MOST_CONTRADICTIONS = 3  # one after the other; a folder that changes meanwhile gives one as well
_MOST_PARENTS = 100


class Comparable(Protocol):
    """What FolderLoops asks of an endpoint; see there."""

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint."""
        ...

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        ...


@dataclass(slots=True)
class Place:
    """A folder on the way from the top of a tree to where its walk is."""

    source: str
    info: FileInfo
    real: str  # its name without the links that led to it
    is_link: bool  # a link led to it


class FolderLoops:
    """Tells whether a folder was met before on the way to it, or holds the top of the tree."""

    def __init__(self, top: Place, end: Comparable) -> None:
        self._end = end
        self._above = _parents(top, end)
        self._contradictions = 0  # folders of one identity that list other things, one after the other

    def leads_back(self, folder: Place, path: Sequence[Place]) -> bool:
        """Tell whether a folder is one of `path`, which leads to it, or holds the top."""
        identity = folder.info.identity
        by_identity = {each.info.identity: each.source for each in path} | self._above
        if isinstance(identity, tuple):
            return identity in by_identity
        if folder.is_link and any(_holds(folder.real, each.real) for each in path):
            return True
        if identity is None or identity not in by_identity or self._contradictions >= MOST_CONTRADICTIONS:
            return False
        return self._lists_the_same(folder.source, by_identity[identity])

    def _lists_the_same(self, one: str, other: str) -> bool:
        try:
            is_same = self._digest(one) == self._digest(other)
        except (SourceError, PartialFailure, UsageError):
            return False  # which says nothing of what the server's identities are worth
        self._contradictions = 0 if is_same else self._contradictions + 1
        return is_same

    def _digest(self, name: str) -> tuple[int, int]:
        """Return how many entries a folder has, and a sum over them that does not depend on their order."""
        count, total = 0, 0
        for entry, info in self._end.entries(name):
            count += 1
            total += hash((entry, info.identity if isinstance(info, FileInfo) else None))
        return count, total


def _holds(folder: str, name: str) -> bool:
    """Tell whether a real name is that of the folder or below it."""
    return f"{name}/".startswith(f"{folder.rstrip('/')}/")


def _parents(top: Place, end: Comparable) -> dict[tuple[int, int] | str, str]:
    """Return the folders that hold the top by identity, where the endpoint knows any."""
    if top.info.identity is None:
        return {}
    if isinstance(top.info.identity, str):  # servers make `..` of a name what they like
        steps = [part for part in top.real.split("/") if part]
        names = ["/" + "/".join(steps[:i]) for i in range(len(steps))][-_MOST_PARENTS:]
    else:
        depth = min(top.real.count("/"), _MOST_PARENTS)
        names = [posixpath.join(top.source, *[".."] * i) for i in range(1, depth + 1)]
    found = zip(names, end.stats(names), strict=True)
    return {
        info.identity: name
        for name, info in found
        if isinstance(info, FileInfo) and info.identity and info.identity != top.info.identity
    }
