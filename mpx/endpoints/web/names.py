"""Names of files as paths of URLs, and back. Pure.

A name is what the rest of mpx uses: decoded, with bytes that are not UTF-8 as surrogateescape keeps them.
"""

import contextlib
import re
from collections.abc import Collection
from urllib.parse import quote, unquote_to_bytes

from mpx.text import quoted

_BEFORE_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")  # scheme and host of an absolute URL
_PLAIN = re.compile(r'[\x00-\x20"<>\x7f]|%(?![0-9A-Fa-f]{2})')  # in a path: nothing in it is encoded
_MOST_SHOWN = 200  # characters of an href in a message


class HrefError(ValueError):
    """A server lists what is no name in the folder that was asked for; the message begins with the href."""


def encoded(name: str) -> str:
    """Return a name as the path of a URL: all is percent-encoded but `/`, letters, digits and `-._~`.

    A segment `.` or `..` stays as it is, and servers resolve it: no encoding hides it from them.
    """
    return quote(name.encode("utf-8", "surrogateescape"), safe="/")


def decoded(path: str) -> str:
    """Return the name that the path of a URL stands for, or a part of one; what is not encoded stays."""
    return unquote_to_bytes(path.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def child_name(href: str, folder_path: str, *, is_encoded: bool = True) -> str | None:
    """Return the name in a folder that an href of its listing stands for, None for the folder itself.

    `folder_path` is the path of the URL that was asked, as it was sent. An href is a path, or a URL, of which
    the path alone counts: behind a proxy a server knows itself by another host. How either is encoded does
    not matter, nor do doubled slashes and one at the end. `is_encoded`: False for a server that is known to
    encode nothing in any href (XRootD); of others, those are taken as they are that hold what no encoding
    leaves. Raises HrefError for all that is no name right below the folder; what is returned holds no `/` or
    NUL, and is not empty, `.` or `..`.
    """
    folder = [decoded(each) for each in _segments(folder_path)]
    found = _segments_of(href, is_encoded=is_encoded)
    if found == folder:
        return None
    if found[: len(folder)] != folder:
        raise _error(href, "outside of the folder")
    if len(found) > len(folder) + 1:
        raise _error(href, "in a folder below this one")
    return found[-1]


def is_href_of(href: str, path: str) -> bool:
    """Tell whether an href is that of the URL that was asked, of this path; both may be encoded or not.

    A server behind a proxy that maps a folder to it knows itself without that folder: `/a/b` for `/dav/a/b`.
    """
    asked = [decoded(each) for each in _segments(path)]
    for is_encoded in (True, False):
        with contextlib.suppress(HrefError):
            found = _segments_of(href, is_encoded=is_encoded, known=asked)
            if found == asked or (found and asked[-len(found) :] == found):
                return True
    return False


def is_mapped(href: str, path: str) -> bool:
    """Tell whether a server knows what was asked by fewer folders than its URL has; see own_path."""
    return len(_segments(own_path(href, path))) < len(_segments(path))


def own_path(href: str, path: str) -> str:
    """Return the path by which a server knows the folder that was asked, as its listing begins with it.

    `path`: of the URL that was asked, which is returned where the href is not that of the folder. Behind a
    proxy that maps a folder to it a server knows itself without that folder, see is_href_of.
    """
    asked = [decoded(each) for each in _segments(path)]
    for is_encoded in (True, False):
        with contextlib.suppress(HrefError):
            found = _segments_of(href, is_encoded=is_encoded)
            if found == asked[len(asked) - len(found) :]:
                return encoded("/" + "/".join(found))
    return path


def _segments_of(href: str, *, is_encoded: bool, known: Collection[str] = ()) -> list[str]:
    """Return the segments of an href, decoded; raises as child_name.

    `known`: segments that may be there though they have slashes in them.
    """
    path = _BEFORE_PATH.sub("", href, count=1)
    if not path.startswith("/") and (path or not href):
        raise _error(href, "neither a path nor a URL")
    is_encoded = is_encoded and not _PLAIN.search(path)
    if is_encoded and "?" in path:  # of which nobody can tell whether it is one of the name
        raise _error(href, "with a query")
    found = [decoded(each) if is_encoded else each for each in _segments(path)]
    for each in found:
        if each in (".", "..") or ("/" in each and each not in known) or "\0" in each:
            raise _error(href, f"with {quoted(each[:_MOST_SHOWN])} in its path")
    return found


def _segments(path: str) -> list[str]:
    return [each for each in path.split("/") if each]


def _error(href: str, why: str) -> HrefError:
    return HrefError(f"{quoted(href[:_MOST_SHOWN])}, {why}")
