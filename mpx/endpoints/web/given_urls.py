"""The URLs that a user has given, as far as they are more than names: with queries or encoded slashes."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mpx.endpoints.web.url import Origin, WebUrl, url_of
from mpx.errors import UsageError
from mpx.location import Location
from mpx.text import quoted


class GivenUrls:
    """By name, at one server. Pure.

    The URLs of names below and beside one with an encoded slash are not known: where the folder ends, and
    the name in it begins, is for the server to say.
    """

    def __init__(self, given: Sequence[Location]) -> None:
        more = [each for each in given if each.query or each.path]  # see Location.path
        slashed = [each for each in more if each.path]
        self._names = {each.name for each in given}
        self._given = {same.name: same for each in slashed for same in _with_and_without_slash(each)}
        self._given.update((each.name, each) for each in more)
        self._slashed = {each.name.rstrip("/") for each in slashed}
        self._beside_slashed = {posixpath.dirname(each) for each in self._slashed}
        self._above = {above for each in more for above in _above(each.name)}
        self._beside_queries = {posixpath.dirname(each.name) for each in more if each.query}

    def url_of(self, origin: Origin, name: str, slash: str = "") -> WebUrl:
        """Return the URL of a name; `slash`: what is missing at the end of it."""
        if (given := self._given.get(name)) is None:
            return url_of(origin, name + slash)
        return url_of(origin, name + slash, given.query, given.path and given.path + slash)

    # --- queries -------------------------------------------------------------------------------------

    @property
    def has_queries(self) -> bool:
        """Whether there are URLs with queries, which may hold what lets us in."""
        return bool(self._beside_queries)

    def has_query(self, name: str) -> bool:
        """Tell whether there is a URL of this name with a query, which may be signed."""
        return name in self._given and bool(self._given[name].query)

    def holds_query(self, name: str) -> bool:
        """Tell whether a name is that of the folder of a URL with a query."""
        return (name.rstrip("/") or "/") in self._beside_queries

    # --- encoded slashes -----------------------------------------------------------------------------

    @property
    def has_slashes(self) -> bool:
        """Whether there are URLs with encoded slashes."""
        return bool(self._slashed)

    def has_slash(self, name: str) -> bool:
        """Tell whether the URL of a name has an encoded slash."""
        return name.rstrip("/") in self._slashed

    def is_unknown(self, name: str) -> bool:
        """Tell whether a name is that of the folder of a URL with an encoded slash, by what is decoded."""
        return name not in self._names and (name.rstrip("/") or "/") in self._beside_slashed

    def check_name(self, name: str) -> None:
        """Raise UsageError for a name below a URL with an encoded slash."""
        if self._slashed and name not in self._names and not self._slashed.isdisjoint(_above(name)):
            raise UsageError(
                f"the name {quoted(name)} is below a URL with an encoded slash (%2F), where the URLs of "
                "names are not known; name each file by its whole URL"
            )

    def check_tree(self, name: str, url: WebUrl) -> None:
        """Raise UsageError for a folder that is neither listed nor filled; `url`: its own."""
        if self.has_slash(name):
            raise UsageError(
                f"{url} is a folder: below an encoded slash (%2F) none is listed or filled, as the URLs of "
                "names are not known there; name each file by its whole URL"
            )

    def check_apart(self, name: str, url: WebUrl) -> None:
        """Raise UsageError for a source that is a folder, with another below it that is more than a name."""
        if name.rstrip("/") in self._above:
            raise UsageError(
                f"{url} is a folder, and a URL below it was given, too, which has a query or an encoded "
                "slash: a copy could not tell that from what is in the folder; copy them by two commands"
            )


def _with_and_without_slash(location: Location) -> Iterator[Location]:
    """Yield a location as that of a file, and as that of a folder: what it is has to be found out."""
    name, path = location.name.rstrip("/"), location.path.rstrip("/")
    for slash in ("", "/"):
        yield replace(location, name=name + slash, path=path + slash)


def _above(name: str) -> Iterator[str]:
    """Yield the names that one is below of, the uppermost as the empty text."""
    above = name.rstrip("/")
    while above:
        above = above.rpartition("/")[0]
        yield above
