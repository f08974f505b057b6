"""Sources named by the user that are links, at servers which describe a link as what it leads to.

Only a listing shows there that it is one: `type=file` is what ProFTPD's MLST says of a link, and without MLST
a link is not told from what SIZE and CWD find behind it.
"""

import posixpath
from collections.abc import Mapping, Sequence

from mpx.engine.endpoint import Endpoint, FileInfo, Kind
from mpx.errors import MpxError, PartialFailure, SourceError, UsageError
from mpx.options import CopyOptions

Described = FileInfo | MpxError | None


def shown_links(
    names: Sequence[str], described: Mapping[str, Described], end: Endpoint, options: CopyOptions
) -> dict[str, FileInfo]:
    """Return those of `names` that listings show to be links although they were described as something else.

    Raises UsageError where a folder cannot be listed, as links are not to be followed.
    """
    doubtful: dict[str, list[str]] = {}  # by folder
    for name in names:
        found = described[name]
        if isinstance(found, FileInfo) and found.kind is not Kind.LINK and posixpath.basename(name):
            doubtful.setdefault(posixpath.dirname(name), []).append(name)
    if not doubtful or end.find_out().describes_links:
        return {}
    links: dict[str, FileInfo] = {}
    for folder, inside in doubtful.items():
        wanted = {posixpath.basename(name): name for name in inside}
        try:
            for base, info in end.entries(folder):
                if base in wanted and isinstance(info, FileInfo) and info.kind is Kind.LINK:
                    links[wanted[base]] = info
        except (SourceError, PartialFailure) as error:
            raise UsageError(
                f"--links {options.links} is not possible here: only a listing would show whether "
                f"{inside[0]} is a link, and {error}; give --links follow"
            ) from None
    return links
