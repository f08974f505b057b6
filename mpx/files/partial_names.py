"""Names of files that are not whole yet, and of those that make room for them."""

import hashlib
import posixpath
import re

_PARTIAL = re.compile(r"\.mpx-[0-9a-f]+\.part\Z")


def partial_name(final: str, tag: str, prefix: str = ".") -> str:
    """Return the name under which a file grows until it is whole, in the folder of its final name.

    Hidden by its `prefix`, recognisable, the same for the same copy (`tag`), and within 255 bytes however
    long the name.
    """
    folder, name = posixpath.split(final)
    suffix = f".mpx-{tag}.part"
    room = 255 - len(suffix) - len(prefix.encode("utf-8", "surrogateescape"))
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) > room:
        digest = hashlib.sha256(raw).hexdigest()[:16]
        name = raw[: room - 17].decode("utf-8", "ignore") + "-" + digest
    return posixpath.join(folder, f"{prefix}{name}{suffix}")


def is_partial_name(name: str) -> bool:
    """Tell whether a name is that of a partial file (see partial_name)."""
    return _PARTIAL.search(name) is not None


def aside_name(partial: str, final: str) -> str:
    """Return where an old file goes while the new one, grown as `partial`, takes its name `final`.

    Hidden if the partial file is, and the same for the same copy.
    """
    name = posixpath.basename(partial)
    hidden = name.startswith(".")
    tag = name.removesuffix(".part").rsplit(".mpx-", 1)[-1]
    return partial_name(final, f"{tag}-old", "." if hidden else "")
