"""The URLs that a user has given, as far as they are more than names: with queries or encoded slashes."""

import posixpath
from collections.abc import Sequence

from mpx.endpoints.web.url import Origin, WebUrl, url_of
from mpx.location import Location


class GivenUrls:
    """By name, at one server. Pure."""

    def __init__(self, given: Sequence[Location]) -> None:
        self._given = {each.name: each for each in given if each.query or each.path}  # see Location.path

    def url_of(self, origin: Origin, name: str, slash: str = "") -> WebUrl:
        """Return the URL of a name; `slash`: what is missing at the end of it."""
        if (given := self._given.get(name)) is None:
            return url_of(origin, name + slash)
        return url_of(origin, name + slash, given.query, given.path and given.path + slash)

    @property
    def has_queries(self) -> bool:
        """Whether there are URLs with queries, which may hold what lets us in."""
        return any(each.query for each in self._given.values())

    def has_query(self, name: str) -> bool:
        """Tell whether there is a URL of this name with a query, which may be signed."""
        return name in self._given and bool(self._given[name].query)

    def holds_query(self, name: str) -> bool:
        """Tell whether a name is that of the folder of a URL with a query."""
        folder = name.rstrip("/") or "/"
        return any(each.query and posixpath.dirname(each.name) == folder for each in self._given.values())
