"""URLs of one path that differ in their queries, as archives have them (`access?id=7`), told apart by name.

Endpoints know files by their names: where the user says what each is to be called at the destination, each
has a name of its own here, of which its query is a part, as far as that is shown to people.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from mpx.location import Location, shown_query


def told_apart(sources: Sequence[Location], targets: Sequence[str | None] | None) -> list[Location]:
    """Return sources of which those whose targets are named have names of their own; the others stay."""
    if not targets:
        return list(sources)
    same: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, source in enumerate(sources):
        same[source.endpoint, source.name, source.path].append(i)
    found = list(sources)
    for alike in same.values():
        queries = list(dict.fromkeys(sources[i].query for i in alike))
        if len(queries) > 1 and all(targets[i] for i in alike):
            names = _names(sources[alike[0]].name, queries)
            for i in alike:
                found[i] = _named(sources[i], names[sources[i].query])
    return found


def _names(name: str, queries: Sequence[str]) -> dict[str, str]:
    """Return a name for each query; those that look alike, as a secret is not shown, are numbered."""
    names: dict[str, str] = {}
    for query in queries:
        shown = f"{name}?{shown_query(query)}"
        taken = sum(other == shown or other.startswith(f"{shown}#") for other in names.values())
        names[query] = f"{shown}#{taken + 1}" if taken else shown
    return names


def _named(source: Location, name: str) -> Location:
    """Return a location under another name, with the URL that it has."""
    path = source.path or quote(source.name.encode("utf-8", "surrogateescape"), safe="/")
    return replace(source, name=name, path=path)
