"""The names of a listing as gfal2 tells them: of web servers as they were sent, encoded or not. Pure."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

_AS_ENCODED = re.compile(r"""(?:[^\x00-\x20"#%?\x7f-\U0010ffff]|%[0-9A-Fa-f]{2})*""")  # as all servers encode


def is_web(server: str) -> bool:
    """Tell whether a server speaks HTTP."""
    return server.startswith(("http", "dav"))


def plain_names(server: str, names: Sequence[str]) -> list[str]:
    """Return the names of a folder. A server encodes all or none: XRootD none, whatever they are.

    Where none shows which, those are taken to be encoded; then one that was not, and has a % in it, is not
    found by its name, rather than taken for another: that one would have shown it.
    """
    if not is_web(server) or not all(map(_AS_ENCODED.fullmatch, names)):
        return list(names)
    return [unquote(name, errors="surrogateescape") for name in names]
